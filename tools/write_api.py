"""Writes the API reference, docs/api/*.md, from the docstrings of the package that is importable.

python tools/write_api.py            writes the pages
python tools/write_api.py --check    exits with 1 where a page is not what would be written
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "api"
TITLES = {
    "dlbridge": "Exchange of arrays between libraries. The guide is the [README](../../README.md).",
    "dlbridge.tests": "The [self-test runner](../runner.md) and the [conformance kit](../conformance.md).",
    "dlbridge.dask": "Arrays through Dask. The guide is [dask.md](../dask.md).",
    "dlbridge.mpi": "Arrays as buffers of mpi4py. The guide is [mpi.md](../mpi.md).",
    "dlbridge.multiprocessing": "Arrays through queues, pipes and pools. The guide is [processes.md](../processes.md).",
    "dlbridge.nccl": "Arrays as buffers of nccl4py. The guide is [nccl.md](../nccl.md).",
    "dlbridge.ray": "Arrays through Ray. The guide is [ray.md](../ray.md).",
    "dlbridge.nd": "The ndarray. Start with the [guide](../ndarray.md).",
    "dlbridge.nd.fft": "Fourier transforms.",
    "dlbridge.nd.lib.stride_tricks": "Views with strides of one's own choice, and sliding windows.",
    "dlbridge.nd.linalg": "Products, norms, decompositions and solvers.",
    "dlbridge.nd.polynomial.polynomial": "Matrices of power series, whose coefficients stand from the lowest power up.",
    "dlbridge.nd.polynomial.polyutils": "Coefficients of series, checked and trimmed.",
    "dlbridge.nd.random": "Random numbers.",
    "dlbridge.nd.cuda": "Devices, streams, events, graphs and memory.",
}

MORE = {"dlbridge.tests": ("check_producer", "check_consumer")}  # loaded on first use, and in no __all__


def page_of(module: str) -> str:
    return module.removeprefix("dlbridge.") + ".md"


def signature_of(value: Any) -> str:
    """The call as Python writes it, without quotes around annotations; empty where there is none."""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"<class '([\w.]+)'>", r"\1", text)
    text = re.sub(r"<(?:object|function|built-in).*? at 0x[0-9a-f]+>", "...", text)
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)


def doc_of(value: Any) -> str:
    if getattr(value, "__module__", None) == "numpy":
        return f"`numpy.{value.__name__}` itself, or a class that stands for it where NumPy is missing."
    doc = getattr(value, "__doc__", None)
    return inspect.cleandoc(doc) if isinstance(doc, str) else ""  # of a class, it may be its instances' property


def prose(doc: str, parameters: set[str]) -> list[str]:
    """A docstring as Markdown: sentences that begin with a parameter's name become a list."""
    lines: list[str] = []
    items: list[str] = []  # the description of parameters that is being read, line by line

    def close() -> None:
        text = " ".join(items)
        named = "|".join(sorted(parameters))
        for item in re.split(rf"(?<=[.)]) (?=(?:{named})(?:, (?:{named}))*: )", text) if text else []:
            name, said = item.split(": ", 1)
            lines.append(f"- `{name}`: {_escaped(said)}")
        items.clear()

    for line in doc.splitlines():
        named = re.match(r"([\w*]+(?:, [\w*]+)*): ", line)
        if named and set(re.findall(r"\w+", named[1])) <= parameters:
            if not items and lines and lines[-1]:
                lines.append("")
            items.append(line)
        elif items and line and not re.match(r"Raises |Source: ", line):
            items.append(line.strip())
        else:
            if items:
                close()
                lines.append("")
            lines.append(_escaped(line))
    close()
    return lines


def _escaped(line: str) -> str:
    """What Markdown would take for markup, outside of code; ``x`` is code, too."""
    parts = re.split(r"(``.*?``|`[^`]*`)", line)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"(?<![\w`])(__\w+__(?:\(\))?)", r"`\1`", parts[i]).replace("<", "\\<").replace("*", "\\*")
    return "".join(parts)


def parameters_of(value: Any) -> set[str]:
    try:
        return set(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return set(re.findall(r"^(\w+)(?:, \w+)*: ", doc_of(value), re.MULTILINE))


def members(cls: type) -> Iterator[str]:
    """The public attributes of a class that it does not share with a class documented elsewhere."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("dlbridge")]
    elsewhere = [base for base in ours if base is not cls and not base.__name__.startswith("_")]
    listed: set[str] = set()
    for base in ours:
        if base not in elsewhere:
            listed |= {name for name in vars(base) if not name.startswith("_")}
    for base in elsewhere:  # nd.HostArray has all that nd.ndarray has once more
        shared = listed & vars(base).keys()
        listed -= {name for name in shared if doc_of(vars(base)[name]) == doc_of(inspect.getattr_static(cls, name))}
    for name in sorted(listed):
        value = inspect.getattr_static(cls, name)
        if not (inspect.isdatadescriptor(value) or inspect.isroutine(value) or hasattr(value, "__get__")):
            yield f"- `{name}`"  # an instance: its own type documents it
            continue
        if isinstance(value, (classmethod, staticmethod)):
            value = value.__func__
        callable_ = callable(value) and not isinstance(value, type)
        call = signature_of(value) if callable_ else ""
        first = r"\w+" if type(value).__name__ == "late_function" else r"\$?self|cls"  # a function as a method
        call = re.sub(rf"^\((?:{first})(?:: \w+)?(?:, /)?(?:, )?", "(", call)
        doc = " ".join(" ".join(prose(doc_of(value), set())).split("  ")[0].split())
        yield f"- `{name}{call}`" + (f": {doc}" if doc else "")


def entry(module: str, name: str, value: Any) -> list[str]:
    call = signature_of(value)
    lines = [f"### {name}", ""]
    if call:
        lines += [
            "```text",
            f"{module.removeprefix('dlbridge.') if module != 'dlbridge' else module}.{name}{call}",
            "```",
            "",
        ]
    lines += [*prose(doc_of(value), parameters_of(value)), ""]
    if isinstance(value, type) and not issubclass(value, BaseException) and (own := list(members(value))):
        lines += [*own, ""]
    return lines


def page(name: str) -> str:
    module = importlib.import_module(name)
    names = [*module.__all__, *MORE.get(name, ())]
    values = {one: getattr(module, one) for one in names if not one.startswith("_")}
    groups: dict[str, list[str]] = {"Functions": [], "Ufuncs": [], "Classes": [], "Exceptions": [], "Types": []}
    constants = []
    for one, value in sorted(values.items(), key=lambda item: item[0].lower()):
        if isinstance(value, ModuleType):
            continue
        if isinstance(value, type):
            groups["Exceptions" if issubclass(value, BaseException) else "Classes"] += entry(name, one, value)
        elif isinstance(value, UnionType):  # which has no docstring: its module has
            about = importlib.import_module(module._LAZY[one][0])
            groups["Types"] += [f"### {one}", "", *prose(doc_of(about), set()), ""]
        elif type(value).__name__ == "ufunc":
            groups["Ufuncs"] += entry(name, one, value)
        elif callable(value) and type(value).__name__ != "DType":
            groups["Functions"] += entry(name, one, value)
        else:
            constants.append(f"`{one}`")
    lines = [f"# {name}", "", TITLES[name], "", "Written by `tools/write_api.py` from the docstrings: edit those.", ""]
    for title, entries in groups.items():
        if entries:
            lines += [f"## {title}", "", *entries]
    if constants:
        lines += ["## Dtypes and constants", "", ", ".join(constants), ""]
    text = "\n".join(line.rstrip() for line in lines)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def pages() -> dict[Path, str]:
    index = ["# API reference", "", "| module | |", "| --- | --- |"]
    for name, title in TITLES.items():
        index.append(f"| [{name}]({page_of(name)}) | {title} |")
    return {FOLDER / "README.md": "\n".join(index) + "\n", **{FOLDER / page_of(name): page(name) for name in TITLES}}


def main(arguments: list[str]) -> int:
    written = pages()
    if arguments == ["--check"]:
        stale = [p.name for p, text in written.items() if not p.exists() or p.read_text("utf-8") != text]
        stale += [p.name for p in FOLDER.glob("*.md") if p not in written]
        if stale:
            print(f"docs/api is stale ({', '.join(stale)}): run python tools/write_api.py", file=sys.stderr)
        return bool(stale)
    FOLDER.mkdir(exist_ok=True)
    for path, text in written.items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
