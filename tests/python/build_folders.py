"""Folders of what the tests compile, for as long as the session lasts."""

import shutil
import tempfile
from pathlib import Path

_made = []


def new(name):
    """An empty folder with `name` in its path."""
    _made.append(Path(tempfile.mkdtemp(prefix=f"dlbridge-{name}-")))
    return _made[-1]


def remove():
    """What was loaded from them stays loaded."""
    while _made:
        shutil.rmtree(_made.pop(), ignore_errors=True)
