"""Functions at the edges of what they take: small dtypes, scalars, no dimension, nothing, NaN; results and refusals are
NumPy's."""

import numpy as np
import pytest
from dlbridge import nd
from nd_support import check, rows

# In the expressions `xp` is the namespace and arr() makes an array.

POSITIONS = """
xp.take(arr(5), 0, axis=0)
xp.full(3, 2**63)
xp.full(3, 300, 'uint8')
xp.full(3, 300.7, 'uint8')
xp.full((2, 2), [1, 2.5])
xp.full((), np.float32(2))
xp.full(3, 1 + 2j)
xp.full_like(arr([1, 2], 'uint8'), -1)
xp.full_like(arr([1, 2], 'uint8'), arr([[3.0]]), shape=(2, 2))
xp.full_like([1, 2], 2.5)
xp.array(arr([[1, 2]]), ndmin=4)
xp.array(arr([[1, 2], [3, 4]]), order='F', ndmin=3)
xp.array(5, ndmin=65)
xp.ascontiguousarray(arr(5))
xp.asfortranarray(arr([[1, 2], [3, 4]])[:, ::-1])
xp.take(arr(5), [0, 0], axis=0)
xp.take(arr(5), 0, axis=-1)
xp.take(arr(5), 1, axis=0)
xp.take(arr(range(300)), arr([-1, 100, 127], 'i1'), mode='wrap')
xp.take(arr(range(300)), arr([-1, 255], 'i2'), mode='clip')
xp.take(arr(range(300)), arr([-100, 127], 'i1'), mode='wrap')
xp.take(arr(range(3)), arr([200, 255], 'u1'), mode='wrap')
xp.take(arr(range(300)), arr([-1, -128], 'i1'))
xp.take(arr(range(300)), arr([250, 0], 'u1'), mode='clip')
xp.take(arr(range(3)), arr([True, False]))
xp.take(arr(range(3)), [3])
xp.take(arr(range(3)), [-4])
xp.take(arr(range(3)), 5, mode='wrap')
xp.take(arr(range(3)), [[5, -9]], mode='clip')
xp.take(arr(range(3)), 0, mode='x')
xp.take(arr(range(3)), arr([0.0]))
xp.take(xp.reshape(arr([]), (0, 3)), [0], axis=0, mode='wrap')
xp.ravel_multi_index((arr([100], 'i1'), arr([100], 'i1')), (120, 120))
xp.ravel_multi_index((arr([100], 'u1'), arr([100], 'i1')), (200, 200), order='F')
xp.ravel_multi_index((arr([250], 'u1'), arr([3], 'u1')), (200, 3), mode='wrap')
xp.ravel_multi_index((arr([-3], 'i1'), arr([100], 'i1')), (200, 50), mode='clip')
xp.ravel_multi_index((arr([5]), arr([-1])), (3, 4), mode=('wrap', 'clip'))
xp.ravel_multi_index((1, 2), (3, 4))
xp.ravel_multi_index((arr([3]), arr([1])), (3, 4))
xp.ravel_multi_index((arr([2]), arr([-1])), (3, 4))
xp.ravel_multi_index((arr([1.0]), arr([1])), (3, 4))
xp.ravel_multi_index((arr([1]),), (3, 4))
xp.ravel_multi_index(arr([[1, 2], [2, 3]]), (3, 4))
xp.ravel_multi_index((arr([[0], [1]]), arr([2, 3])), (3, 4))
xp.unravel_index(arr([11, 0]), (3, 4))
xp.unravel_index(arr([12]), (3, 4))
xp.unravel_index(arr([-1]), (3, 4))
xp.unravel_index(arr([100, 27], 'i1'), (30, 40))
xp.unravel_index(arr([200], 'u1'), (3, 4, 20), order='F')
xp.unravel_index(arr([1.0]), (3, 4))
xp.unravel_index(arr([], int), (3, 0))
xp.unravel_index(arr([0]), ())
xp.unravel_index(arr([0, 1]), 4)
xp.unravel_index(arr(5, 'u1'), (3, 4))
xp.unravel_index(arr([0]), (3, 0))
xp.delete(arr([1, 2, 3]), True)
xp.delete(arr([1, 2, 3]), [True, False, True])
xp.delete(arr([1, 2, 3]), [True])
xp.delete(arr([1, 2, 3]), [])
xp.delete(arr([1, 2, 3]), 1.0)
xp.delete(arr([1, 2, 3]), [1.0])
xp.delete(arr([1, 2, 3]), -3)
xp.delete(arr([1, 2, 3]), -4)
xp.delete(arr([1, 2, 3]), [3])
xp.delete(arr([1, 2, 3]), arr([[0], [1]]))
xp.delete(arr([1, 2, 3]), arr([0, 2], 'i1'))
xp.delete(arr([1, 2, 3]), arr([False, False, True]))
xp.delete(arr(3), 0)
xp.delete(xp.reshape(arr(range(12)), (3, 4)), 4, 1)
xp.delete(xp.reshape(arr(range(12)), (3, 4)), slice(None, None, 2), 1)
xp.compress(arr([True]), arr(range(3)))
xp.compress(arr([0, 1, 0, 0]), arr(range(3)))
xp.compress(arr([1] * 4), arr(range(3)))
xp.extract(arr([1, 0]), arr(range(3)))
xp.extract(arr([True, False, True, False]), arr(range(3)))
xp.choose(arr([0, 1], 'u1'), [arr([1, 2], 'f4'), 2])
xp.choose(arr([0, 1]), [arr([1, 2], 'f4'), 2.5])
xp.choose(arr([0, 1], 'u1'), [arr([1, 2], 'u1'), arr([300, 400], 'i2')])
xp.choose(arr([0, 2]), [arr([1, 2]), arr([3, 4])])
xp.roll(arr(range(5)), arr([1, 2]))
xp.roll(xp.reshape(arr(range(6)), (2, 3)), arr([1, 2]), axis=(0, 1))
xp.roll(xp.reshape(arr(range(6)), (2, 3)), arr(1))
xp.roll(arr(range(6)), (1, 2), 0)
xp.roll(arr(5), 2)
xp.roll(xp.reshape(arr(range(6)), (2, 3)), arr([1]), axis=1)
xp.tril(arr([1, 2, 3]))
xp.triu(arr([1, 2, 3]))
xp.tril(arr([1, 2, 3]), 1)
xp.triu(arr([1.5]), -1)
xp.triu(arr([], 'f4'))
xp.argsort(arr(5))
xp.argsort(arr(5), axis=0)
xp.argsort(arr(5), axis=None)
xp.cumsum(arr(5), axis=0)
xp.cumsum(arr(5))
xp.cumprod(arr(2.5), axis=-1)
xp.cumulative_sum(arr(5))
xp.cumulative_sum(arr(5), axis=0)
xp.cumulative_prod(arr(5), include_initial=True)
arr(5).argsort()
arr(5).take(0, axis=0)
arr(5).cumsum(0)
xp.cumulative_sum(arr([[1, 2]]))
xp.squeeze(arr(5), axis=0)
xp.squeeze(arr(5), axis=-1)
xp.squeeze(arr(5), axis=1)
xp.squeeze(arr(5), axis=(0,))
xp.squeeze(arr(5), axis=())
arr(5).squeeze(0)
zeros((2, 0))[[5]]
zeros((2, 0))[arr([1, -2])]
zeros((2, 0))[arr([-3])]
zeros((2, 0, 3))[[0], :, [7]]
zeros((2, 0, 3))[[0], :, [2]]
zeros((2, 3))[[5], :0]
zeros((2, 3))[[[5]], arr([], int)]
zeros((3, 0))[arr([0, 9, 1, 9])[::2]]
zeros((3, 0))[arr([0, 9, 1, 9])[1::2]]
zeros((3, 0)).take([3], axis=0)
zeros((3, 0)).take([2], axis=0)
zeros((2, 0)).__setitem__([5], 1.0)
zeros((2, 3, 0)).__setitem__(([0], [9]), 1.0)
xp.copyto(arr([1, 2]), arr([3, 4]), where=arr([1, 0]))
xp.copyto(arr([1, 2]), arr([3, 4]), where=arr([True, False]))
xp.argwhere(arr([[1, 0], [2, 3]])).ravel('K')
xp.copyto(arr([1, 2]), arr([3, 4]), where=[1, 0])
xp.copyto(arr([1, 2]), 3, where=1)
xp.copyto(arr([1, 2]), 3, where=[True, False])
xp.copyto(arr([1, 2]), 3, where=False)
xp.putmask(arr([1, 2], 'f4'), arr([True, False]), arr([3, 4], 'f4'))
"""

# Python numbers beside arrays: NumPy's functions that are not ufuncs make arrays of them first.
SCALARS = """
xp.searchsorted(arr([1, 5, 200], 'u1'), 300)
xp.searchsorted(arr([1, 5, 200], 'u1'), -1)
xp.searchsorted(arr([0.1], 'f4'), 0.1)
xp.searchsorted(arr([1, 5], 'i1'), 2.5)
xp.searchsorted(arr([1, 5], 'i1'), [1000, -1000])
xp.isin(arr([1, 255], 'u1'), -1)
xp.isin(arr([1, 255], 'u1'), [300, 1, -1])
xp.isin(300, arr([44], 'u1'))
xp.isin(arr([0.1], 'f4'), 0.1)
xp.isin(arr([1, 255], 'u1'), 300, invert=True)
xp.isclose(arr([1, 255], 'u1'), 300)
xp.isclose(arr([1, 255], 'u1'), -1)
xp.isclose(300, arr([44], 'u1'))
xp.isclose(arr([0.1], 'f4'), 0.1, rtol=0, atol=1e-10)
xp.isclose(arr([1], 'u1'), arr([300]))
xp.isclose(arr([True]), 1)
xp.isclose(arr([2**62]), 2**62 + 1)
xp.clip(arr([1, 255], 'u1'), -1, 300)
xp.clip(arr([1, 255], 'u1'), 0, 300)
xp.clip(arr([1, 255], 'u1'), -1, None)
xp.clip(arr([1, 255], 'u1'), None, 300)
xp.clip(arr([1, 255], 'u1'), 300, None)
xp.clip(arr([1, 255], 'u1'), None, -1)
xp.clip(arr([1, 255], 'u1'), 2, 2**70)
xp.clip(arr([1, 255], 'u1'), arr(-1), arr([300, 100]))
xp.clip(arr([1, 2], 'i4'), 1.5, 2**40)
xp.clip(arr([1, -2], 'i1'), -200, 1)
xp.clip(arr([1.5], 'f4'), 0, 1)
arr([1, 255], 'u1').clip(-1, 300)
xp.dot(arr([1, 2], 'f4'), 2.0)
xp.kron(arr([1, 2], 'f4'), 2.0)
xp.outer(arr([1, 2], 'f4'), 2.0)
xp.inner(arr([1, 2], 'f4'), 2.0)
xp.append(arr([1, 2], 'f4'), 2.0)
xp.append(arr([1], 'u1'), 300)
xp.union1d(arr([1, 2], 'u1'), [300])
xp.setdiff1d(arr([1, 44], 'u1'), 300)
xp.intersect1d(arr([1, 44], 'u1'), [300, 1])
bool(xp.array_equiv(arr([44, 44], 'u1'), 300))
bool(xp.array_equal(arr(44, 'u1'), 300))
xp.full_like(arr([1], 'u1'), 300)
xp.full_like(arr([1], 'u1'), 3)
xp.full_like(arr([1], 'i2'), 2.7)
xp.ediff1d(arr([1, 4], 'u1'), 300)
xp.ediff1d(arr([1, 4]), 300)
xp.lcm(arr([4, 6], 'u1'), 3)
xp.float_power(arr([2], 'f4'), 2)
xp.ldexp(arr([1.5], 'f4'), 3)
xp.bincount(arr([1, 2]), [1j, 2])
xp.percentile(arr([1, 2, 3], 'f4'), 30)
xp.percentile(arr([1, 2, 3], 'f4'), [30])
xp.percentile(arr([1, 2, 3], 'f4'), np.float64(30))
xp.percentile(arr([1, 2, 3], 'f4'), np.float32(30))
xp.percentile(arr([1, 2, 3], 'f4'), arr(30.0))
xp.quantile(arr([1, 2], 'f2'), [0.3])
xp.quantile(arr([1, 2, 3], 'f4'), [[0.3, 0.1]])
xp.quantile(arr([1, 2, 3], 'f4'), arr([0.3, 0.1], 'f4'), keepdims=True)
xp.quantile(arr([[1, 2, 3]], 'i4'), [[0.5], [0.1]], axis=1)
xp.quantile(arr([1, 2, 3], 'f4'), [0.3], method='lower')
xp.quantile(arr([1, 2, 3], 'i4'), [0.3], method='nearest')
xp.quantile(arr([1, 2, 3], 'f4'), [0.3], method='midpoint')
xp.quantile(arr([1, 2, 3]), 0)
xp.quantile(arr([1, 2, 3], 'u1'), 1)
xp.quantile(arr([1, 2, 3]), [0, 1])
xp.quantile(arr([1, 2, 3]), 0.0)
xp.quantile(arr([1, 2, 3]), arr([0, 1]))
xp.quantile(arr([1, 2]), True)
xp.quantile(arr([1, 2]), [0, 0.5])
xp.quantile(arr([1, 2]), 1, method='midpoint')
xp.percentile(arr([1, 2]), 100)
xp.quantile(arr([True, False]), 0)
xp.quantile(arr([1, nan], 'f4'), 0)
xp.median(arr([]))
xp.median(arr([], 'f4'))
xp.median(arr([], int))
xp.median(zeros((0, 3)), axis=0)
xp.median(zeros((0, 3)), axis=1)
xp.median(zeros((2, 0)), axis=1, keepdims=True)
xp.median(zeros((2, 0, 3), 'f4'), axis=(0, 1))
xp.quantile(arr([1, 2, 3]), 1.5)
xp.percentile(arr([1, 2, 3]), [50, 101])
xp.percentile(arr([1, 2, 3]), -1)
"""

RANGES = """
xp.arange(arr(2), 5)
xp.arange(arr(2.5), arr(5))
xp.arange(np.int8(3))
xp.arange(np.float32(3))
xp.arange(True)
xp.arange(.5, 5, 1.5, dtype=int)
xp.arange(.5, 5, .25, dtype=int)
xp.arange(5, .5, -1.5, dtype='i2')
xp.arange(3.7, dtype='i4')
xp.arange(1, 0, -0.25, dtype=int)
xp.arange(-3, 3, dtype='u1')
xp.arange(-1.5, 3, dtype='u1')
xp.arange(250, 260, dtype='u1')
xp.arange(0, -3, -1, dtype='u1')
xp.arange(300, 302, dtype='i1')
xp.arange(-1, 2**63, 2**62)
xp.arange(0, 2**63, 2**62)
xp.arange(-1, 2**63 - 1, 2**62)
xp.arange(2**63, 2**63 + 3)
xp.arange(2**63, 2**63 + 3, dtype='u8')
xp.arange(2**63, 2**64 - 1, 2**63)
xp.arange(-2**63, -2**63 + 3)
xp.arange(2**62, 2**62 + 3)
xp.arange(2, dtype=bool)
xp.arange(3, dtype=bool)
xp.arange(0, 3, dtype=complex)
xp.arange(10, dtype='f2')
xp.arange(0)
xp.arange(5, 5, dtype='u1')
xp.arange(-1, -1, dtype='u1')
xp.arange(3, 9, 2**40, dtype='i4')
xp.arange(0, 10, 100, dtype='i1')
xp.linspace(0, 5e-324, 5)
xp.linspace(5e-324, 1.5e-323, 5)
xp.linspace(arr([0., 1]), arr([5e-324, 2]), 3)
xp.linspace(5e-324, 0, 4, endpoint=False)
xp.linspace(arr([1], 'f4'), 2.0, 3)
xp.linspace(np.float32(1), np.float32(2), 3)
xp.linspace(3, 3, 4)
xp.linspace(True, 5, 3)
xp.linspace(-3, 3, 4, dtype=int)
xp.linspace(0, 10, 5, dtype='i4', endpoint=False)
"""

ORDER = """
xp.digitize(arr([1., 2, 3]), arr([3., 2, 1]))
xp.digitize(arr([1., 2, 3]), arr([3., 2, 1]), right=True)
xp.digitize(arr([0., 1.5, 4]), arr([3., 2, 2, 1]))
xp.digitize(arr([1., 2]), arr([2., 2, 2]))
xp.digitize(arr([1., 2]), arr([]))
xp.digitize(arr([1., nan]), arr([1., nan]))
xp.digitize(arr([1., nan, 9]), arr([2, 3, nan]))
xp.digitize(arr([1., nan, 9]), arr([nan, nan, 3, 2]))
xp.digitize(arr([1., nan, 9]), arr([nan, 2, 3]))
xp.digitize(arr([1., nan, 9]), arr([1, nan, nan]), right=True)
xp.digitize(arr([1., nan]), arr([nan, 1.]))
xp.digitize(arr([nan, 1]), arr([1., 2]))
xp.digitize(arr([0, 300]), arr([1, 200], 'u1'))
xp.digitize(arr([1j]), arr([1, 2]))
xp.digitize(arr([1]), arr([1, 3, 2]))
xp.digitize(arr([1]), arr([3, 1, 2]))
xp.digitize(2.0, arr([1., 3]))
xp.digitize(arr([1]), arr([[1]]))
xp.digitize(arr([5]), [5])
xp.digitize(arr([[1, 2], [3, 4]]), arr([4, 2]), right=True)
xp.digitize(arr([2, 2]), arr([1, 2, 2, 3]), right=True)
xp.nanvar(arr([1, inf, nan]))
xp.nanstd(arr([[1, inf], [1, 2.]]), axis=1)
xp.nanvar(arr([nan, nan]))
xp.nanvar(arr([-inf, 1]))
xp.nanvar(arr([[inf, nan], [1, 3]]), axis=0)
xp.nanvar(arr([1 + 2j, nan, 3]))
xp.nanstd(arr([1, 2, nan], 'f4'), ddof=1)
xp.interp(arr([0, 1, 2, 3]), arr([0, 1, 2]), arr([0, inf, 1]))
xp.interp(arr([.5, inf, -inf, nan]), arr([0, 1, inf]), arr([0, 1, 2]))
xp.interp(arr([.5, 1.5]), arr([0, 1, inf]), arr([0, 1, 2]))
xp.interp(arr([.5, 1.5, 2.5]), arr([0, 1, 2, 3]), arr([1, inf, inf, 2]))
xp.interp(arr([-inf, 0, 5]), arr([-inf, 1]), arr([3, 4.]))
xp.interp(arr([.5]), arr([0, 1]), arr([nan, 1]))
xp.interp(1, arr([1]), arr([7]))
xp.interp(arr([0., .5, 1]), arr([0, 1]), arr([nan, 1]))
xp.interp(arr([0, .5, 1]), arr([0, 1]), arr([-inf, inf]))
xp.interp(arr([0.5]), arr([0, 1]), arr([1e308, -1e308]))
xp.interp(arr([1e308]), arr([-1e308, 1.5e308]), arr([0, 1]))
"""

PRODUCTS = """
xp.einsum('i,i', arr([]), arr([1.]))
xp.einsum('i,i->i', arr([]), arr([1.]))
xp.einsum('i,i', arr([]), arr([1., 2, 3]))
xp.einsum('i,i', arr([2.]), arr([1., 2, 3]))
xp.einsum('ij,j', arr([[2.], [3]]), arr([1., 2, 3]))
xp.einsum('ij->', arr([[]]))
xp.einsum('i,i,i', arr([2.]), arr([1., 2, 3]), arr([5.]))
xp.einsum('ij,jk->ik', arr([[1.]]), arr([[1., 2], [3, 4]]))
xp.einsum('i,ij', arr([1.]), arr([[1., 2], [3, 4]]))
xp.einsum('ii', arr([[1., 2, 3]]))
xp.einsum('ij,ij->i', arr([[1.], [2]]), arr([[]]))
xp.einsum('i->', arr([True, True]))
xp.einsum('i,i', arr([True, True]), arr([True, True]))
xp.einsum('i->', arr([200, 200], 'u1'))
xp.einsum('i,j->', arr([200], 'u1'), arr([2], 'u1'))
xp.einsum('ij,jk', arr([[1, 2]], 'u1'), arr([[True], [True]]))
xp.einsum(arr([[1., 2]]), [0, 1], arr([[1., 2], [3, 4]]), [1, 2], [0, 2])
xp.einsum(arr([[1., 2]]), [0, 1], arr([[1.], [3]]), [1, 2])
xp.einsum(arr([[1., 2]]), [Ellipsis, 1], [1, Ellipsis])
xp.einsum(arr([[1., 2], [3, 4]]), [0, 0])
xp.einsum(arr([1., 2]), [5], [])
xp.einsum(arr([[1., 2]]), [0, 0])
xp.einsum(arr([1., 2]), [60])
xp.einsum(arr([1., 2]), [0], arr([3., 4]), [0])
xp.einsum('ij', arr([1.]))
"""


def outcome(expression, xp, arr):
    def zeros(shape, dtype="f8"):
        return arr(np.zeros(shape), dtype)

    try:
        with np.errstate(all="ignore"):
            return eval(expression, {"xp": xp, "np": np, "arr": arr, "zeros": zeros, "inf": np.inf, "nan": np.nan})
    except (ValueError, IndexError, TypeError, OverflowError) as error:
        return error


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("expression", rows("".join([POSITIONS, SCALARS, RANGES, ORDER, PRODUCTS])))
def test_as_numpy_at_the_edges(expression, device):
    def arr(values, dtype=None):
        return nd.array(values, dtype, device=device)

    want = outcome(expression, np, lambda values, dtype=None: np.array(values, dtype))
    got = outcome(expression, nd, arr)
    if isinstance(want, IndexError) and device == "cuda" and not isinstance(got, Exception):
        return  # positions are clamped there, so that nothing waits
    if isinstance(want, Exception):
        assert isinstance(got, type(want)), f"{got!r}; NumPy raises {want!r}"
    else:
        assert not isinstance(got, Exception), f"{got!r}; NumPy gives {want!r}"
        check(got, want)


def test_byte_bounds_span_the_elements(device):
    x = nd.zeros((4, 7), "float32", device=device)
    low = x.data_ptr
    assert nd.byte_bounds(x) == (low, low + 112) and nd.byte_bounds(x[::2, ::2]) == (low, low + 4 * (14 + 6 + 1))
    assert nd.byte_bounds(x[::-1]) == (low, low + 112)


REQUIRED = {
    "require(x, None, ['C', 'F'])": "are two orders",
    "require(x, None, 'W')": "those that there are: 'C', 'F' and 'O'",
    "require(x, 'random')": "'random'",
    "asarray_chkfinite([1.0, float('nan')])": "infinities or NaN",
    "pad(x, 1, 'edge', end_values=3)": "mode 'edge' does not take the keyword 'end_values'",
    "pad(x, 1, 'reflect', reflect_type='no')": "must be 'even' or 'odd'",
    "pad(x, 1, 'maximum', stat_length=0)": "give 1 or more",
    "pad(x, 1, 'middle')": "mode 'middle' is unknown",
    "pad(x[:, :0], 1, 'mean')": "no element to repeat",
    "polynomial.polynomial.polyvander(x, -1)": "deg is -1",
    "polynomial.polynomial.polycompanion(x[0, :1])": "two coefficients or more",
    "polynomial.polyutils.as_series(x[None])": "one vector or several",
    "polynomial.polyutils.as_series([x[0, :0]])": "no coefficient",
    "polynomial.polyutils.as_series([x[0] > 0])": "bool",
    "polynomial.polyutils.trimcoef(x[0], -1)": "tol is -1",
    "polynomial.polyutils.trimseq(x)": "shape is .2, 3.; give a vector",
    "quantile(x, [[[0.5]]])": "q has 3 axes",
    "interp(x, x[0], x[0], period=0)": "it must not be 0",
    "poly1d(x[0]) ** 2.5": "power is 2.5",
}


@pytest.mark.parametrize("call", REQUIRED)
def test_what_cannot_be_had_is_refused(call, device):
    with pytest.raises(ValueError, match=REQUIRED[call]):
        eval(f"nd.{call}", {"nd": nd, "x": nd.ones((2, 3), device=device)})
