"""docs/edge_cases.md: every number has a row, every row a test that exists or a reason."""

import ast
import functools
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
DOCUMENT = REPOSITORY / "docs" / "edge_cases.md"
EDGE_CASES = range(1, 43)
FAULTS = [*range(1, 25), 26, 28, 29, 30, 31, 32, 34]


def rows(heading):
    """{number: the cell of its tests} of the table under a heading."""
    section = DOCUMENT.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return {int(number): cell for number, cell in re.findall(r"^\| (\d+) \|.*\| (.*) \|$", section, re.MULTILINE)}


def references():
    return sorted(set(re.findall(r"`(\w+\.py)::(\w+)`", DOCUMENT.read_text())))


@functools.cache
def functions_of(file):
    paths = [path for folder in ("python", "cuda") if (path := REPOSITORY / "tests" / folder / file).exists()]
    return {
        node.name for path in paths for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)
    }


@pytest.mark.parametrize(("heading", "numbers"), [("Edge cases", EDGE_CASES), ("Faults and bad inputs", FAULTS)])
def test_every_number_has_a_row_with_a_test_or_a_reason(heading, numbers):
    table = rows(heading)
    assert list(table) == list(numbers)
    assert [number for number, cell in table.items() if len(cell.strip()) < 20] == []


def test_the_tests_that_are_named_exist():
    missing = [f"{file}::{name}" for file, name in references() if name not in functions_of(file)]
    assert missing == []


@pytest.mark.parametrize(("heading", "letter"), [("Edge cases", "e"), ("Faults and bad inputs", "f")])
def test_every_row_has_a_test_that_carries_its_number(heading, letter):
    # Fault 19's array is edge case 24's; what it asks of consumers is in test_convert.py.
    borrowed = {("f", 19)}
    without = [n for n, cell in rows(heading).items() if f"_{letter}{n:02d}_" not in cell]
    assert [n for n in without if (letter, n) not in borrowed] == []
