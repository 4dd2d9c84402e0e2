"""The lint of the package's imports finds a circle, also through functions, and passes the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CIRCLES = {
    "at the top": {"a": "from dlbridge.nd import b", "b": "import dlbridge.nd.a"},
    "in a function": {"a": "def f():\n    from dlbridge.nd.b import g", "b": "from dlbridge.nd.a import f"},
    "relative, through a third": {"a": "from . import b", "b": "from .c import f", "c": "from dlbridge.nd import a"},
    "with the package": {"__init__": "from . import a", "a": "def f():\n    import dlbridge.nd"},
}
ONE_WAY = {
    "for type checkers": {"a": "from . import b", "b": "if TYPE_CHECKING:\n    from dlbridge.nd import a"},
    "of other packages": {"a": "import dlbridge\nimport b", "b": "import a, dlbridge._core"},
}


def run_lint(root: Path) -> subprocess.CompletedProcess[str]:
    tool = str(ROOT / "tools" / "lint_imports.py")
    return subprocess.run([sys.executable, tool, str(root)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("modules", [pytest.param(m, id=name) for name, m in (CIRCLES | ONE_WAY).items()])
def test_circles_are_found(tmp_path: Path, modules: dict[str, str]) -> None:
    folder = tmp_path / "python" / "dlbridge" / "nd"
    folder.mkdir(parents=True)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    done = run_lint(tmp_path)
    assert done.returncode == (modules in CIRCLES.values()), done.stdout
    assert done.returncode == 0 or "dlbridge.nd.a" in done.stdout


def test_the_package_has_none() -> None:
    assert run_lint(ROOT).stdout == ""
