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


@pytest.fixture(scope="session", autouse=True)
def libraries_of_the_fake_driver():
    """Where the driver is tests/cuda/fake_libcuda.c, so are NVIDIA's libraries."""
    if not nd.cuda.is_available() or not nd.cuda.Device(0).name.startswith("Fake"):
        yield
        return
    import fake_nvidia
    from dlbridge.nd import _nvidia

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_nvidia, "address", fake_nvidia.address)
        yield


@pytest.fixture
def arrays_there(device, monkeypatch):
    """New arrays are made on the test's device unless it says otherwise."""

    def beside(function):
        @functools.wraps(function)
        def make(*arguments, device=None, **keywords):
            return function(*arguments, device=there if device is None else device, **keywords)

        return make

    there = device

    for name in ("array", "asarray", "eye", "full", "ones", "zeros"):
        monkeypatch.setattr(nd, name, beside(getattr(nd, name)))
    monkeypatch.setattr(_native, "array", beside(_native.array))
