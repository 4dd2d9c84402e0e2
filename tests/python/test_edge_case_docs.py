"""docs/edge_cases.md: every row names a test that exists, or a reason."""

import ast
import functools
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
DOCUMENT = REPOSITORY / "docs" / "edge_cases.md"
ROWS = re.findall(r"^\| (?!---|rule |input and)(.*) \| (.*) \|$", DOCUMENT.read_text(), re.MULTILINE)


@functools.cache
def functions_of(file):
    paths = [path for folder in ("python", "cuda") if (path := REPOSITORY / "tests" / folder / file).exists()]
    return {
        node.name for path in paths for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)
    }


@pytest.mark.parametrize(("rule", "tests"), ROWS, ids=[rule for rule, _ in ROWS])
def test_a_row_has_tests_that_exist_or_a_reason(rule, tests):
    named = re.findall(r"`(\w+\.py)::(\w+)`", tests)
    assert [f"{file}::{name}" for file, name in named if name not in functions_of(file)] == []
    assert named or len(tests) > 20


def test_the_tables_are_found():
    assert len(ROWS) > 70
