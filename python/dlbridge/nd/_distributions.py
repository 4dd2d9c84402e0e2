"""Distributions of floats: those of the kernels with their parameters, and what is made of them."""

from __future__ import annotations

from math import inf

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
_FLOAT64 = BY_NAME["float64"]

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


_Rules = tuple[tuple[str, str], ...]  # of each parameter its name, and what it must be


def _given(rules: _Rules, values: tuple[Any, ...]) -> dict[str, tuple[Any, str]]:
    return {name: (value, rule) for (name, rule), value in zip(rules, values, strict=True)}


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
        """The shape, the device, and the parameters: numbers, and for an array a line of float64, one for each draw."""
        numbers = [
            _checked(float(value), name, rule, operation) for name, (value, rule) in given.items() if is_scalar(value)
        ]
        if len(numbers) == len(given):
            device = self._device if device is None else device
            return () if size is None else shape_of(size, operation), device, numbers
        like = next((value for value, _ in given.values() if isinstance(value, ndarray)), None)
        device = like.device if like is not None else self._device if device is None else device
        parameters: list[Any] = []
        for name, (value, rule) in given.items():
            if is_scalar(value):
                parameters.append(_checked(float(value), name, rule, operation))
            else:
                x = as_parameter(value, device)
                parameters.append(_checked(x.astype(_FLOAT64, copy=False), name, rule, operation))
        arrays = [x for x in parameters if not isinstance(x, float)]
        common = broadcast_shapes(*(x.shape for x in arrays))
        shape = common if size is None else shape_of(size, operation)
        if broadcast_shapes(shape, common) != shape:
            raise ValueError(f"{operation}(): size {size} is not what parameters of shape {common} broadcast to")
        lines = [x if isinstance(x, float) else _native.broadcast_to(x, shape).ravel() for x in parameters]
        return shape, arrays[0].device, lines

    def _made(self, law: str, shape: tuple[int, ...], device: DeviceLike, dtype: Any, *parameters: Any) -> ndarray:
        """Numbers of one of the kernels' laws, whose parameters are numbers or lines."""
        x = _native.empty(shape, dtype, device=device)
        if x.size:
            self._bits.fill(x, law, *parameters)
        return x

    def _floats(
        self, law: str, size: Shape | None, dtype: DTypeLike, device: DeviceLike, rules: _Rules, *values: Any
    ) -> ndarray:
        """Floats of the kernels' law of that name: at once where the parameters are numbers that it has."""
        drawn = self._bits.draw(law, size, dtype, self._device if device is None else device, *values)
        if drawn is not None:
            return drawn
        found = _float(dtype, law)
        shape, device, parameters = self._numbers(law, size, device, **_given(rules, values))
        return self._made(law, shape, device, found, *parameters)

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
        return self._floats("laplace", size, dtype, device, (("loc", "any"), ("scale", "natural")), loc, scale)

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
        return self._floats("logistic", size, dtype, device, (("loc", "any"), ("scale", "natural")), loc, scale)

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
        return self._floats("gumbel", size, dtype, device, (("loc", "any"), ("scale", "natural")), loc, scale)

    def rayleigh(
        self, scale: Any = 1.0, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats of the Rayleigh distribution."""
        return self._floats("rayleigh", size, dtype, device, (("loc", "any"), ("scale", "natural")), 0.0, scale)

    def standard_cauchy(
        self, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats of the Cauchy distribution around 0."""
        return self._floats("standard_cauchy", size, dtype, device, (("loc", "any"), ("scale", "any")), 0.0, 1.0)

    def pareto(
        self, a: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats of the Pareto II (Lomax) distribution with shape `a`, from 0."""
        return self._floats("pareto", size, dtype, device, (("a", "above zero"),), a)

    def power(
        self, a: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats in [0, 1] with the density a * x ** (a - 1)."""
        return self._floats("power", size, dtype, device, (("a", "above zero"),), a)

    def weibull(
        self, a: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats of the Weibull distribution with shape `a` and scale 1."""
        return self._floats("weibull", size, dtype, device, (("a", "above zero"),), a)

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
        drawn = self._bits.draw(
            "triangular", size, dtype, self._device if device is None else device, left, mode, right
        )
        if drawn is not None:
            return drawn
        found = _float(dtype, "triangular")
        shape, device, (a, c, b) = self._numbers(
            "triangular", size, device, left=(left, "any"), mode=(mode, "any"), right=(right, "any")
        )
        if not (_all(a <= c) and _all(c <= b) and _all(a < b)):
            raise ValueError("triangular(): left <= mode <= right and left < right must hold")
        return self._made("triangular", shape, device, found, a, c, b)

    def wald(
        self,
        mean: Any,
        scale: Any,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Floats of the inverse Gaussian distribution."""
        return self._floats("wald", size, dtype, device, (("mean", "positive"), ("scale", "positive")), mean, scale)

    # --- of gamma variates -------------------------------------------------------------------------------------------

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
        return into(out, self._made("gamma", extents, device, found, a), "standard_gamma")

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
        if drawn is not None:  # here, since it is drawn from most often
            return drawn
        return self._floats("gamma", size, dtype, device, (("shape", "natural"), ("scale", "natural")), shape, scale)

    def beta(
        self, a: Any, b: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats in [0, 1] of the beta distribution."""
        return self._floats("beta", size, dtype, device, (("a", "positive"), ("b", "positive")), a, b)

    def chisquare(
        self, df: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats of the chi-squared distribution with `df` degrees of freedom."""
        if type(df) in _NUMBERS and df > 0:
            drawn = self._bits.draw("gamma", size, dtype, self._device if device is None else device, df / 2, 2.0)
            if drawn is not None:
                return drawn
        found = _float(dtype, "chisquare")
        shape, device, (df,) = self._numbers("chisquare", size, device, df=(df, "positive"))
        return self._made("gamma", shape, device, found, df / 2, 2.0)

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
        return self._floats("f", size, dtype, device, (("dfnum", "positive"), ("dfden", "positive")), dfnum, dfden)

    def standard_t(
        self, df: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Floats of Student's distribution with `df` degrees of freedom."""
        return self._floats("standard_t", size, dtype, device, (("df", "positive"),), df)

    def vonmises(
        self, mu: Any, kappa: Any, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Angles in [-pi, pi] of the von Mises distribution around `mu`."""
        return self._floats("vonmises", size, dtype, device, (("kappa", "natural"), ("mu", "any")), kappa, mu)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count
