"""Distributions of floats: those of the kernels with their parameters, and what is made of them."""

from __future__ import annotations

from math import inf, pi

from dlbridge.nd import _native
from dlbridge.nd._arguments import broadcast_shapes, into, is_scalar, shape_of
from dlbridge.nd._draws import _NUMBERS, _checked_out, _float, as_parameter
from dlbridge.nd._dtypes import BY_NAME
from dlbridge.nd._integers import _Integers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dlbridge.nd._arguments import DeviceLike, DTypeLike, Shape

ndarray = _native.ndarray
_FLOAT64, _INT64 = BY_NAME["float64"], BY_NAME["int64"]
_NO_UNDERFLOW = 0.1  # gamma variates of such shapes are above 1e-200
_EPSILON = 2.0**-54  # keeps logarithms of uniform numbers finite

# What a parameter must be: a test of numbers and of arrays, false for NaN, and its name.
_RULES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "any": (lambda x: abs(x) < inf, "finite"),
    "positive": (lambda x: (x > 0) & (x < inf), "finite and above 0"),
    "above zero": (lambda x: x > 0, "above 0"),
    "natural": (lambda x: (x >= 0) & (x < inf), "finite and not negative"),
    "count": (lambda x: (x >= 0) & (x < 2.0**62), "from 0 to 2**62"),
    "probability": (lambda x: (x >= 0) & (x <= 1), "from 0 to 1"),
    "chance": (lambda x: (x > 0) & (x <= 1), "above 0 and at most 1"),
    "below one": (lambda x: (x >= 0) & (x < 1), "from 0 to below 1"),
    "above one": (lambda x: (x > 1) & (x < inf), "finite and above 1"),
}


def _all(fits: Any) -> bool:
    return bool(fits.all() if isinstance(fits, ndarray) else fits)


def _checked(value: Any, name: str, rule: str, operation: str) -> Any:
    """The parameter. ValueError where it breaks the rule: for an array, the host waits."""
    holds, text = _RULES[rule]
    fits = holds(value)
    if fits is not True and not _all(fits):
        got = "an array that is not" if isinstance(value, ndarray) else value
        raise ValueError(f"{operation}(): {name} is {got}; it must be {text}")
    return value


class _Distributions(_Integers):
    """Parameters are numbers, or arrays that broadcast to `size`; ValueError for those that no distribution has."""

    def _numbers(
        self, operation: str, size: Shape | None, device: DeviceLike, **given: tuple[Any, str]
    ) -> tuple[tuple[int, ...], Any, list[Any]]:
        """As _parameters(), but numbers stay numbers where no parameter is an array."""
        numbers = []
        for name, (value, rule) in given.items():
            if not is_scalar(value):
                return self._parameters(operation, size, device, **given)
            numbers.append(_checked(float(value), name, rule, operation))
        return () if size is None else shape_of(size, operation), self._device if device is None else device, numbers

    def _parameters(
        self, operation: str, size: Shape | None, device: DeviceLike, **given: tuple[Any, str]
    ) -> tuple[tuple[int, ...], Any, list[ndarray]]:
        """The shape, the device, and the parameters as float64: of no dimension, or a line with one for each draw."""
        like = next((value for value, _ in given.values() if isinstance(value, ndarray)), None)
        device = like.device if like is not None else self._device if device is None else device
        arrays = []
        for name, (value, rule) in given.items():
            if is_scalar(value):
                fitting = _checked(float(value), name, rule, operation)
                arrays.append(_native.asarray(fitting, _FLOAT64, device=device))
            else:
                x = as_parameter(value, device)
                arrays.append(_checked(x.astype(_FLOAT64, copy=False), name, rule, operation))
        common = broadcast_shapes(*(x.shape for x in arrays))
        shape = common if size is None else shape_of(size, operation)
        if broadcast_shapes(shape, common) != shape:
            raise ValueError(f"{operation}(): size {size} is not what parameters of shape {common} broadcast to")
        lines = [x if x.ndim == 0 else _native.broadcast_to(x, shape).reshape(-1) for x in arrays]
        return shape, arrays[0].device, lines

    def _for_the_host(
        self, operation: str, size: Shape | None, device: DeviceLike, **given: tuple[Any, str]
    ) -> tuple[tuple[int, ...], Any, list[Any]]:
        """_numbers() where the host makes them, else _parameters()."""
        on_host = self._on_host(device, *(value for value, _ in given.values()))
        return (self._numbers if on_host else self._parameters)(operation, size, device, **given)

    def _on_host(self, device: DeviceLike, *parameters: Any) -> bool:
        """Whether numbers of these parameters are made on the host."""
        like = next((value for value in parameters if isinstance(value, ndarray)), None)
        if like is None:
            like = _native.empty((0,), "bool", device=self._device if device is None else device)
        return isinstance(like, _native.HostArray)

    def _by_formula(
        self, formula: str, size: Shape | None, dtype: Any, device: DeviceLike, *parameters: Any
    ) -> ndarray | None:
        """Numbers of one of the host's formulas; None elsewhere, and unless the parameters are numbers that fit."""
        x = self._bits.draw_by_formula(formula, size, self._device if device is None else device, *parameters)
        return x if x is None else x.astype(dtype, copy=False)

    def _uniform(self, n: int, device: DeviceLike) -> ndarray:
        """n numbers in (0, 1)."""
        u = self._draw("uniform", (n,), _FLOAT64, None, device)
        return _native.clip(u, _EPSILON, 1 - 2 * _EPSILON)

    def _normal(self, n: int, device: DeviceLike) -> ndarray:
        return self._draw("normal", (n,), _FLOAT64, None, device)

    def _exponential(self, n: int, device: DeviceLike) -> ndarray:
        return self._draw("exponential", (n,), _FLOAT64, None, device, 1.0)

    def _variates(
        self, kind: str, n: int, device: DeviceLike, a: Any, scale: float = 1.0, dtype: DTypeLike = _FLOAT64
    ) -> ndarray:
        """n of the kernels' distributions by rejection, with the parameter `a`, a number or an array."""
        if isinstance(a, float):
            return self._draw(kind, (n,), dtype, None, device, a, scale)
        parameters = _native.broadcast_to(a, (n,)).ravel()
        return self._draw(kind, (n,), dtype, None, device, 0.0, scale, shapes=parameters)

    def _located(
        self, operation: str, loc: Any, scale: Any, size: Shape | None, dtype: DTypeLike, device: Any
    ) -> ndarray:
        """loc + scale times the kernels' distribution of that name."""
        drawn = self._bits.draw(operation, size, dtype, self._device if device is None else device, loc, scale)
        if drawn is not None:
            return drawn
        found = _float(dtype, operation)
        given = {"loc": (loc, "any"), "scale": (scale, "natural")}
        shape, device, (loc, scale) = self._parameters(operation, size, device, **given)
        x = self._draw(operation, (_count(shape),), _FLOAT64, None, device)
        return _finished(loc + scale * x, shape, found)

    # --- by one formula ----------------------------------------------------------------------------------------------

    def lognormal(
        self,
        mean: Any = 0.0,
        sigma: Any = 1.0,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Floats whose logarithm is normally distributed."""
        return _native.exp(self.normal(mean, sigma, size, device=device)).astype(_float(dtype, "lognormal"), copy=False)

    def laplace(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Floats of the double exponential distribution around `loc`."""
        return self._located("laplace", loc, scale, size, dtype, device)

    def logistic(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Floats of the logistic distribution around `loc`."""
        return self._located("logistic", loc, scale, size, dtype, device)

    def gumbel(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Floats of the Gumbel distribution with its mode at `loc`."""
        return self._located("gumbel", loc, scale, size, dtype, device)

    def rayleigh(
        self, scale: Any = 1.0, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats of the Rayleigh distribution."""
        return self._located("rayleigh", 0.0, scale, size, dtype, device)

    def standard_cauchy(
        self, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats of the Cauchy distribution around 0."""
        return self._located("standard_cauchy", 0.0, 1.0, size, dtype, device)

    def _powered(
        self,
        operation: str,
        a: Any,
        size: Shape | None,
        dtype: DTypeLike,
        device: DeviceLike,
        of: Callable[[ndarray, Any], Any],
    ) -> ndarray:
        """of(exponential numbers, a)."""
        found = _float(dtype, operation)
        if type(a) in _NUMBERS and a > 0:
            return of(self.standard_exponential(size, device=device), a).astype(found, copy=False)
        shape, device, (a,) = self._numbers(operation, size, device, a=(a, "above zero"))
        return _finished(of(self._exponential(_count(shape), device), a), shape, found)

    def pareto(
        self, a: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats of the Pareto II (Lomax) distribution with shape `a`, from 0."""
        return self._powered("pareto", a, size, dtype, device, lambda e, a: _native.expm1(e / a))

    def power(
        self, a: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats in [0, 1] with the density a * x ** (a - 1)."""
        return self._powered("power", a, size, dtype, device, lambda e, a: _native.exp(-e / a))

    def weibull(
        self, a: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats of the Weibull distribution with shape `a` and scale 1."""
        return self._powered("weibull", a, size, dtype, device, lambda e, a: _native.power(e, 1 / a))

    def triangular(
        self,
        left: Any,
        mode: Any,
        right: Any,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Floats in [left, right] whose density rises to `mode` and falls from there.

        ValueError unless left <= mode <= right and left < right.
        """
        found = _float(dtype, "triangular")
        drawn = self._by_formula("triangular", size, found, device, left, mode, right)
        if drawn is not None:
            return drawn
        shape, device, (a, c, b) = self._parameters(
            "triangular", size, device, left=(left, "any"), mode=(mode, "any"), right=(right, "any")
        )
        if not _all((a <= c) & (c <= b) & (a < b)):
            raise ValueError("triangular(): left <= mode <= right and left < right must hold")
        u = self._uniform(_count(shape), device)
        rising = a + _native.sqrt(u * (b - a) * (c - a))
        x = _native.where(u * (b - a) <= c - a, rising, b - _native.sqrt((1 - u) * (b - a) * (b - c)))
        return _finished(x, shape, found)

    def wald(
        self,
        mean: Any,
        scale: Any,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Floats of the inverse Gaussian distribution. Source: Michael, Schucany, Haas 1976."""
        found = _float(dtype, "wald")
        drawn = self._by_formula("wald", size, found, device, mean, scale)
        if drawn is not None:
            return drawn
        shape, device, (m, s) = self._parameters(
            "wald", size, device, mean=(mean, "positive"), scale=(scale, "positive")
        )
        n = _count(shape)
        y = m * _native.maximum(_native.square(self._normal(n, device)), 1e-300)
        root = _native.sqrt(4 * s * y + y * y)
        x = 4 * m * s * y / _native.square(root + y)  # the smaller root, without a difference
        x = _native.where(self._uniform(n, device) * (m + x) <= m, x, m * m / x)
        return _finished(x, shape, found)

    # --- of gamma variates -------------------------------------------------------------------------------------------

    def _log_gammas(self, n: int, device: DeviceLike, a: Any) -> ndarray:
        """Logarithms of gamma variates, which do not underflow where the shape is small."""
        return self._variates("log_gamma", n, device, a)

    def _chisquares(self, n: int, device: DeviceLike, df: Any) -> ndarray:
        return self._variates("gamma", n, device, df / 2, 2.0)

    def standard_gamma(
        self,
        shape: Any,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        out: ndarray | None = None,
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Floats of the gamma distribution with that shape and scale 1. out: an array to fill, of that dtype."""
        if out is None:
            drawn = self._bits.draw("gamma", size, dtype, self._device if device is None else device, shape)
            if drawn is not None:
                return drawn
        found = _float(dtype, "standard_gamma")
        if out is not None:
            device, size = out.device, _checked_out(out, size, found, "standard_gamma").shape
        extents, device, (a,) = self._numbers("standard_gamma", size, device, shape=(shape, "natural"))
        if isinstance(a, float):
            return self._draw("gamma", extents, found, out, device, a)
        result = _finished(self._variates("gamma", _count(extents), device, a), extents, found)
        return into(out, result, "standard_gamma")

    def gamma(
        self,
        shape: Any,
        scale: Any = 1.0,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Floats of the gamma distribution with that shape and scale."""
        drawn = self._bits.draw("gamma", size, dtype, self._device if device is None else device, shape, scale)
        if drawn is not None:
            return drawn
        found = _float(dtype, "gamma")
        extents, device, (a, s) = self._parameters(
            "gamma", size, device, shape=(shape, "natural"), scale=(scale, "natural")
        )
        return _finished(s * self._variates("gamma", _count(extents), device, a), extents, found)

    def beta(
        self, a: Any, b: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats in [0, 1] of the beta distribution."""
        found = _float(dtype, "beta")
        shape, device, (a, b) = self._numbers("beta", size, device, a=(a, "positive"), b=(b, "positive"))
        n = _count(shape)
        if isinstance(a, float) and min(a, b) >= _NO_UNDERFLOW:
            x, y = self._variates("gamma", n, device, a), self._variates("gamma", n, device, b)
            return _finished(x / (x + y), shape, found)
        x, y = self._log_gammas(n, device, a), self._log_gammas(n, device, b)
        return _finished(_native.exp(x - _native.logaddexp(x, y)), shape, found)

    def chisquare(
        self, df: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats of the chi-squared distribution with `df` degrees of freedom."""
        found = _float(dtype, "chisquare")
        if type(df) in _NUMBERS and 0 < df < inf:
            return self._draw("gamma", size, _FLOAT64, None, device, df / 2, 2.0).astype(found, copy=False)
        shape, device, (df,) = self._numbers("chisquare", size, device, df=(df, "positive"))
        return _finished(self._chisquares(_count(shape), device, df), shape, found)

    def f(
        self,
        dfnum: Any,
        dfden: Any,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Floats of Fisher's distribution: the quotient of two chi-squared variates by their degrees of freedom."""
        found = _float(dtype, "f")
        shape, device, (top, bottom) = self._numbers(
            "f", size, device, dfnum=(dfnum, "positive"), dfden=(dfden, "positive")
        )
        n = _count(shape)
        x, y = self._chisquares(n, device, top), self._chisquares(n, device, bottom)
        return _finished((x / top) / (y / bottom), shape, found)

    def standard_t(
        self, df: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats of Student's distribution with `df` degrees of freedom."""
        found = _float(dtype, "standard_t")
        shape, device, (df,) = self._numbers("standard_t", size, device, df=(df, "positive"))
        n = _count(shape)
        return _finished(self._normal(n, device) / _native.sqrt(self._chisquares(n, device, df) / df), shape, found)

    def vonmises(
        self, mu: Any, kappa: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Angles in [-pi, pi] of the von Mises distribution around `mu`. Source: Best, Fisher 1979."""
        found = _float(dtype, "vonmises")
        shape, device, (mu, kappa) = self._numbers("vonmises", size, device, mu=(mu, "any"), kappa=(kappa, "natural"))
        if isinstance(mu, float):
            return _finished(self._variates("vonmises", _count(shape), device, kappa, mu, found), shape, found)
        x = self._variates("vonmises", _count(shape), device, kappa, 0.0)
        return _finished(_native.remainder(mu + x + pi, 2 * pi) - pi, shape, found)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _finished(x: ndarray, shape: tuple[int, ...], dtype: Any) -> ndarray:
    return x.astype(dtype, copy=False).reshape(shape)
