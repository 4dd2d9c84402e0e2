"""Importing what is installed, quietly; what cannot be imported is a reason, not an error."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator

from dlbridge.tests._results import Import
from dlbridge.tests.frameworks import Bench, Framework

# Set only where the user has not: TensorFlow's log lines would drown the table, jax would take most of the GPU, and a
# stream that waits for a gate would hold up those that share its connection to the GPU.
_ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "GLOG_minloglevel": "2",
    "CUDA_DEVICE_MAX_CONNECTIONS": "32",
}
_KEPT_CHARACTERS = 500


class Captured:
    """What was written while it was captured."""

    text = ""


@contextlib.contextmanager
def captured() -> Iterator[Captured]:
    """Takes what is written to file descriptors 1 and 2, by C and C++ code as well as by Python."""
    result = Captured()
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile())
            saved = [(number, os.dup(number)) for number in (1, 2)]
        except OSError:  # no descriptors left, or no standard streams at all
            yield result
            return
        _flush()
        for number, _ in saved:
            os.dup2(file.fileno(), number)
        try:
            yield result
        finally:
            _flush()
            for number, copy in saved:
                os.dup2(copy, number)
                os.close(copy)
            file.seek(0)
            result.text = file.read(_KEPT_CHARACTERS).decode(errors="replace").strip()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed, or replaced by something that is no file
            stream.flush()


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def version_of(framework: Framework) -> str:
    """The version that its distribution or its module names; "?" where neither does."""
    top = framework.module.partition(".")[0]
    for distribution in filter(None, (framework.distribution, top)):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(distribution)
    version = getattr(sys.modules.get(top), "__version__", None)
    return version if isinstance(version, str) else "?"


def installed(framework: Framework) -> bool:
    """Whether its top-level package is there; imports nothing."""
    top = framework.module.partition(".")[0]
    try:
        if top == "dlbridge":  # a part of this package that may not be built in
            return importlib.util.find_spec(framework.module) is not None
        return not top or top in sys.modules or importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return False


def prepare_environment() -> None:
    """Before the first framework is imported."""
    for key, value in _ENVIRONMENT.items():
        os.environ.setdefault(key, value)


def load(framework: Framework) -> tuple[Bench | None, Import | str]:
    """The framework's bench and how the import went; None and the reason where it cannot be had."""
    if not installed(framework):
        return None, "not installed"
    started, threads = time.perf_counter(), _threads()
    with captured() as output:
        try:
            bench = Bench(framework)
        except (Exception, SystemExit) as error:  # an installed framework may fail in any way: a library, a driver
            return None, _reason(framework, error)
    module = sys.modules.get(framework.module.partition(".")[0])
    return bench, Import(
        version=version_of(framework),
        seconds=round(time.perf_counter() - started, 3),
        threads=max(0, _threads() - threads),
        printed=output.text,
        path=getattr(module, "__file__", None) or "",
    )


def _reason(framework: Framework, error: BaseException) -> str:
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing and framework.module.startswith(missing):  # a namespace package, or one that is not built in
        return "not installed"
    return f"{type(error).__name__}: {error}".splitlines()[0]


def load_all(
    frameworks: Iterable[Framework], on_load: Callable[[str], None] = lambda name: None
) -> tuple[dict[str, Bench], dict[str, Import], dict[str, str]]:
    """(benches, how their imports went, why the others are absent), each by name."""
    prepare_environment()
    benches: dict[str, Bench] = {}
    imports: dict[str, Import] = {}
    absent: dict[str, str] = {}
    for framework in frameworks:
        on_load(framework.name)
        bench, how = load(framework)
        if bench is None or isinstance(how, str):
            absent[framework.name] = str(how)
            continue
        benches[framework.name], imports[framework.name] = bench, how
    return benches, imports, absent
