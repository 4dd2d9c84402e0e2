"""Small matrices by the kernel of a block of threads, against numpy.linalg: sizes, dtypes, layouts, what fails.

The host's arrays go by LAPACK; here they go by the same kernel's team of one.
"""

import numpy as np
import pytest
from dlbridge import nd
from dlbridge.nd import _native

NAMES = ["cholesky", "det", "inv", "slogdet", "solve"]
DTYPES = ["float32", "float64", "complex64", "complex128"]
TOLERANCE = {"float32": 1e-4, "complex64": 1e-4, "float64": 1e-12, "complex128": 1e-12}
SIZES = [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65]  # up to 8, 16, 32, 64 other teams work


def values(shape, dtype, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, shape)
    return (x + 1j * rng.uniform(-1, 1, shape) if dtype.startswith("complex") else x).astype(dtype)


def operands(name, shape, dtype, sides=3):
    """Matrices whose rows have to change their places, or Hermitian positive definite ones; right sides."""
    n = shape[-1]
    x = values((*shape, n), dtype) / np.sqrt(n)
    if name == "cholesky":
        return [(x @ x.conj().swapaxes(-1, -2) + np.eye(n)).astype(dtype)]
    turned = np.roll(x / 2 + np.eye(n), 1, axis=-1)[..., ::-1, :].astype(dtype)
    return [turned, values((*shape, sides), dtype, 4)] if name == "solve" else [turned]


def by_kernel(name, *arrays, device):
    """(results, info): info is None where none is given."""
    found = _native.small_matrices(name, *(nd.asarray(x, device=device) for x in arrays))
    if name == "det":
        return [nd.asnumpy(found)], None
    parts = [nd.asnumpy(part) for part in found]
    return (parts, None) if name == "slogdet" else (parts[:1], parts[1])


def close(one, other, dtype, least):
    """Within the error of the largest element, or of a number `least` where that is larger."""
    tolerance = TOLERANCE[dtype] * max(np.abs(other).max(), least)
    np.testing.assert_allclose(nd.asnumpy(one), other, rtol=0, atol=tolerance)


def same(name, arrays, device):
    found, info = by_kernel(name, *arrays, device=device)
    wide = [x.astype("complex128" if x.dtype.kind == "c" else "float64") for x in arrays]
    want = getattr(np.linalg, name)(*wide)
    for one, other in zip(found, want if name == "slogdet" else [want], strict=True):
        other = np.asarray(other)
        assert one.shape == other.shape
        assert one.dtype == (arrays[0].dtype if other.dtype.kind == wide[0].dtype.kind else arrays[0].real.dtype)
        close(one, other, arrays[0].dtype.name, name == "slogdet")
    assert info is None or (info.dtype == "int32" and not info.any() and info.size == found[0][..., 0, 0].size)


def largest(name, dtype, device, sides=16):
    """How many rows the matrices may have."""
    right = [nd.zeros((128, sides), dtype=dtype, device=device)] if name == "solve" else []
    eye = nd.eye(128, dtype=dtype, device=device)
    fits = [n for n in range(1, 129) if _native.small_matrices(name, eye[:n, :n], *(b[:n] for b in right)) is not None]
    assert fits == list(range(1, len(fits) + 1)) and 48 < len(fits) < 128
    return len(fits)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_every_size_as_numpy(name, dtype, n, device):
    if n > largest(name, dtype, device):
        pytest.skip("too large for the kernel")
    same(name, operands(name, (n,), dtype), device)
    same(name, operands(name, (5, n), dtype), device)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_the_largest_that_fit_and_the_smallest_that_do_not_as_numpy(name, dtype, device):
    n = largest(name, dtype, device)
    same(name, operands(name, (n,), dtype, sides=17), device)
    larger = operands(name, (n + 1,), dtype, sides=17)
    found = getattr(nd.linalg, name)(*(nd.asarray(x, device=device) for x in larger))
    want = getattr(np.linalg, name)(*larger)
    for one, other in zip(found, want, strict=True) if name == "slogdet" else [(found, want)]:
        close(one, other, dtype, name == "slogdet")


@pytest.mark.parametrize("sides", [1, 2, 15, 16, 63, 64, 65, 200])
@pytest.mark.parametrize("n", [1, 6, 40])
def test_any_number_of_right_sides(n, sides, device):
    for dtype in ("float32", "complex128"):
        same("solve", operands("solve", (3, n), dtype, sides), device)


LAYOUTS = {
    "columns": lambda x: nd.matrix_transpose(nd.matrix_transpose(x).copy("C")),
    "every other": lambda x: nd.repeat(nd.repeat(x, 2, -1), 3, -2)[..., ::3, ::2],
    "reversed": lambda x: x[..., ::-1, ::-1].copy("C")[..., ::-1, ::-1],
    "stacked last": lambda x: nd.moveaxis(nd.moveaxis(x, (-2, -1), (0, 1)).copy("C"), (0, 1), (-2, -1)),
    "stack reversed": lambda x: x[::-1].copy("C")[::-1],
    "stack turned": lambda x: nd.swapaxes(nd.swapaxes(x, 0, 1).copy("C"), 0, 1),
    "repeated": lambda x: nd.broadcast_to(x[:1, :1], x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_matrices_are_read_where_they_lie(name, layout, device):
    for dtype in ("float32", "complex64", "complex128"):
        given = [LAYOUTS[layout](nd.asarray(x, device=device)) for x in operands(name, (2, 3, 6), dtype)]
        assert not any(x.flags.c_contiguous for x in given)
        found = _native.small_matrices(name, *given)
        want = _native.small_matrices(name, *(x.copy("C") for x in given))
        for one, other in zip(*((x,) if name == "det" else x for x in (found, want)), strict=True):
            np.testing.assert_array_equal(nd.asnumpy(one), nd.asnumpy(other))


@pytest.mark.parametrize("shapes", [((4, 4), (3, 4, 2)), ((3, 4, 4), (4, 2)), ((2, 1, 4, 4), (3, 4, 2))], ids=str)
def test_stacks_of_equations_broadcast(shapes, device):
    matrices, right = operands("solve", shapes[0][:-1], "float64")[0], values(shapes[1], "float64")
    same("solve", [matrices, right], device)
    found = nd.linalg.solve(nd.asarray(matrices, device=device), nd.asarray(right, device=device))
    np.testing.assert_allclose(nd.asnumpy(found), np.linalg.solve(matrices, right), rtol=1e-12, atol=1e-12)


def test_stacks_of_many_axes_that_are_no_one_walk(device):
    x = np.zeros((2,) * 14 + (2, 2), "float32")
    x[...] = [[0, 2], [3, 1]]
    twisted = nd.asarray(x, device=device).transpose([*reversed(range(14)), 14, 15])
    assert _native.small_matrices("det", twisted) is None  # more than a kernel walks
    assert nd.asnumpy(nd.linalg.det(twisted) == -6).all()


# --- what fails, and numbers at the edges ---------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 12, 20, 40])
@pytest.mark.parametrize("dtype", DTYPES)
def test_info_says_which_column_failed_and_the_others_are_worked_off(dtype, n, device):
    x, h = operands("inv", (4, n), dtype)[0], operands("cholesky", (4, n), dtype)[0]
    x[1, :, 2] = x[1, :, 0] * 0
    h[2, 1, 1] = -1
    for name, given, failed in (("inv", x, [0, 3, 0, 0]), ("cholesky", h, [0, 0, 2, 0])):
        (found,), info = by_kernel(name, given, device=device)
        assert info.tolist() == failed
        for one, other, code in zip(found, given, failed, strict=True):
            if code:
                assert np.isnan(one).all()
                with pytest.raises(nd.linalg.LinAlgError):
                    getattr(nd.linalg, name)(nd.asarray(other, device=device))
            else:
                np.testing.assert_allclose(one, getattr(np.linalg, name)(other), atol=1e-3)
    with pytest.raises(nd.linalg.LinAlgError, match="singular"):
        nd.linalg.solve(nd.asarray(x, device=device), nd.asarray(x, device=device))
    np.testing.assert_allclose(by_kernel("det", x, device=device)[0][0], np.linalg.det(x), rtol=1e-3)
    signs, logs = by_kernel("slogdet", x, device=device)[0]
    assert signs[1] == 0 and logs[1] == -np.inf and np.isfinite(logs[[0, 2, 3]]).all()


@pytest.mark.parametrize("n", [1, 2, 5, 20])
@pytest.mark.parametrize("place", [(0, 0), (-1, 0), (0, -1), (-1, -1)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_nan_is_no_error_and_not_lost(name, place, n, device):
    if name == "cholesky" and place == (0, -1):
        place = (-1, 0)  # the upper triangle is not read
    arrays = operands(name, (n,), "float64")
    arrays[0][place] = np.nan
    found, info = by_kernel(name, *arrays, device=device)
    assert all(np.isnan(part).any() for part in found) and not np.any(info)
    if name in ("det", "slogdet"):
        assert np.isnan(found).all()


def test_the_upper_triangle_is_not_read_by_cholesky(device):
    (x,) = operands("cholesky", (20,), "complex128")
    spoilt = np.where(np.tri(20, dtype=bool), x, np.nan)
    np.testing.assert_array_equal(
        by_kernel("cholesky", spoilt, device=device)[0], by_kernel("cholesky", x, device=device)[0]
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [0.9, 0.6, -0.6, -0.9], ids="1e{}".format)
def test_numbers_near_the_ends_of_the_range(dtype, scale, device):
    """Whose inverses, or products on the way, are out of it."""
    tenth = 10.0 ** (scale * (38 if dtype in ("float32", "complex64") else 307))
    x = (operands("inv", (2, 4), dtype)[0] * tenth).astype(dtype)
    x[0] = np.diag([tenth, 1 / tenth, tenth, 1 / tenth])
    (found,), info = by_kernel("inv", x, device=device)
    np.testing.assert_allclose(found[1] * tenth, np.linalg.inv(x[1].astype("complex128") / tenth), rtol=1e-3)
    assert not info.any()
    determinants = by_kernel("det", x, device=device)[0][0]
    np.testing.assert_allclose(determinants[0], 1, rtol=1e-3)
    (sign, log), _ = by_kernel("slogdet", x, device=device)
    want = np.linalg.slogdet(x[1].astype("complex128") / tenth)
    np.testing.assert_allclose(log[1], want[1] + 4 * np.log(tenth), rtol=1e-3)
    np.testing.assert_allclose(sign[1], want[0], rtol=1e-3)


@pytest.mark.parametrize(
    "operands_of",
    [
        lambda: ("inv", nd.zeros((0, 2, 2))),
        lambda: ("inv", nd.zeros((2, 0, 0))),
        lambda: ("inv", nd.ones((2, 3))),
        lambda: ("inv", nd.ones(3)),
        lambda: ("inv", nd.eye(2, dtype="int32")),
        lambda: ("inv", nd.eye(2), nd.eye(2)),
        lambda: ("qr", nd.eye(2)),
        lambda: ("solve", nd.eye(2)),
        lambda: ("solve", nd.eye(2), nd.ones((3, 1))),
        lambda: ("solve", nd.eye(2), nd.ones(2)),
        lambda: ("solve", nd.eye(2), nd.ones((2, 0))),
        lambda: ("solve", nd.eye(2), nd.ones((2, 1), dtype="float32")),
    ],
)
def test_what_is_not_for_the_kernel_is_left_to_others(operands_of, arrays_there):
    assert _native.small_matrices(*operands_of()) is None


def test_results_lie_in_c_order_and_are_new(device):
    x = nd.asarray(operands("cholesky", (2, 5), "float64")[0], device=device)
    for name in ("cholesky", "inv"):
        found = getattr(nd.linalg, name)(nd.matrix_transpose(x))
        assert found.flags.c_contiguous and not nd.shares_memory(found, x)


@pytest.mark.gpu
def test_no_library_is_asked_for_small_matrices(monkeypatch):
    from dlbridge.nd import _cusolver

    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(_cusolver, "_solver_on", refuse)
    x = nd.asarray(operands("cholesky", (3, 20), "float32")[0], device="cuda")
    for name in NAMES:
        for given in (x, x[0]):
            getattr(nd.linalg, name)(*[given] * (1 + (name == "solve")))
