#!/usr/bin/env python3
"""Checks that the modules of dlbridge.nd import one another in one direction: also those inside of functions count.

Run it in the repository, or give the root as the one argument; it prints a line for each circle and exits 1 when there
is any. Imports for type checkers only do not count.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = "dlbridge.nd"


def name_of(path: Path, folder: Path) -> str:
    parts = [part for part in path.relative_to(folder).with_suffix("").parts if part != "__init__"]
    return ".".join((PACKAGE, *parts))


def is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imported(node: ast.AST, package: str) -> Iterator[str]:
    """What the import statements below a node name, `from m import n` both as m.n and as m."""
    for child in ast.iter_child_nodes(node):
        if is_for_type_checkers(child):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = package.rsplit(".", child.level - 1)[0] if child.level else ""
            module = ".".join(filter(None, (base, child.module)))
            yield from (f"{module}.{alias.name}" for alias in child.names)
        else:
            yield from imported(child, package)


def graph_of(folder: Path) -> dict[str, set[str]]:
    """The modules below a folder, each with those of them that it imports."""
    paths = {name_of(path, folder): path for path in sorted(folder.rglob("*.py"))}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        package = name if path.stem == "__init__" else name.rpartition(".")[0]
        names = imported(ast.parse(path.read_text(encoding="utf-8")), package)
        graph[name] = {n if n in paths else n.rpartition(".")[0] for n in names} & set(paths) - {name}
    return graph


def lint(root: Path) -> list[str]:
    try:
        TopologicalSorter(graph_of(root / "python" / "dlbridge" / "nd")).prepare()
    except CycleError as error:
        return ["modules import one another in a circle: " + " <- ".join(error.args[1])]
    return []


def main(arguments: list[str]) -> int:
    found = lint(Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
