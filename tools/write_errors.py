"""Writes docs/errors.md, the index of error messages, from the sources that raise them.

python tools/write_errors.py            writes the page
python tools/write_errors.py --check    exits with 1 where the page is not what would be written
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "errors.md"
BEGIN, END = "<!-- messages: begin -->\n", "<!-- messages: end -->\n"
GAP = "…"  # stands for what a message fills in: a name, a number, a shape

# A file belongs to the first section with a prefix that fits.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Buffers": ("protocols/buffer/",),
    "Array interface": ("protocols/array_interface/", "protocols/common/interface_dict", "protocols/common/typestr"),
    "CUDA Array Interface": ("protocols/cuda_array_interface/",),
    "DLPack": ("protocols/dlpack/", "bridge/include/dlbridge/dlpack_codec.h"),
    "Arrow": ("protocols/arrow/", "bridge/include/dlbridge/arrow_", "python/src/columns.cpp"),
    "Arrays of a framework": ("frameworks/", "python/dlbridge/_wrappers.py"),
    "C++ converters": ("bridge/include/dlbridge/converter", "bridge/include/dlbridge/tensor_view.h"),
    "Arguments of C++ extensions": tuple(
        f"bridge/include/dlbridge/{part}" for part in ("argument_", "nanobind", "pybind11", "python/")
    ),
    "convert and its relatives": (
        *(f"python/src/{name}.cpp" for name in ("adapt", "convert", "recast", "target", "tree")),
        *(
            f"python/dlbridge/_{name}.py"
            for name in (
                "adapt",
                "convert",
                "frames",
                "load",
                "may_convert",
                "op",
                "op_jax",
                "op_torch",
                "packing",
                "records",
                "tree",
            )
        ),
    ),
    "Sharing between processes": ("python/dlbridge/_sharing/", "python/dlbridge/multiprocessing.py"),
    "dlbridge.nd": ("ndarray/", "python/src/nd/", "python/dlbridge/nd/"),
    "Every array": ("",),
}
NOT_INDEXED = ("python/dlbridge/tests/",)  # the runner and the conformance kit report on others

CLASS_OF_CODE = {
    "kNoProtocol": "ProtocolError",
    "kWrongType": "TypeError",
    "kRefused": "ExchangeError",
    "kCopyRefused": "CopyError",
    "kMalformed": "DataError",
    "kOverflow": "OverflowError",
    "kOutOfMemory": "MemoryError",
    "kCuda": "CudaError",
    "kIndex": "IndexError",
}
CALLS = {
    "refused": "ExchangeError",
    "malformed": "DataError",
    "overflow": "OverflowError",
    "index_error": "IndexError",
    "type_error": "TypeError",
    "value_error": "ValueError",
}
# Functions that put a message together of their arguments: what they raise, and how.
HELPERS = {
    ("protocols/buffer/format.h", "refuse_format"): ("ExchangeError", "buffer format '…' {1}. {2}"),
    ("protocols/common/typestr.h", "refuse_typestr"): ("ExchangeError", "typestr '…' {1}. {2}"),
    ("python/src/recast.cpp", "refuse_layout"): ("DataError", "layout is '…': {2}"),
    ("frameworks/torch.cpp", "refuse"): (
        "ExchangeError",
        "the torch.Tensor {2}, which DLPack cannot express. Use {3}",
    ),
}

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<text>(?:\\.|[^"\\])*)"|'(?P<char>(?:\\.|[^'\\])+)'"""
    r"""|(?P<name>[A-Za-z_]\w*)|\d[\w.']*|::|->|\S""",
    re.DOTALL,
)
PRINTF = re.compile(r"%[-\d.]*(?:l|z)*[a-zA-Z]")

Message = tuple[str, str]  # the exception, and the text with its gaps


def tokens_of(source: str) -> list[re.Match[str]]:
    source = re.sub(r'std::string\(((?:\s*"(?:\\.|[^"\\])*")+)\)', r"\1", source)  # begins a sum
    return [match for match in TOKEN.finditer(source) if not match[0].startswith(("//", "/*"))]


def literal_of(token: re.Match[str]) -> str | None:
    """The characters of a literal; None for what is none."""
    if token["raw"] is not None:
        return token["raw"]
    text = token["text"] if token["text"] is not None else token["char"]
    return None if text is None else str(ast.literal_eval(f'"""{text}"""'))


def constants_of(sources: list[str]) -> dict[str, str]:
    """The named texts of C++ sources (`constexpr char kRemedy[] = "..."`) that have one meaning in all of them."""
    found: dict[str, set[str]] = {}
    for source in sources:
        tokens = tokens_of(re.sub(r"(\bk[A-Z]\w*)\[\]", r"\1", source))
        for i, (token, then, value) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False)):
            if re.fullmatch(r"k[A-Z]\w*", token[0]) and then[0] == "=" and literal_of(value) is not None:
                found.setdefault(token[0], set()).add(argument(tokens, i + 2, {}))
    return {name: texts.pop() for name, texts in found.items() if len(texts) == 1}


def cpp_messages(file: str, source: str, constants: dict[str, str]) -> Iterator[Message]:
    """What a C++ source raises: the argument behind an error code, or that of a call known to make an error."""
    tokens = tokens_of(source)
    for i, token in enumerate(tokens[:-2]):
        name, following = token["name"] or "", tokens[i + 1][0]
        if name in CALLS and following == "(":
            yield CALLS[name], argument(tokens, i + 2, constants)
        elif (file, name) in HELPERS and following == "(":
            raised, form = HELPERS[file, name]
            texts = [argument(tokens, start, constants) for start in arguments(tokens, i + 2)]
            if f"{{{len(texts) - 1}}}" in form:  # not another function of that name
                yield raised, form.format(*texts)
        elif name in CLASS_OF_CODE and following == ",":
            yield CLASS_OF_CODE[name], argument(tokens, i + 2, constants)
        elif name.startswith("PyExc_") and following == ",":
            text = argument(tokens, i + 2, constants)
            yield name.removeprefix("PyExc_"), PRINTF.sub(GAP, text).replace("%%", "%")


def until_end(tokens: list[re.Match[str]], start: int) -> Iterator[tuple[int, int]]:
    """(index, depth) of the tokens up to the bracket, or the semicolon, that ends the list they are in."""
    depth = 0
    for i in range(start, len(tokens)):
        depth -= tokens[i][0] in tuple(")]}")
        if depth < 0 or tokens[i][0] == ";":
            return
        yield i, depth
        depth += tokens[i][0] in tuple("([{")


def arguments(tokens: list[re.Match[str]], start: int) -> list[int]:
    return [start, *(i + 1 for i, depth in until_end(tokens, start) if depth == 0 and tokens[i][0] == ",")]


def argument(tokens: list[re.Match[str]], start: int, constants: dict[str, str]) -> str:
    """The text that begins at a token: its literals, with gaps for the expressions between them."""
    parts: list[str] = []
    for i, depth in until_end(tokens, start):
        token = tokens[i]
        text = constants.get(token[0], literal_of(token))
        if depth == 0 and token[0] == ",":
            break
        if depth == 0 and text is not None and tokens[i + 1][0] != "[":
            parts.append(text)
        elif depth == 0 and token[0] == "?":
            return GAP  # one of several texts: too little is the same in them
        elif token[0] not in ("+", "std", "detail", "::"):
            parts.append(GAP)
    return "".join(parts)


def python_messages(source: str) -> Iterator[Message]:
    """What the `raise` statements of a Python source say."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            yield ast.unparse(node.exc.func).rpartition(".")[2], text_of(node.exc.args[0])


def wrapper_messages(source: str) -> Iterator[Message]:
    """What python/dlbridge/_wrappers.py says of tensors without memory: the rows of its table, (test, what, remedy)."""
    tree = ast.parse(source)
    names = {
        target.id: text_of(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple) and len(node.elts) == 3 and isinstance(node.elts[1], ast.Constant):
            what, remedy = (names.get(getattr(one, "id", ""), text_of(one)) for one in node.elts[1:])
            yield "ExchangeError", f"the torch.Tensor is {what}; it has no memory that could be shared. {remedy}"


def text_of(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    return GAP


def messages() -> dict[str, set[Message]]:
    """The messages of each section."""
    sources = {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for folder in ("bridge", "protocols", "frameworks", "ndarray", "python")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".h", ".cpp", ".cu", ".cuh", ".py"}
    }
    constants = constants_of([source for file, source in sources.items() if not file.endswith(".py")])
    found: dict[str, set[Message]] = {section: set() for section in SECTIONS}
    for file, source in sources.items():
        if file.startswith(NOT_INDEXED):
            continue
        section = next(title for title, prefixes in SECTIONS.items() if file.startswith(prefixes))
        raised = python_messages(source) if file.endswith(".py") else cpp_messages(file, source, constants)
        if file == "python/dlbridge/_wrappers.py":
            raised = wrapper_messages(source)
        found[section] |= {(name, text) for name, text in map(tidied, raised) if text}
    return found


def tidied(message: Message) -> Message:
    """Without the operation before it, and in one line; empty where too little is said here to recognise it by."""
    raised, text = message
    text = " ".join(re.sub(rf"{GAP}(?:\s*{GAP})*", GAP, text).split())
    text = re.sub(rf"^{GAP}(?:\(\))?: ", "", text)
    return raised, text if len(re.findall(r"[A-Za-z]{2,}", text.partition(". ")[0])) >= 3 else ""


def escaped(text: str) -> str:
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", text)


REMEDY = re.compile(r"(.*); ((?:give|use|take|pass|convert|move|wrap|install|call) .*)")


def row(message: Message) -> str:
    raised, text = message
    rule, _, remedy = text.partition(". ")
    if not remedy and (parts := REMEDY.fullmatch(rule)):
        rule, remedy = parts.groups()
    return f"| {escaped(rule)} | {escaped(remedy.removeprefix('Hint: ')).strip(GAP + ' ')} | `{raised}` |"


def index() -> str:
    lines: list[str] = []
    for section, found in messages().items():
        rows = sorted(map(row, found), key=lambda line: re.sub(r"^[^A-Za-z]*", "", line).lower())
        lines += [f"## {section}", "", "| message | what to do | raised as |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    written = before + BEGIN + index() + END + rest.partition(END)[2]
    if arguments == ["--check"]:
        if written != page:
            print("docs/errors.md is stale: run python tools/write_errors.py", file=sys.stderr)
        return int(written != page)
    PAGE.write_text(written, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
