"""What every test here shares: GPU tests are skipped by name without a GPU, and no test may leave a tensor alive."""

import gc
import os
import sys
import time
from importlib.util import find_spec

import build_folders
import pytest
from dlbridge import _core

# A stream that waits must not hold up one that shares its connection to the GPU. Read when the driver starts.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
# Ray's own: it tells nobody of a run here, and ends no workers where others take the machine's memory.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_memory_monitor_refresh_ms", "0")


# Each has an LLVM of its own. Behind TensorFlow's, that of Triton, which torch may load at any time, crashes.
if find_spec("tensorflow") is not None and find_spec("triton") is not None:
    import triton  # noqa: F401


def pytest_collection_modifyitems(items):
    unstable = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if unstable:  # the workers of pytest-xdist must all collect the same
        raise pytest.UsageError(f"test ids with addresses in them, which differ in each process: {unstable}")
    info = _core.cuda_info()
    if info["available"]:
        return
    skip = pytest.mark.skip(reason=f"no CUDA device: {info['reason']}")
    for item in items:
        if item.get_closest_marker("gpu") is not None:
            item.add_marker(skip)


def pytest_sessionfinish():
    build_folders.remove()


def pytest_runtest_logreport(report):
    """A run that is cut off has said what failed, and why."""
    path = os.environ.get("DLBRIDGE_FAILURES")
    if report.failed and path and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(path, "a") as file:
            file.write(f"==== {report.when} of {report.nodeid}\n{report.longreprtext}\n")


_failed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed or call.excinfo is not None:
        item.stash[_failed] = True
    return report


@pytest.fixture(scope="module")
def ext():
    """The extension module of tests/pybind."""
    import caster_support

    return caster_support.load()


@pytest.fixture
def maker():
    """Makes Arrow's structs: each is released once, and none twice, by the end of the test."""
    from arrow_support import Maker, base_of

    made = Maker()
    yield made
    gc.collect()
    assert len(made.released) == made.made
    assert not any(base_of(s.struct).release for s in made.structs)


@pytest.fixture(scope="module", autouse=True)
def shared_gpu():
    """What a module's tests leave in the pools of this process, the workers beside it can have."""
    yield
    for name in ("torch", "cupy", "dlbridge.nd"):
        module = sys.modules.get(name)
        if module is None or not _core.cuda_info()["available"]:
            continue
        if name == "torch":
            module.cuda.empty_cache()  # does nothing where CUDA was not used
        elif name == "cupy":
            module.get_default_memory_pool().free_all_blocks()
        else:
            module.cuda.get_default_memory_pool().free_all_blocks()


@pytest.fixture(scope="module", autouse=True)
def frozen_heap():
    """The collector leaves alone what was there before: frameworks keep millions of objects, leak checks collect."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def nothing_leaks(request):
    """Fails the test after which more tensors, exports or copies live than before it."""
    before = _core.live_counts()
    yield
    if request.node.stash.get(_failed, False):
        return  # the traceback keeps the locals of the test
    after = _core.live_counts()
    until = time.monotonic() + 10
    if after != before:
        random = sys.modules.get("dlbridge.nd.random")
        if random is not None:
            random.get_random_state()._tables.clear()  # kept on purpose, by the generator that all share
        compiled = sys.modules.get("dlbridge.nd._compiled")
        if compiled is not None:
            compiled.clear_caches()  # likewise: what was recorded of functions that are one kernel on a device
        gc.collect()  # slow beside large frameworks: only where a cycle may be the reason
        after = _core.live_counts()
    while any(after[kind] > before[kind] for kind in before) and time.monotonic() < until:
        time.sleep(0.01)  # JAX lets go on threads of its own, once the device, or a busy host, is through
        after = _core.live_counts()
    assert all(after[kind] <= before[kind] for kind in before), f"the test leaks: {before} before, {after} after"
