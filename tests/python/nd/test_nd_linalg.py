"""nd.linalg against numpy.linalg: dtypes, stacks, layouts, results. What it refuses: test_nd_linalg_refused.py."""

import itertools

import numpy as np
import pytest
from dlbridge import nd

pytestmark = pytest.mark.usefixtures("arrays_there")

DTYPES = ["int32", "bool", "float16", "float32", "float64", "complex64", "complex128"]
RTOL = {"float16": 4e-3, "float32": 2e-4, "complex64": 2e-4, "float64": 1e-10, "complex128": 1e-10}


def values(shape, dtype, seed=7):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 3.5, shape)
    return (x + 1j * rng.uniform(0.5, 2.5, shape) if dtype.startswith("complex") else x).astype(dtype)


def square(shape, dtype):
    """Matrices that are well conditioned, and not symmetric."""
    x = values((*shape, shape[-1]), dtype)
    return (x + 4 * shape[-1] * np.eye(shape[-1])).astype(dtype) if dtype != "bool" else np.tril(np.ones_like(x))


def definite(shape, dtype):
    """Hermitian, positive definite."""
    x = square(shape, dtype).astype(np.result_type(dtype, "float32"))
    return ((x @ x.conj().swapaxes(-1, -2)) / 16).astype(dtype) if dtype != "bool" else np.eye(shape[-1], dtype=bool)


def close(got, want, dtype, least=1e-30):
    """As NumPy's, within the error of the largest element, or of a number `least` where that is larger."""
    assert isinstance(got, nd.ndarray) and got.shape == np.shape(want), (got.shape, np.shape(want))
    assert got.dtype == np.asarray(want).dtype.name
    tolerance = RTOL.get(dtype, 1e-10)
    scale = float(np.max(np.abs(want), initial=least, where=np.isfinite(want)))
    np.testing.assert_allclose(nd.asnumpy(got), want, rtol=tolerance, atol=tolerance * scale)


def by_numpy(function, *arrays, **keywords):
    """NumPy's result; for float16, which it refuses, that of float32 rounded."""
    if all(x.dtype != "float16" for x in arrays):
        return function(*arrays, **keywords)
    found = function(*(x.astype("float32") for x in arrays), **keywords)
    return [np.asarray(x, "float16") for x in found] if isinstance(found, tuple) else np.asarray(found, "float16")


# --- against NumPy: results that are unique -------------------------------------------------------------------------

SHAPES = [(0,), (1,), (3,), (2, 4), (2, 0, 3), (3, 0)]  # of square matrices, less their last extent
UNIQUE = {
    "cholesky": definite,
    "det": square,
    "inv": square,
    "slogdet": square,
    "eigvalsh": definite,
    "pinv": square,
    "svdvals": square,
    "matrix_rank": square,
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNIQUE)
def test_every_dtype_and_shape_as_numpy(name, dtype, shape):
    if name == "matrix_rank" and shape[-1] == 0:
        pytest.skip("NumPy 2.2 has no rank of nothing: see test_ranks_of_nothing")
    x = UNIQUE[name](shape, dtype)
    before = x.copy()
    with np.errstate(all="ignore"):  # float16 has no room for large determinants
        want = by_numpy(getattr(np.linalg, name), x.astype("float64") if x.dtype.kind in "bi" else x)
    got = getattr(nd.linalg, name)(nd.asarray(x))
    if name == "matrix_rank":
        assert got.dtype == "int64" and got.tolist() == np.asarray(want).tolist()
    elif name == "slogdet":
        for one, other in zip(got, want, strict=True):
            close(one, other, dtype)
    else:
        close(got, want, dtype)
    np.testing.assert_array_equal(x, before)


LAYOUTS = {
    "columns": np.asfortranarray,
    "every other": lambda x: np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2],
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "transposed": lambda x: x.T.copy().T,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", UNIQUE)
def test_layouts(name, layout):
    x = LAYOUTS[layout](UNIQUE[name]((4,), "float64"))
    x.flags.writeable = False
    got, want = getattr(nd.linalg, name)(nd.asarray(x)), getattr(np.linalg, name)(x)
    for one, other in zip(got, want, strict=True) if name == "slogdet" else [(got, want)]:
        np.testing.assert_allclose(nd.asnumpy(one), other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(33,), (70, 7), (3, 40), (2, 130), (270,), (2, 260)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_sizes_that_have_routines_of_their_own(dtype, shape):
    x, h = square(shape, dtype), definite(shape, dtype)
    b = values((*shape, 3), dtype)
    for name, given in (("inv", [x]), ("solve", [x, b]), ("cholesky", [h]), ("eigvalsh", [h])):
        close(getattr(nd.linalg, name)(*map(nd.asarray, given)), getattr(np.linalg, name)(*given), dtype)
    for one, other in zip(nd.linalg.slogdet(nd.asarray(x)), np.linalg.slogdet(x), strict=True):
        close(one, other, dtype)
    w, v = nd.linalg.eigh(nd.asarray(h))
    close(v * w[..., None, :].astype(dtype) @ adjoint(v), h, dtype)


def test_broadcast_matrices():
    x = np.broadcast_to(square((3,), "float64"), (5, 3, 3))
    close(nd.linalg.inv(nd.asarray(x)), np.linalg.inv(x), "float64")


@pytest.mark.parametrize("name", ["cholesky", "inv", "svdvals", "eigvalsh"])
def test_bfloat16_by_way_of_float32(name):
    x = nd.asarray(definite((3,), "float32")).astype("bfloat16")
    want = getattr(nd.linalg, name)(x.astype("float32")).astype("bfloat16")
    got = getattr(nd.linalg, name)(x)
    assert got.dtype == "bfloat16" and got.tolist() == want.tolist()


def test_sequences_are_taken():
    assert nd.linalg.det([[1, 2], [3, 4]]).item() == pytest.approx(-2)
    assert nd.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]]).tolist() == [4.0, 3.0]


# --- decompositions, by what they are products of ---------------------------------------------------------------------


def adjoint(x):
    return nd.conj(x.mT)


def same(got, want, dtype):
    close(got, nd.asnumpy(want), dtype)


RECTANGLES = [(3, 5), (5, 3), (4, 4), (2, 3, 4), (0, 3, 2), (2, 0, 3), (3, 0), (1, 1)]
RECTANGLES += [(70, 6, 5), (70, 5, 6), (2, 45, 33), (40, 45), (50, 41), (2, 41, 41)]  # other routines of the libraries
LAPACKS = ["float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", RECTANGLES, ids=str)
@pytest.mark.parametrize("dtype", LAPACKS)
def test_qr(dtype, shape, mode):
    x = nd.asarray(values(shape, dtype))
    m, n = shape[-2:]
    k = min(m, n) if mode == "reduced" else m
    found = nd.linalg.qr(x, mode=mode)
    q, r = found
    assert type(found).__name__ == "QRResult" and found.Q is q and found.R is r
    assert q.shape == (*shape[:-2], m, k) and r.shape == (*shape[:-2], k, n) and q.dtype == r.dtype == dtype
    same(q @ r, x, dtype)
    same(adjoint(q) @ q, nd.broadcast_to(nd.eye(k, dtype=dtype), (*shape[:-2], k, k)), dtype)
    same(nd.triu(r), r, dtype)
    same(nd.linalg.qr(x, "r"), nd.linalg.qr(x).R, dtype)


def test_qr_raw_is_lapacks():
    x = values((4, 3), "float64")
    got, want = nd.linalg.qr(nd.asarray(x), "raw"), np.linalg.qr(x, "raw")
    assert type(got) is tuple
    for one, other in zip(got, want, strict=True):
        close(one, other, "float64")


@pytest.mark.parametrize(("n", "batch"), [(32, 512), (33, 511), (33, 512), (48, 512), (49, 512)])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_eigh_of_many_small_matrices(dtype, n, batch):
    x = values((batch, n, n), dtype)
    x = nd.asarray(x + np.conj(np.swapaxes(x, 1, 2)))
    w, v = nd.linalg.eigh(x)
    there = nd.asnumpy((v * w[:, None, :]) @ nd.conj(nd.matrix_transpose(v)))
    np.testing.assert_allclose(there, nd.asnumpy(x), rtol=1e-3, atol=2e-3)
    assert bool((w[:, 1:] >= w[:, :-1]).all())


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [*RECTANGLES, (70, 5), (5, 70), (2, 66, 32), (66, 33)], ids=str)
@pytest.mark.parametrize("dtype", LAPACKS)
def test_svd(dtype, shape, full):
    x = nd.asarray(values(shape, dtype))
    m, n = shape[-2:]
    k = min(m, n)
    found = nd.linalg.svd(x, full_matrices=full)
    u, s, vh = found
    assert type(found).__name__ == "SVDResult" and found._fields == ("U", "S", "Vh")
    assert u.shape == (*shape[:-2], m, m if full else k) and vh.shape == (*shape[:-2], n if full else k, n)
    assert s.shape == (*shape[:-2], k) and s.dtype == nd.finfo(dtype).dtype
    same((u[..., :k] * s[..., None, :].astype(dtype)) @ vh[..., :k, :], x, dtype)
    same(nd.linalg.svd(x, compute_uv=False), s, dtype)
    same(nd.linalg.svdvals(x), s, dtype)


@pytest.mark.parametrize("shape", [*SHAPES, (32,), (33,), (40,), (41,)], ids=str)  # and beside where routines change
@pytest.mark.parametrize("dtype", LAPACKS)
def test_eigh(dtype, shape):
    x = nd.asarray(definite(shape, dtype))
    found = nd.linalg.eigh(x)
    assert type(found).__name__ == "EighResult" and found._fields == ("eigenvalues", "eigenvectors")
    w, v = found
    assert w.dtype == nd.finfo(dtype).dtype and v.dtype == dtype and v.shape == x.shape
    same(x @ v, v * w[..., None, :].astype(dtype), dtype)
    same(nd.linalg.eigvalsh(x), w, dtype)
    same(nd.linalg.svdvals(x)[..., ::-1], w, dtype)


@pytest.mark.parametrize("uplo", ["L", "U", "l"])
def test_the_other_triangle_is_not_read(uplo):
    x = definite((4,), "float64")
    keep = np.tril if uplo.upper() == "L" else np.triu
    spoilt = nd.asarray(np.where(keep(np.ones_like(x)) == 1, x, np.nan))
    np.testing.assert_allclose(nd.asnumpy(nd.linalg.eigvalsh(spoilt, uplo)), np.linalg.eigvalsh(x))
    np.testing.assert_allclose(nd.asnumpy(nd.linalg.eigh(spoilt, uplo).eigenvalues), np.linalg.eigvalsh(x))
    factor = nd.linalg.cholesky(spoilt, upper=uplo == "U")
    want = np.linalg.cholesky(x)
    np.testing.assert_allclose(nd.asnumpy(factor), want.T if uplo == "U" else want)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", LAPACKS)
def test_an_upper_cholesky_factor(dtype, shape):
    x = nd.asarray(definite(shape, dtype))
    u = nd.linalg.cholesky(x, upper=True)
    same(nd.triu(u), u, dtype)
    same(adjoint(u) @ u, x, dtype)


@pytest.mark.parametrize("make", [square, definite])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float16", *LAPACKS])
def test_eig_is_complex_whatever_the_eigenvalues_are(dtype, shape, make):
    x = nd.asarray(make(shape, dtype))
    kind = "complex64" if dtype in ("float16", "float32", "complex64") else "complex128"
    found = nd.linalg.eig(x)
    assert type(found).__name__ == "EigResult" and found._fields == ("eigenvalues", "eigenvectors")
    w, v = found
    assert w.dtype == v.dtype == kind and v.shape == x.shape
    same(x.astype(kind) @ v, v * w[..., None, :], kind)
    alone = nd.linalg.eigvals(x)
    assert alone.dtype == kind
    same(alone.sum(axis=-1), w.sum(axis=-1), kind)


# --- solvers ---------------------------------------------------------------------------------------------------------

SYSTEMS = [
    ((3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((4, 3, 3), (3,)),
    ((4, 3, 3), (3, 2)),
    ((4, 3, 3), (4, 3, 2)),
    ((3, 3), (4, 3, 2)),
    ((2, 1, 3, 3), (5, 3, 1)),
    ((0, 0), (0,)),
    ((0, 0), (0, 2)),
    ((0, 3, 3), (3, 2)),
    ((3, 3), (3, 0)),
]


@pytest.mark.parametrize(("of", "right"), SYSTEMS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_solve(dtype, of, right):
    a, b = square(of[:-1], dtype), values(right, dtype)
    wide = "float32" if dtype == "float16" else dtype
    column = b[:, None] if b.ndim == 1 else b
    want = np.linalg.solve(a.astype(wide), column.astype(wide))
    want = want.astype("float16") if dtype == "float16" else want
    got = nd.linalg.solve(nd.asarray(a), nd.asarray(b))
    close(got, want[..., 0] if b.ndim == 1 else want, dtype)


@pytest.mark.parametrize("pair", list(itertools.product(DTYPES, repeat=2)), ids="-".join)
def test_solve_promotes(pair):
    a, b = nd.eye(2, dtype=pair[0]), nd.ones((2, 2), dtype=pair[1])
    floats = [one if one.startswith(("float", "complex")) else "float64" for one in pair]
    assert nd.linalg.solve(a, b).dtype == nd.result_type(*map(nd.dtype, floats))


@pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5), (4, 4), (0, 3), (3, 0), (70, 5), (5, 70)])
@pytest.mark.parametrize("columns", [None, 1, 2])
@pytest.mark.parametrize("dtype", LAPACKS)
def test_lstsq(dtype, m, n, columns):
    a, b = values((m, n), dtype), values((m,) if columns is None else (m, columns), dtype, 9)
    found = nd.linalg.lstsq(nd.asarray(a), nd.asarray(b))
    assert type(found) is tuple
    for got, want in zip(found, np.linalg.lstsq(a, b, rcond=None), strict=True):
        close(got, want, dtype)


def test_tolerances_decide_what_counts_as_zero():
    x = nd.asarray(np.diag([4.0, 1.0, 1e-3]))
    stack = nd.stack([x, x])
    assert nd.linalg.matrix_rank(x).item() == 3
    assert nd.linalg.matrix_rank(x, 0.5).item() == nd.linalg.matrix_rank(x, rtol=0.2).item() == 2
    assert nd.linalg.matrix_rank(stack, rtol=nd.asarray([1e-9, 0.5])).tolist() == [3, 1]
    assert nd.linalg.matrix_rank(stack, [0.5, 2.0]).tolist() == [2, 1]
    assert nd.linalg.matrix_rank(-x, hermitian=True).item() == 3
    for keywords in ({"rcond": 0.5}, {"rtol": 0.5}, {"rtol": 0.5, "hermitian": True}):
        np.testing.assert_allclose(nd.asnumpy(nd.linalg.pinv(x, **keywords)), np.diag([0.25, 0, 0]), atol=1e-15)
    by_matrix = nd.linalg.pinv(stack, rtol=nd.asarray([1e-9, 0.5]))
    np.testing.assert_allclose(nd.asnumpy(by_matrix)[:, 2, 2], [1e3, 0], atol=1e-12)
    assert nd.linalg.lstsq(x, nd.ones(3), 0.5)[2].item() == 1


def test_ranks_by_the_eps_of_the_dtype():
    x = np.diag([1.0, 1e-9])
    assert nd.linalg.matrix_rank(nd.asarray(x)).item() == 2
    assert nd.linalg.matrix_rank(nd.asarray(x.astype("float32"))).item() == 1
    assert nd.linalg.pinv(nd.asarray(x.astype("float32"))).tolist() == [[1, 0], [0, 0]]
    assert nd.linalg.matrix_rank(nd.asarray([60000.0, 1.0], "float16") * nd.eye(2, dtype="float16")).item() == 2
    assert nd.linalg.matrix_rank(nd.asarray([0, 0])).item() == 0 and nd.linalg.matrix_rank(nd.asarray(2)).item() == 1


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 3, 0), (0, 2, 2)], ids=str)
def test_ranks_of_nothing(shape):
    for hermitian in {False, shape[-1] == shape[-2]}:
        got = nd.linalg.matrix_rank(nd.zeros(shape), hermitian=hermitian)
        assert got.dtype == "int64" and got.tolist() == np.zeros(shape[:-2]).tolist()


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (40, 3), (3, 40)], ids=str)
@pytest.mark.parametrize("dtype", LAPACKS)
def test_pinv_of_rectangles(dtype, shape):
    x = values((3, *shape), dtype)
    close(nd.linalg.pinv(nd.asarray(x)), np.linalg.pinv(x), dtype)


@pytest.mark.parametrize("n", [-1, -2, -3, -5])
@pytest.mark.parametrize("dtype", ["int32", *LAPACKS])
def test_negative_powers(dtype, n):
    x = square((2, 3), dtype)
    close(nd.linalg.matrix_power(nd.asarray(x), n), np.linalg.matrix_power(x, n), dtype)


def test_tensor_equations():
    a = values((2, 3, 6), "float64")
    close(nd.linalg.tensorsolve(nd.asarray(a), nd.ones((2, 3))), np.linalg.tensorsolve(a, np.ones((2, 3))), "float64")
    b = values((6, 2, 3), "float64") + np.eye(6).reshape(6, 2, 3) * 9
    want = np.linalg.tensorsolve(b, np.ones((2, 3)), axes=(0,))
    for axes in ((0,), (-3,), [0]):
        close(nd.linalg.tensorsolve(nd.asarray(b), nd.ones((2, 3)), axes), want, "float64")
    close(nd.linalg.tensorinv(nd.asarray(a)), np.linalg.tensorinv(a), "float64")
    close(nd.linalg.tensorinv(nd.asarray(b), ind=1), np.linalg.tensorinv(b, ind=1), "float64")


# --- norms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [(0, 1), (2, 0), (-1, -2)], ids=str)
@pytest.mark.parametrize("ord", [2, -2, "nuc"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_by_singular_values(dtype, ord, axis):
    x = values((3, 4, 5), dtype)
    for keepdims in (False, True):
        want = by_numpy(np.linalg.norm, x, ord=ord, axis=axis, keepdims=keepdims)
        least = np.max(np.abs(x)).astype(float)  # the smallest singular value is a difference of such numbers
        close(nd.linalg.norm(nd.asarray(x), ord, axis, keepdims), want, dtype, least)
        if axis == (-1, -2):
            close(nd.linalg.matrix_norm(nd.asarray(x), ord=ord, keepdims=keepdims), want, dtype, least)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (0, 2, 2)], ids=str)
def test_norms_of_nothing(shape):
    x = nd.zeros(shape)
    for ord in (2, "nuc"):
        assert nd.linalg.matrix_norm(x, ord=ord).tolist() == nd.zeros(shape[:-2]).tolist()


@pytest.mark.parametrize("p", [None, 1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"])
@pytest.mark.parametrize("dtype", LAPACKS)
def test_cond(dtype, p):
    x = square((2, 3), dtype)
    close(nd.linalg.cond(nd.asarray(x), p), np.linalg.cond(x, p), dtype)


@pytest.mark.parametrize("p", [1, -1, np.inf, -np.inf, "fro"])
@pytest.mark.parametrize("is_large", [False, True])
def test_cond_of_singular_matrices_is_infinite_and_that_of_others_beside_them_is_not(p, is_large):
    x = np.array([[[1.0, 2], [2, 4]], [[1, 2], [3, 4]], [[0, 0], [0, 0]], [[np.nan, 1], [1, 1]]])
    if is_large:
        wide = np.tile(np.eye(42), (4, 1, 1))
        wide[:, :2, :2] = x
        x = wide
    found = nd.asnumpy(nd.linalg.cond(nd.asarray(x), p))
    np.testing.assert_allclose(found, np.linalg.cond(x, p), rtol=1e-12)
    assert nd.linalg.cond(nd.ones((2, 2)), 1).item() == np.inf


# --- results ----------------------------------------------------------------------------------------------------------


def test_operands_and_results_are_not_copied_on_the_host(monkeypatch):
    x, seen = nd.asarray(square((3,), "float64"), device="cpu"), []

    def inverse(a, **_):
        seen.append((a, np.eye(3)))
        return seen[-1][1]

    monkeypatch.setattr(np.linalg, "pinv", inverse)
    y = nd.linalg.pinv(x, hermitian=True)
    (operand, result), *_ = seen
    assert operand.ctypes.data == x.data_ptr and result.ctypes.data == y.data_ptr and not y.readonly
    y[0, 0] = 5
    assert result[0, 0] == 5


def test_numpys_functions_dispatch_here():
    x = nd.asarray(definite((3,), "float64"))
    for name in ("cholesky", "cond", "det", "eigvals", "eigvalsh", "inv", "matrix_rank", "pinv", "svdvals"):
        if hasattr(np.linalg, name):
            assert isinstance(getattr(np.linalg, name)(x), nd.ndarray), name
    for name in ("eig", "eigh", "qr", "slogdet", "svd"):
        assert all(isinstance(part, nd.ndarray) for part in getattr(np.linalg, name)(x)), name
    assert isinstance(np.linalg.solve(x, x), nd.ndarray)


def test_out_of_multi_dot(device):
    x = nd.asarray([[1.0, 2.0], [3.0, 4.0]], device=device)
    out = nd.zeros((2, 2), device=device)
    assert nd.linalg.multi_dot([x, x, x], out=out) is out and out.tolist() == (x @ x @ x).tolist()
    small = nd.zeros(2, device=device)
    with pytest.raises(ValueError, match="out has shape"):
        nd.linalg.multi_dot([x, x, x], out=small)
    assert small.tolist() == [0, 0]


@pytest.mark.parametrize("turn", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 1, 4), (2, 40)], ids=str)
def test_results_lie_in_c_order_however_the_matrices_lie(shape, turn):
    x = nd.asarray(definite(shape, "float32"))
    x = nd.matrix_transpose(nd.matrix_transpose(x).copy()) if turn else x
    tall = x[..., : shape[-1] - 1]
    found = [nd.linalg.cholesky(x), nd.linalg.inv(x), nd.linalg.solve(x, x), nd.linalg.solve(x, x[..., :1])]
    found += [*nd.linalg.eigh(x), *nd.linalg.qr(x), *nd.linalg.qr(tall, "complete"), *nd.linalg.qr(tall)]
    found += [*nd.linalg.svd(x), *nd.linalg.svd(tall, full_matrices=False)]
    assert [part.flags.c_contiguous for part in found] == [True] * len(found)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (40,)], ids=str)
def test_svd_of_a_matrix_that_is_not_finite_is_refused(device, shape, bad):
    if device == "cpu" and bad == np.inf:
        pytest.skip("LAPACK gives nan")
    x = values((*shape, shape[-1]), "float32")
    x.reshape(-1)[-1] = bad
    with pytest.raises(nd.linalg.LinAlgError, match="nan or inf"):
        nd.linalg.svd(nd.asarray(x))
    with pytest.raises(nd.linalg.LinAlgError, match="nan or inf"):  # a long one
        nd.linalg.svd(nd.concatenate([nd.asarray(x.reshape(-1, 1))] * 20), False)


def test_the_host_waits_for_a_device_once_and_last(device, monkeypatch):
    """Behind all that the device has to do, which runs meanwhile."""
    from dlbridge.nd import _cusolver, _device_linalg, _native

    done = []

    def noted(module, name):
        function = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, **keywords: (done.append(name), function(*given, **keywords))[1]
        )

    for module, name in [(_cusolver, "succeeded"), (_device_linalg, "succeeded"), (_device_linalg, "_finite")]:
        noted(module, name)
    noted(_native, "where")
    noted(_device_linalg, "rows_of")
    x = nd.asarray(definite((3,), "float32"))
    for function in (nd.linalg.cholesky, nd.linalg.svd, nd.linalg.eigh, lambda a: nd.linalg.solve(a, a)):
        done.clear()
        function(x)
        waits = [name for name in done if name in ("succeeded", "_finite")]
        assert waits == done[-1:] == ["succeeded"] * (device == "cuda")
