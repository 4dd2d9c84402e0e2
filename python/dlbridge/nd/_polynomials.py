"""Polynomials in one variable, as vectors of coefficients from the highest power down."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, as_arrays, is_scalar
from dlbridge.nd._dtypes import is_inexact, kind_of
from dlbridge.nd._grids import diag, vander
from dlbridge.nd._joining import concatenate, trim_zeros
from dlbridge.nd._signals import convolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike

ndarray = _native.ndarray


def _coefficients(p: Any) -> ndarray:
    """A vector: those of a poly1d, or what is given."""
    if isinstance(p, ndarray) and p.ndim == 1:
        return p
    x = p.coeffs if isinstance(p, poly1d) else as_array(p)
    if x.ndim > 1:
        raise ValueError(f"a polynomial's coefficients have shape {x.shape}; give a vector")
    return x.reshape(-1)


def _like(result: ndarray, *given: Any) -> Any:
    for p in given:
        if isinstance(p, poly1d):
            return poly1d(result)
    return result


def _zeros(n: int, like: ndarray) -> ndarray:
    return _native.zeros((n,), like.dtype, device=like.device)


def _beside(*given: Any) -> list[ndarray]:
    """Polynomials and points as arrays: what is no array goes to the device of one that is."""
    return as_arrays(*[p.coeffs if isinstance(p, poly1d) else p for p in given])


def _aligned(a: Any, b: Any) -> tuple[ndarray, ndarray]:
    if not (isinstance(a, ndarray) and isinstance(b, ndarray)):
        a, b = _beside(a, b)
    x, y = _coefficients(a), _coefficients(b)
    if x.size == y.size:
        return x, y
    return (_padded(x, y.size), y) if x.size < y.size else (x, _padded(y, x.size))


def _padded(x: ndarray, n: int) -> ndarray:
    """With zeros in front, so that there are `n` coefficients."""
    longer = _zeros(n, x)
    longer[n - x.size :] = x
    return longer


def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials; a poly1d where one of them is. Source: NumPy."""
    x, y = _aligned(a1, a2)
    return _like(_native.add(x, y), a1, a2)


def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials; a poly1d where one of them is. Source: NumPy."""
    x, y = _aligned(a1, a2)
    return _like(_native.subtract(x, y), a1, a2)


def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials; a poly1d where one of them is. Source: NumPy."""
    x, y = (_leading(_coefficients(p)) for p in _beside(a1, a2))
    return _like(convolve(x, y), a1, a2)


def _leading(x: ndarray) -> ndarray:
    """Without zeros in front; one zero of nothing but zeros."""
    found = trim_zeros(x, "f")
    return found if found.size else _zeros(1, x)


def _check_vector(p: Any, operation: str) -> None:
    if is_scalar(p) or (isinstance(p, ndarray) and p.ndim == 0):
        raise TypeError(f"{operation}(): the coefficients are one number; give a vector of them")


def polyval(p: Any, x: Any) -> Any:
    """The values of a polynomial at points, by Horner's rule; with a poly1d as `x` the composed one.

    TypeError for a number in place of the coefficients. Source: NumPy.
    """
    _check_vector(p, "polyval")
    if isinstance(x, poly1d):
        coefficients = _coefficients(_beside(p, x)[0])
        begin = _native.result_type(x.coeffs.dtype, 0)
        result: Any = poly1d(_zeros(1, coefficients.astype(begin, copy=False)))
        for k in range(coefficients.size):
            result = result * x + coefficients[k : k + 1]
        return result
    given, points = _beside(p, x)
    coefficients = _coefficients(given)
    dtype = _native.result_type(coefficients.dtype, points.dtype)
    points = points.astype(dtype, copy=False)
    value = _native.empty(points.shape, dtype, device=points.device)
    value.fill(0)
    for k in range(coefficients.size):
        value *= points
        value += coefficients[k].astype(dtype, copy=False)
    return value


def roots(p: Any) -> ndarray:
    """The roots of a polynomial: the eigenvalues of its companion matrix.

    TypeError for a number in place of the coefficients. Source: NumPy.
    """
    from dlbridge.nd.linalg import eigvals

    _check_vector(p, "roots")
    coefficients = _coefficients(p)
    kept = trim_zeros(coefficients, "fb")
    at_zero = trim_zeros(coefficients, "f").size - kept.size
    kept = kept if is_inexact(kept) else kept.astype("float64")
    if kept.size < 2:
        found = _native.empty((max(at_zero, 0),), "float64", device=kept.device)
        found.fill(0)
        return found
    below = _native.empty((kept.size - 2,), kept.dtype, device=kept.device)
    below.fill(1)
    companion = diag(below, -1)
    companion[0, :] = -kept[1:] / kept[0]
    found = eigvals(companion)
    if kind_of(found.dtype) == "c" and kind_of(kept.dtype) != "c" and not bool(found.imag.any()):
        found = found.real.copy()
    return concatenate([found, _zeros(at_zero, found)])


def poly(seq_of_zeros: ArrayLike) -> ndarray:
    """The polynomial with the given roots, or the characteristic one of a square matrix, leading coefficient 1."""
    zeros = as_array(seq_of_zeros)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] != 0:
        from dlbridge.nd.linalg import eigvals

        zeros = eigvals(zeros)
    elif zeros.ndim > 1:
        raise ValueError(f"poly(): the shape is {zeros.shape}; give a vector of roots or a square matrix")
    zeros = zeros.reshape(-1)
    zeros = zeros if is_inexact(zeros) and zeros.itemsize > 2 else zeros.astype("float64")
    result = _zeros(1, zeros) + 1
    for k in range(zeros.size):
        factor = concatenate([_zeros(1, zeros) + 1, -zeros[k : k + 1]])
        result = convolve(result, factor)
    in_pairs = kind_of(result.dtype) == "c" and bool(
        (_native.sort(zeros, 0, False, False) == _native.sort(zeros.conj(), 0, False, False)).all()
    )
    if in_pairs:  # roots and their conjugates
        return result.real.copy()
    return result if zeros.size else result.reshape(())


def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False, w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:  # fmt: skip
    """The coefficients of the polynomial of degree `deg` that fits points best, by least squares.

    y: one column or several. rcond: singular values below this part of the largest are zero. full: also the residuals,
    rank, singular values and rcond. w: how much each point counts. cov: also the covariance of the coefficients, scaled
    by the residuals unless it is "unscaled". Source: NumPy.
    """
    from dlbridge.nd.linalg import inv, lstsq

    order = int(deg) + 1
    xs, ys = as_arrays(x, y)
    for bad, problem in (
        (order < 1, f"deg is {deg}; give 0 or more"),
        (xs.ndim != 1 or xs.size == 0, f"x has shape {xs.shape}; give a vector that is not empty"),
        (ys.ndim not in (1, 2), f"y has {ys.ndim} axes; give one or two"),
        (ys.ndim > 0 and ys.shape[:1] != xs.shape, f"x has shape {xs.shape} and y {ys.shape}; give one y for each x"),
    ):
        if bad:
            raise (ValueError if problem.startswith("deg") else TypeError)(f"polyfit(): {problem}")
    weights = None if w is None else as_array(w, xs) + 0.0
    _check_dtypes_of_fit(xs, ys, weights)
    xs, ys = (v if kind_of(v.dtype) == "c" else v.astype("float64", copy=False) for v in (xs, ys))
    rcond = xs.size * 2.220446049250313e-16 if rcond is None else rcond
    left, right = vander(xs, order), ys
    if weights is not None:
        if weights.shape != xs.shape:
            raise TypeError(f"polyfit(): w has shape {weights.shape}; give one weight for each of the {xs.size} points")
        left = left * weights[:, None]
        right = right * (weights[:, None] if right.ndim == 2 else weights)
    scale = _native.sqrt((left * left.conj()).real.sum(axis=0))
    found, residuals, rank, singular = lstsq(left / scale, right, rcond)
    found = (found.T / scale).T
    if not full and rank != order:
        import warnings

        warnings.warn("polyfit(): the fit may be poorly conditioned", _rank_warning(), stacklevel=2)
    if full:
        return found, residuals, rank, singular, rcond
    if not cov:
        return found
    scaled = left / scale
    base = inv(_native.matmul(scaled.T, scaled)) / (scale[:, None] * scale[None, :])
    factor: Any = 1.0
    if cov != "unscaled":
        if xs.size <= order:
            raise ValueError(
                f"polyfit(): {xs.size} points for {order} coefficients leave nothing to scale the covariance by. Give "
                "more points, or cov='unscaled'"
            )
        factor = residuals / (xs.size - order)
    return found, base * factor if ys.ndim == 1 else base[:, :, None] * factor


def _check_dtypes_of_fit(xs: ndarray, ys: ndarray, weights: ndarray | None) -> None:
    """TypeError for what NumPy does not fit: 16-bit floats as `y`, complex weights of real numbers."""
    if is_inexact(ys) and ys.itemsize == 2:
        raise TypeError(f"polyfit(): y is {ys.dtype}, which has too few digits for a fit. Convert it: astype()")
    for name, v in (("x", xs), ("y", ys)):
        if weights is not None and kind_of(weights.dtype) == "c" != kind_of(v.dtype):
            raise TypeError(f"polyfit(): w is {weights.dtype} and {name} {v.dtype}; give real weights")


def _rank_warning() -> type[Warning]:
    from dlbridge.nd._host import numpys

    numpy = numpys("numpy", "polyfit")
    found: type[Warning] = getattr(numpy, "exceptions", numpy).RankWarning  # NumPy before 1.25: at the top
    return found


class poly1d:
    """A polynomial of coefficients, or of roots: called with points it gives values; it adds, multiplies and so on.

    c_or_r: coefficients from the highest power down, or roots with r=True; also NumPy's arrays and its poly1d, which
    are taken as by asarray(). variable: its letter. In ufuncs a polynomial stands for its coefficients. Source: NumPy.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
        if type(c_or_r).__name__ == "poly1d" and not isinstance(c_or_r, poly1d):  # NumPy's
            c_or_r, variable = c_or_r.coeffs, variable or c_or_r.variable
        if not isinstance(c_or_r, poly1d):
            c_or_r = _native.asarray(c_or_r)
        given = poly(_coefficients(c_or_r)) if r else _coefficients(c_or_r)
        self.coeffs: ndarray = _leading(given)
        inherited = c_or_r.variable if isinstance(c_or_r, poly1d) else "x"
        self.variable: str = inherited if variable is None else variable

    @property
    def order(self) -> int:
        return self.coeffs.size - 1

    @property
    def roots(self) -> ndarray:
        return roots(self.coeffs)

    c = coef = coefficients = property(lambda self: self.coeffs, doc="The coefficients, from the highest power down.")
    o = order
    r = roots

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        function = getattr(_native, ufunc.__name__, None)
        if function is None or method != "__call__":
            return NotImplemented
        return function(*(x.coeffs if isinstance(x, poly1d) else x for x in inputs), **kwargs)

    def __call__(self, val: Any) -> Any:
        return polyval(self, val)

    def __len__(self) -> int:
        return self.order

    def __iter__(self) -> Iterator[Any]:
        return iter(self.coeffs.tolist())

    def __getitem__(self, power: int) -> ndarray:
        """The coefficient of a power, 0 beyond the degree."""
        place = self.order - index(power)
        return self.coeffs[place] if 0 <= place <= self.order else _zeros(1, self.coeffs)[0]

    def __setitem__(self, power: int, value: Any) -> None:
        place = self.order - index(power)
        if index(power) < 0:
            raise ValueError(f"poly1d: power {power} is negative; a polynomial has none")
        if place < 0:
            self.coeffs = concatenate([_zeros(-place, self.coeffs), self.coeffs])
            place = 0
        self.coeffs[place] = value

    def __neg__(self) -> poly1d:
        return poly1d(-self.coeffs)

    def __pos__(self) -> poly1d:
        return self

    # As in NumPy, an array on the left computes with the coefficients: x + p is an array, p + x a polynomial.

    def __add__(self, other: Any) -> Any:
        return polyadd(self, other)

    def __radd__(self, other: Any) -> Any:
        return _native.add(other, self.coeffs) if isinstance(other, ndarray) else polyadd(other, self)

    def __sub__(self, other: Any) -> Any:
        return polysub(self, other)

    def __rsub__(self, other: Any) -> Any:
        return _native.subtract(other, self.coeffs) if isinstance(other, ndarray) else polysub(other, self)

    def __mul__(self, other: Any) -> Any:
        return poly1d(self.coeffs * other) if is_scalar(other) else polymul(self, other)

    def __rmul__(self, other: Any) -> Any:
        return _native.multiply(other, self.coeffs) if isinstance(other, ndarray) else self * other

    def __truediv__(self, other: Any) -> poly1d:
        return poly1d(self.coeffs / other)

    def __pow__(self, power: int) -> poly1d:
        if not is_scalar(power) or not power >= 0 or power % 1:
            raise ValueError(f"poly1d: the power is {power}; give an integer of 0 or more")
        result = poly1d(_native.array([1], device=self.coeffs.device))
        for _ in range(index(power)):
            result = result * self
        return result

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, poly1d):
            return NotImplemented
        return self.coeffs.shape == other.coeffs.shape and bool((self.coeffs == other.coeffs).all())

    def __repr__(self) -> str:
        return f"poly1d{repr(self.coeffs).removeprefix('array')}"

    def __str__(self) -> str:
        """Written as NumPy does it, the powers on a line of their own."""
        return str(self.get())

    def get(self) -> Any:
        """As numpy.poly1d, on the host."""
        from dlbridge.nd._host import numpys

        return numpys("numpy", "poly1d").poly1d(self.coeffs.get(), variable=self.variable)

    def set(self, polyin: Any, stream: Any = None) -> None:
        """Takes the coefficients of a numpy.poly1d, copied to the device, and its variable; on `stream` if given."""
        if type(polyin).__name__ != "poly1d":
            raise TypeError(f"poly1d.set(): got {type(polyin).__name__}; give a numpy.poly1d")
        if stream is not None:
            with stream:
                self.set(polyin)
            return
        self.coeffs = _native.array(polyin.coeffs, device=self.coeffs.device)
        self.variable = polyin.variable
