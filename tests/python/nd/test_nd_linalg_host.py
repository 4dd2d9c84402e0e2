"""nd.linalg on the host by the LAPACK that NumPy has loaded: the same bits as NumPy's, with NumPy's way behind it."""

import sys
import threading
import time

import numpy as np
import pytest
from child_process import run_python
from dlbridge import nd
from dlbridge.nd._lapack import call
from test_nd_linalg import definite, values


def same(one, other):
    """The same bits, but where several threads of the library may have shared the work in another way."""
    assert one.dtype == other.dtype and one.shape == other.shape
    tolerance = 1e-4 * (np.finfo(other.dtype).eps ** 0.5) if other.shape and max(other.shape) > 32 else 0
    scale = float(np.max(np.abs(other)))
    np.testing.assert_allclose(np.asarray(one), other, rtol=tolerance, atol=tolerance * scale)


NATIVE = {
    "det": {},
    "slogdet": {},
    "inv": {},
    "cholesky": {},
    "eigh": {"UPLO": "U"},
    "eigvalsh": {},
    "svd": {"full_matrices": False},
    "svdvals": {},
    "qr": {"mode": "complete"},
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64"])
@pytest.mark.parametrize("shape", [(1,), (4,), (2, 3, 9), (70,)], ids=str)
@pytest.mark.parametrize("name", NATIVE)
def test_the_lapack_that_numpy_has_loaded_gives_the_bits_that_numpy_gets_from_it(name, shape, dtype):
    x = definite(shape, dtype)
    found = call(name, nd.asarray(x, device="cpu"), **NATIVE[name])
    wanted = getattr(np.linalg, name)(x, **NATIVE[name])
    for one, other in zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]:
        same(one, other)


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (2, 70, 40)], ids=str)
@pytest.mark.parametrize("keywords", [{"full_matrices": False}, {"full_matrices": True}], ids=str)
def test_so_it_is_of_matrices_that_are_not_square(shape, keywords):
    x = values(shape, "complex128")
    a = nd.asarray(x, device="cpu")
    pairs = zip(nd.linalg.svd(a, **keywords), np.linalg.svd(x, **keywords), strict=True)
    modes = ("complete", "r") if keywords["full_matrices"] else ("reduced", "raw")
    for mode in modes:
        one, other = nd.linalg.qr(a, mode), np.linalg.qr(x, mode)
        pairs = [*pairs, *(zip(one, other, strict=True) if isinstance(other, tuple) else [(one, other)])]
    for one, other in pairs:
        same(one, other)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 3, 4, 4)], ids=str)
def test_eigenvalues_of_any_matrix_come_with_conjugate_pairs(shape, dtype):
    x = values(shape, dtype)
    x = x.copy() if x.dtype.kind == "c" else (x * 4).astype(dtype)
    wanted = np.linalg.eig(x)
    complex_too = np.result_type(wanted[1].dtype, "complex64")
    found = nd.linalg.eig(nd.asarray(x, device="cpu"))
    for one, other in zip(found, wanted, strict=True):
        same(one, np.asarray(other).astype(complex_too))
    same(nd.linalg.eigvals(nd.asarray(x, device="cpu")), np.linalg.eigvals(x).astype(complex_too))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_eigenvalues_of_what_is_not_finite_are_refused(bad):
    x = nd.asarray([[1.0, bad], [0.0, 1.0]], device="cpu")
    for function in (nd.linalg.eig, nd.linalg.eigvals):
        with pytest.raises(np.linalg.LinAlgError):
            function(x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64"])
@pytest.mark.parametrize("columns", [None, 1, 3])
@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (4, 4), (3, 7), (60, 2)], ids=str)
@pytest.mark.parametrize("full_rank", [True, False])
def test_least_squares_are_numpys(full_rank, shape, columns, dtype):
    a = values(shape, dtype)
    if not full_rank:
        a[:, -1] = a[:, 0] if shape[1] > 1 else 0
    b = values((shape[0],) if columns is None else (shape[0], columns), dtype)
    found = nd.linalg.lstsq(nd.asarray(a, device="cpu"), nd.asarray(b, device="cpu"))
    for one, other in zip(found, np.linalg.lstsq(a, b, rcond=None), strict=True):
        other = np.asarray(other)
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-5)


def test_without_that_lapack_all_goes_by_numpys_functions():
    code = (
        "import numpy as np\nfrom dlbridge import nd\nfrom dlbridge.nd import _native\n"
        "x = nd.asarray(np.eye(3) * 2, device='cpu')\n"
        "assert _native.lapack('inv', x) is None\n"
        "assert nd.linalg.inv(x).tolist() == (np.eye(3) / 2).tolist() and nd.linalg.svdvals(x).tolist() == [2] * 3"
    )
    run_python(code, DLBRIDGE_BLAS="0")


def test_other_threads_run_while_lapack_works():
    x = nd.asarray(definite((700,), "float64"), device="cpu")
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(None)
            time.sleep(0)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        while not ticks:
            time.sleep(0)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(60)  # nobody is asked to give the GIL away
        try:
            before = len(ticks)
            nd.linalg.eigvalsh(x)
            after = len(ticks)
        finally:
            sys.setswitchinterval(interval)
    finally:
        done.set()
        thread.join()
    assert after > before
