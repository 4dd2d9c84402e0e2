"""Every test of the ndarray runs on the host, and once more on the GPU where there is one."""

import functools
import pathlib
import sys

import pytest
from dlbridge import nd
from dlbridge.nd import _native

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))  # tests/oracle, which they share with programs


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    return request.param


@pytest.fixture
def arrays_on_the_host(monkeypatch):
    """New arrays are the host's unless a test says otherwise: for what arrays of a device are refused by."""

    def beside(function):
        @functools.wraps(function)
        def make(*arguments, device=None, **keywords):
            return function(*arguments, device="cpu" if device is None else device, **keywords)

        return make

    for name in ("array", "asarray", "eye", "full", "ones", "zeros"):
        monkeypatch.setattr(nd, name, beside(getattr(nd, name)))
    monkeypatch.setattr(_native, "array", beside(_native.array))
