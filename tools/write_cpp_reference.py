"""Writes the pages of docs/cpp, the reference of the C++ SDK, from the declarations and comments of its headers.

python tools/write_cpp_reference.py            writes the pages
python tools/write_cpp_reference.py --check    exits with 1 where a page is not what would be written
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADERS = ROOT / "bridge" / "include" / "dlbridge"
PAGES = ROOT / "docs" / "cpp"
BEGIN, END = "<!-- headers: begin -->\n", "<!-- headers: end -->\n"

# What is there for users, a page each, in the order of the page; the rest of a header is for the SDK itself.
PUBLIC: dict[str, dict[str, tuple[str, ...]]] = {
    "tensor": {
        "tensor.h": ("Tensor",),
        "converter.h": ("from", "borrow", "unowned", "to", "Held"),
        "empty.h": ("empty",),
        "copying.h": ("to_device", "dense_copy", "dense_copy_f", "order_for_use"),
        "owner.h": ("Owner",),
        "dtype.h": ("DType", "DTypeInfo", "info", "dtype_of_v"),
        "half.h": ("float16", "bfloat16"),
        "device.h": ("is_host", "is_cuda", "same_device", "device_name", "parse_device"),
        "describe.h": ("describe_memory", "locate"),
    },
    "tensor_view": {
        "tensor_view.h": ("TensorView",),
        "check.h": ("check", "meets", "any_of", "Constraint"),
        "requirement.h": ("dyn", "stride_rule", "Requirement"),
    },
    "arg": {
        "python/argument.h": ("Arg", "stream_arg"),
        "python/visit.h": ("visit",),
        "python/result.h": ("like", "as", "Result", "keep"),
        "python/framework.h": ("As", "as", "other_module"),
        "pybind11/function.h": ("def",),
        "pybind11/connect.h": ("connect",),
        "nanobind.h": ("connect",),
        "nanobind/function.h": ("def", "def_prop_rw"),
    },
    "caps": {
        "converter.h": ("converter",),
        "caps.h": ("caps", "source_kind", "result_kind"),
        "testing/conformance.h": ("conformance",),
    },
    "errors": {"exception.h": ("Error",), "errors.h": ("ErrorCode", "Issue", "Status")},
    "threads_and_streams": {
        "options.h": ("options", "copy", "sync", "stream_ref"),
        "stream.h": ("Ordering", "StreamHandle", "kLegacyStream", "kPerThreadStream"),
    },
}

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*)|(?P<directive>^\#(?:[^\n]*\\\n)*[^\n]*)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+'|\s+|\w+|.""",
    re.MULTILINE,
)
NOISE = re.compile(
    r"\[\[(?:gnu::|noreturn)[^\]]*\]\]\s*|\bDLBRIDGE_(?:HOST_DEVICE|CHECKED)\s+|\binline\s+|[^\S\n]*//[^\n]*NOLINT[^\n]*"
)
TYPE = re.compile(r"(?:enum|class|struct|union)\b")
NAMED = re.compile(
    r"(?:enum class|enum|class|struct|union|concept|using)\s+(?:\[\[[^\]]+\]\]\s*|DLBRIDGE_CHECKED\s+)?(\w+)"
)


@dataclass
class Declaration:
    comment: str  # the lines before it
    head: str
    body: str | None  # between the braces; None where there are none
    behind: str = ""  # a comment on its last line

    @property
    def plain(self) -> str:
        return without_template(self.head)

    @property
    def is_type(self) -> bool:
        return TYPE.match(self.plain) is not None

    @property
    def name(self) -> str:
        if found := NAMED.match(self.plain):
            return found[1]
        before = re.split(r"[({=;]", self.plain, maxsplit=1)[0]
        return (re.findall(r"\w+", before) or [""])[-1]


def without_template(head: str) -> str:
    while head.startswith("template"):
        depth = 0
        for i, letter in enumerate(head):
            depth += (letter == "<") - (letter == ">")
            if letter == ">" and depth == 0:
                head = head[i + 1 :].lstrip()
                break
    return head


class Scope:
    """The declarations of a scope, in order, and the access specifiers between them. Namespaces are opened, but for
    those of the implementation."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = [token for token in TOKEN.finditer(source) if not token["directive"]]
        self.at = 0

    def __iter__(self) -> Iterator[Declaration | str]:
        comments: list[str] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token["comment"]:
                comments.append(token[0])
                self.at += 1
            elif token[0].isspace():
                if token[0].count("\n") > 1:
                    comments.clear()  # behind a blank line: it is not about what follows
                self.at += 1
            else:
                found = self.declaration("\n".join(comments))
                comments.clear()
                if isinstance(found, Declaration) and found.head.startswith("namespace"):
                    if found.head == "namespace dlbridge":
                        yield from Scope(found.body or "")
                else:
                    yield found

    def declaration(self, comment: str) -> Declaration | str:
        start, depth, body = self.at, 0, None
        indent = self.tokens[start].start() - self.source.rfind("\n", 0, self.tokens[start].start()) - 1
        one = Declaration(comment, "", None)
        while True:
            token = self.tokens[self.at][0]
            if depth == 0 and body is None:
                text = "".join(part[0] for part in self.tokens[start : self.at]).strip()
                one.head = re.sub(rf"\n {{0,{indent}}}", "\n", text)
            if token == ":" and one.head in ("public", "private", "protected"):
                self.at += 1
                return one.head
            if token == ";" and depth == 0:
                if not one.is_type or body is None:
                    one.head, body = one.head + ";", None
                self.at += 1
                one.body = body
                return self.with_comment_behind(one)
            if token == "{" and depth == 0:
                value = one.head.endswith("=") or one.plain.startswith("concept")
                inside = self.skip_braces()
                if one.is_type:
                    body = inside
                elif not value and not re.match(r"\s*[,{]", self.source[self.tokens[self.at - 1].end() :]):
                    one.body = inside
                    return self.with_comment_behind(one)
                continue
            depth += (token in tuple("([")) - (token in tuple(")]"))
            self.at += 1

    def skip_braces(self) -> str:
        """Past the brace that closes the one here; what is between them."""
        start, depth = self.tokens[self.at].end(), 0
        while True:
            token = self.tokens[self.at]
            depth += (token[0] == "{") - (token[0] == "}")
            self.at += 1
            if depth == 0:
                return self.source[start : token.start()]

    def with_comment_behind(self, one: Declaration) -> Declaration:
        rest = self.tokens[self.at : self.at + 2]
        if len(rest) == 2 and rest[0][0].isspace() and "\n" not in rest[0][0] and rest[1]["comment"]:
            one.behind = "" if "NOLINT" in rest[1][0] else rest[1][0]
            self.at += 2
        return one


def shown(one: Declaration) -> list[str]:
    """The lines of a declaration: with its comments, without what it does."""
    lines = one.comment.splitlines()
    head = NOISE.sub("", one.head)
    if one.body is None:
        lines += head.splitlines()
    elif one.is_type:
        lines += [*f"{head} {{".splitlines(), *("  " + line if line else "" for line in members(one)), "};"]
    else:
        lines += f"{head[: end_of_signature(head)].rstrip()};".splitlines()
    if one.behind and len(lines[-1]) + len(one.behind) < 116:
        lines[-1] += "  " + one.behind
    elif one.behind:
        lines.insert(0, one.behind)
    return [line for line in lines if "NOLINT" not in line and "clang-format" not in line]


def end_of_signature(head: str) -> int:
    """Where the initialisers of a constructor begin."""
    depth, behind_parameters = 0, False
    for i, letter in enumerate(head):
        depth += (letter in "([{") - (letter in ")]}")
        behind_parameters |= letter == ")"
        if letter == ":" and depth == 0 and behind_parameters and ":" not in (head[i - 1], head[i + 1]):
            return i
    return len(head)


def members(one: Declaration) -> Iterator[str]:
    """The lines of the public members of a class, or of the values of an enumeration."""
    if one.plain.startswith("enum"):
        yield from textwrap.dedent((one.body or "").strip("\n")).strip().splitlines()
        return
    public, first = not one.plain.startswith("class"), True
    for member in Scope(one.body or ""):
        if isinstance(member, str):
            public = member == "public"
        elif public and not re.match(r"friend|static_assert|~|(?!requires)[^\n]*\bdetail::", member.plain):
            if member.comment and not first:
                yield ""
            yield from shown(member)
            first = False


def section(header: str, names: tuple[str, ...]) -> Iterator[str]:
    source = (HEADERS / header).read_text("utf-8")
    title = re.match(r"(?:// ?\S[^\n]*\n)+", source)
    about = " ".join(line.removeprefix("//").strip() for line in (title[0] if title else "").splitlines())
    yield f"## `dlbridge/{header}`\n"
    yield re.sub(r"([<*_])", r"\\\1", about) + "\n"
    found: dict[str, list[str]] = {name: [] for name in names}
    for one in Scope(source):
        if isinstance(one, Declaration) and one.name in found and "Tensor::" not in one.head:
            found[one.name].append("\n".join(shown(one)))
    for name, texts in found.items():
        if not texts:
            raise SystemExit(f"{header} declares no {name}: mend PUBLIC in tools/write_cpp_reference.py")
        yield f"### {name}\n\n```cpp\n" + "\n\n".join(texts) + "\n```\n"


def main(arguments: list[str]) -> int:
    stale = []
    for name, headers in PUBLIC.items():
        path = PAGES / f"{name}.md"
        page = path.read_text("utf-8")
        before, _, rest = page.partition(BEGIN)
        text = "\n".join(line for header, names in headers.items() for line in section(header, names))
        written = before + BEGIN + text + END + rest.partition(END)[2]
        if written != page:
            stale.append(path.relative_to(ROOT))
            if arguments != ["--check"]:
                path.write_text(written, "utf-8")
    if stale and arguments == ["--check"]:
        print(*stale, "stale: run python tools/write_cpp_reference.py", file=sys.stderr)
    return int(bool(stale) and arguments == ["--check"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
