"""A fused kernel gives what its operations give one by one, on a GPU, to the last bit."""

import numpy as np
import pytest
from dlbridge import nd
from fused_support import COMPLEX, DTYPES, FLOATS, NAMES, assert_same_values, is_exact, operands
from nd_support import host

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def compiler(tmp_path, monkeypatch):
    from dlbridge.nd._kernels import nvrtc

    monkeypatch.setenv("DLBRIDGE_CACHE_DIR", str(tmp_path))
    try:
        nvrtc.compiler()
    except RuntimeError as error:
        pytest.skip(f"no NVRTC: {str(error).splitlines()[0]}")


def put(array, dtype):
    return nd.array(array, dtype if array.dtype != bool else "bool", device="cuda")


def cases(dtype):
    """(name, its operands) of all operations that take the dtype and that fused kernels have for it."""
    for name in NAMES:
        if dtype in COMPLEX and dtype not in getattr(nd, name)._fused_types:
            continue
        arguments = [put(x, dtype) for x in operands(name, dtype)]
        try:
            yield name, arguments, getattr(nd, name)(*arguments)
        except TypeError:
            continue


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_gives_the_same_bits(dtype):
    found = list(cases(dtype))
    assert len(found) > 20
    for start in range(0, len(found), 8):
        part = found[start : start + 8]
        spans, arguments = [], []
        for name, given, _ in part:
            spans.append((name, len(arguments), len(arguments) + len(given)))
            arguments += given
        fused = nd.fuse(lambda *x, spans=spans: tuple(getattr(nd, name)(*x[a:b]) for name, a, b in spans))
        for (name, _, eager), got in zip(part, fused(*arguments), strict=True):
            assert got.dtype == eager.dtype, name
            exact = is_exact(name, dtype)
            if not exact and dtype in COMPLEX:  # by another library, which is right for ordinary numbers
                continue
            assert_same_values(host(got), host(eager), f"{name} of {dtype}", 0 if exact else 4)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_chains_of_arithmetic_give_the_same_bits(dtype):
    """No product and sum become one instruction across operations."""
    chains = {
        "axpy": lambda a, b, c: a * b + c,
        "difference": lambda a, b, c: c - a * b,
        "squares": lambda a, b, c: nd.square(a) - nd.square(b) + c,
        "quotient": lambda a, b, c: (a + b * c) / (a * c - b),
        "conjugate": lambda a, b, c: a * nd.conj(b) + c * a,
    }
    rng = np.random.default_rng(5)
    parts = rng.normal(size=(6, 4096))
    arrays = [x + 1j * y if dtype in COMPLEX else x for x, y in parts.reshape(3, 2, -1)]
    arguments = [nd.array(x, device="cuda").astype(dtype) for x in arrays]
    for name, chain in chains.items():
        assert_same_values(host(nd.fuse(chain)(*arguments)), host(chain(*arguments)), f"{name} of {dtype}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_casts_give_the_same_bits(dtype):
    (x,) = (put(x, dtype) for x in operands("positive", dtype))
    real = dtype not in COMPLEX
    if dtype in FLOATS or not real:  # what no integer holds, C++ leaves open
        x = nd.where(nd.isfinite(x) & (abs(x) < 100), x, nd.zeros((), dtype=dtype, device="cuda"))
    targets = DTYPES if real else COMPLEX
    fused = nd.fuse(lambda x: tuple(x.astype(t) for t in targets))
    for target, got in zip(targets, fused(x), strict=True):
        assert_same_values(host(got), host(x.astype(target)), f"{dtype} to {target}")
