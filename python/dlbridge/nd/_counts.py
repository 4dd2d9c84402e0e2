"""Distributions of counts: by a table where one distribution is drawn from often, by rejection else.

A probability is the exponential of sums of two smooth functions, so that no large numbers cancel (Loader 2000): the
rest of Stirling's formula, and deviance(k, mean) = k log(k / mean) + mean - k.
"""

from __future__ import annotations

from typing import Any

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, count_up, is_scalar, shape_of
from dlbridge.nd._distributions import _EPSILON, _FLOAT64, _checked, _count, _Distributions
from dlbridge.nd._dtypes import BY_NAME, kind_of, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbridge.nd._arguments import ArrayLike, DeviceLike, DTypeLike, Shape

ndarray = _native.ndarray
_INT64 = BY_NAME["int64"]
_LARGEST = 2.0**63 - 1024  # the largest float64 that an int64 holds
_TABLE_LIMIT = 1 << 16  # entries
_TABLED_DRAWS, _TABLED_MEAN = 1 << 13, 900.0  # of Poisson's: as many pay for a table, of at most 4096 entries
_FEW_TRIALS = 32  # of which drawing each one is faster than a binomial variate for each outcome but the last
_TRIALS_LIMIT = 1 << 26  # trials times outcomes that are looked at together: as many bytes, and some more for numbers


def _stirling_rest(k: ndarray) -> ndarray:
    """log(k!) - (k log k - k)."""
    from math import lgamma, log

    first = [lgamma(i + 1) - i * log(i) + i if i else 0.0 for i in range(16)]
    small = _native.asarray(first, _FLOAT64, device=k.device)[_native.clip(k, 0, 15).astype("int64")]
    x = _native.maximum(k, 16.0)
    y = 1 / (x * x)
    series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x
    return _native.where(k < 16, small, 0.5 * _native.log(6.283185307179586 * x) + series)


def _deviance(k: ndarray, mean: ndarray) -> ndarray:
    t = (k - mean) / _native.where(mean > 0, mean, 1.0)
    inner = mean * ((1 + t) * _native.log1p(t) - t)
    return _native.where(mean > 0, _native.where(k > 0, inner, mean), _native.where(k > 0, float("inf"), 0.0))


def _log_poisson(k: ndarray, mean: ndarray) -> ndarray:
    return -_deviance(k, mean) - _stirling_rest(k)


def _log_binomial(k: ndarray, n: ndarray, p: ndarray) -> ndarray:
    rests = _stirling_rest(n) - _stirling_rest(k) - _stirling_rest(n - k)
    return rests - _deviance(k, n * p) - _deviance(n - k, n * (1 - p))


def _log_hypergeometric(k: ndarray, good: ndarray, bad: ndarray, drawn: ndarray) -> ndarray:
    total = good + bad
    p = drawn / _native.where(total > 0, total, 1.0)
    return _log_binomial(k, good, p) + _log_binomial(drawn - k, bad, p) - _log_binomial(drawn, total, p)


# Sums of probabilities, and the count that the first stands for.
_Table = tuple[ndarray, int]
_Key = tuple[Any, ...]


def _entries(n: int) -> int:
    """How long a table for n numbers may be. Nothing else decides whether there is one, on which the numbers depend."""
    return min(_TABLE_LIMIT, max(4096, 4 * n))


def _table(
    n: int,
    parameters: list[ndarray],
    low: ndarray,
    high: ndarray,
    mode: ndarray,
    peak: ndarray,
    log_p: Callable[..., ndarray],
) -> _Table | None:
    """None where it would be much longer than what is drawn.

    What lies beyond it has a probability below exp(-40), which no float64 of 53 bits would draw.
    """
    reach = 41 / peak.item()
    first, last = max(low.item(), mode.item() - reach) // 1, min(high.item(), mode.item() + reach) // 1
    entries = last - first + 1
    if not entries <= _entries(n):
        return None
    k = count_up(int(entries), peak.device, _FLOAT64) + first
    sums = _native.exp(log_p(k, *parameters)).cumsum()
    sums /= sums[-1:].copy()
    return sums, int(first)


class _Counts(_Distributions):
    """dtype: of integers, of floats that hold the counts, or bool: whether there is any."""

    def __init__(self, seed: Any = None, *, device: DeviceLike = None) -> None:
        super().__init__(seed, device=device)
        self._tables: dict[_Key, _Table] = {}  # of the latest parameters that were numbers

    def _log_concave(
        self,
        shape: tuple[int, ...],
        device: DeviceLike,
        parameters: list[ndarray],
        ends: tuple[ndarray, ndarray],
        mode: ndarray,
        log_p: Callable[..., ndarray],
        dtype: Any,
        key: _Key | None,
    ) -> ndarray:
        """Integers k from ends[0] to ends[1] with the probability exp(log_p(k, *parameters)), the largest at `mode`."""
        n = _count(shape)
        low, high = ends
        mode = _native.clip(mode, low, high)
        peak = _native.exp(log_p(mode, *parameters))
        if peak.ndim == 0:
            table = _table(n, parameters, low, high, mode, peak, log_p)
            if table is not None:
                self._remember(key, table)
                return self._from_table(table, shape, device, dtype)

        def propose(
            source: _Distributions,
            n: int,
            device: DeviceLike,
            low: ndarray,
            high: ndarray,
            mode: ndarray,
            peak: ndarray,
            *of_p: ndarray,
        ) -> tuple[ndarray, ndarray]:
            """Under min(1, exp(1 - peak * |k - mode|)) times the peak. Source: Devroye 1987."""
            width = 1 + peak / 2
            flat = source._uniform(n, device) * (1 + width) <= width
            beyond = width + source._exponential(n, device)
            y = _native.where(flat, width * source._uniform(n, device), beyond) / peak
            k = mode + _native.where(source._uniform(n, device) < 0.5, -1.0, 1.0) * _native.rint(y)
            inside = (k >= low) & (k <= high)
            height = log_p(_native.where(inside, k, mode), *of_p) - log_p(mode, *of_p)
            bound = _native.log(source._uniform(n, device)) + _native.minimum(width - peak * y, 0.0)
            return k, inside & (bound <= height)

        found = self._accepted(n, device, [low, high, mode, peak, *parameters], propose)
        return found.astype(dtype, copy=False).reshape(shape)

    def _counted(
        self, law: str, given: tuple[tuple[int, ...], Any, list[Any]], dtype: Any, key: _Key | None
    ) -> ndarray:
        """What _log_concave() draws, by the host's own kernels; of the law's parameters, numbers or float64 arrays."""
        shape, device, parameters = given
        n = _count(shape)
        if all(isinstance(x, float) or x.ndim == 0 for x in parameters):
            table = _native.count_table(law, _entries(n), *map(float, parameters))
            if table is not None:
                self._remember(key, table)
                return self._from_table(table, shape, device, dtype)
        drawn = _native.empty((n,), _FLOAT64, device=device)
        arrays = (_native.asarray(x, _FLOAT64, device=device).ravel() for x in parameters)
        _native.count_fill(drawn, law, self._bits.spawn(1)[0].key, *arrays)
        return drawn.astype(dtype, copy=False).reshape(shape)

    def _remember(self, key: _Key | None, table: _Table) -> None:
        if key is not None and table[0].size <= 4096:
            self._tables[key] = table
            for older in list(self._tables)[:-16]:
                self._tables.pop(older, None)

    def _from_table(self, table: _Table, shape: tuple[int, ...], device: DeviceLike, dtype: Any) -> ndarray:
        """By the inverse of the distribution's sums."""
        sums, first = table
        drawn = _native.searchsorted_flat(sums, self._draw("uniform", (_count(shape),), _FLOAT64, None, device), True)
        return (drawn + first if first else drawn).astype(dtype, copy=False).reshape(shape)

    def _remembered(
        self, operation: str, size: Shape | None, device: DeviceLike, dtype: Any, *parameters: Any
    ) -> tuple[ndarray | None, _Key | None]:
        """What a table that was made before gives, and the key of a table: none where a parameter is an array."""
        if not all(map(is_scalar, parameters)):
            return None, None
        device = self._device if device is None else device
        if device != "cpu":
            device = _native.empty((0,), "bool", device=device).device
        key = (operation, str(device), *map(float, parameters))
        table, shape = self._tables.get(key), () if size is None else shape_of(size, operation)
        if table is None or table[0].size > _entries(_count(shape)):
            return None, key
        return self._from_table(table, shape, device, dtype), key

    def poisson(
        self, lam: Any = 1.0, size: Shape | None = None, dtype: DTypeLike = "int64", *, device: DeviceLike = None
    ) -> ndarray:
        """How many events happen, where `lam` are expected."""
        found = _number(dtype, "poisson")
        if type(size) is int and size < _TABLED_DRAWS:
            drawn = self._bits.draw("poisson", size, _INT64, self._device if device is None else device, lam)
            if drawn is not None:
                return drawn.astype(found, copy=False)
        shape, device, (mean,) = self._numbers("poisson", size, device, lam=(lam, "count"))
        return self._poissons(shape, device, mean, found)

    def _poissons(self, shape: tuple[int, ...], device: DeviceLike, mean: Any, found: Any) -> ndarray:
        n = _count(shape)
        if not isinstance(mean, float) or mean > _TABLED_MEAN or n < _TABLED_DRAWS:
            return self._variates("poisson", n, device, mean, dtype=_INT64).astype(found, copy=False).reshape(shape)
        drawn, key = self._remembered("poisson", shape, device, found, mean)
        if drawn is not None:
            return drawn
        if self._on_host(device):
            return self._counted("poisson", (shape, device, [mean]), found, key)
        parameter = _native.asarray(mean, _FLOAT64, device=self._device if device is None else device)
        ends = parameter * 0, parameter * 0 + _LARGEST
        return self._log_concave(shape, device, [parameter], ends, _native.floor(parameter), _log_poisson, found, key)

    def binomial(
        self, n: Any, p: Any, size: Shape | None = None, dtype: DTypeLike = "int64", *, device: DeviceLike = None
    ) -> ndarray:
        """How many of `n` trials succeed, each with probability `p`."""
        found = _number(dtype, "binomial")
        drawn, key = self._remembered("binomial", size, device, found, n, p)
        if drawn is not None:
            return drawn
        given = {"n": (n, "count"), "p": (p, "probability")}
        if self._on_host(device, n, p):
            return self._counted("binomial", self._numbers("binomial", size, device, **given), found, key)
        shape, device, (n, p) = self._parameters("binomial", size, device, **given)
        n, p = _native.floor(n) + 0 * p, p + 0 * n
        return self._log_concave(
            shape, device, [n, p], (0 * n, n), _native.floor((n + 1) * p), _log_binomial, found, key
        )

    def hypergeometric(
        self,
        ngood: Any,
        nbad: Any,
        nsample: Any,
        size: Shape | None = None,
        dtype: DTypeLike = "int64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """How many good ones are among `nsample`, drawn without replacement from good and bad ones.

        ValueError where more are drawn than there are.
        """
        found = _number(dtype, "hypergeometric")
        drawn, key = self._remembered("hypergeometric", size, device, found, ngood, nbad, nsample)
        if drawn is not None:
            return drawn
        given = {"ngood": (ngood, "count"), "nbad": (nbad, "count"), "nsample": (nsample, "count")}
        if self._on_host(device, ngood, nbad, nsample):
            numbers = self._numbers("hypergeometric", size, device, **given)
            good, bad, drawn = numbers[2]
            _check_pool(drawn // 1 > good // 1 + bad // 1)
            return self._counted("hypergeometric", numbers, found, key)
        shape, device, (good, bad, drawn) = self._parameters("hypergeometric", size, device, **given)
        zero = 0 * (good + bad + drawn)
        good, bad, drawn = (_native.floor(x) + zero for x in (good, bad, drawn))
        _check_pool(drawn > good + bad)
        ends = _native.maximum(drawn - bad, 0.0), _native.minimum(good, drawn)
        mode = _native.floor((drawn + 1) * (good + 1) / (good + bad + 2))
        return self._log_concave(shape, device, [good, bad, drawn], ends, mode, _log_hypergeometric, found, key)

    def negative_binomial(
        self, n: Any, p: Any, size: Shape | None = None, dtype: DTypeLike = "int64", *, device: DeviceLike = None
    ) -> ndarray:
        """How many trials fail before `n` have succeeded, each with probability `p`; n need not be whole."""
        found = _number(dtype, "negative_binomial")
        one_chance = is_scalar(p)
        shape, device, (n, p) = self._numbers("negative_binomial", size, device, n=(n, "positive"), p=(p, "chance"))
        count, scale = _count(shape), (1 - p) / p
        _checked((n + 10 * n**0.5) * scale, "n * (1 - p) / p", "count", "negative_binomial")
        if one_chance:
            drawn = self._variates("negative_binomial", count, device, n, float(scale), _INT64)
        else:
            means = scale * self._variates("gamma", count, device, n)
            drawn = self._variates("poisson", count, device, means, dtype=_INT64)
        return drawn.astype(found, copy=False).reshape(shape)

    def geometric(
        self, p: Any, size: Shape | None = None, dtype: DTypeLike = "int64", *, device: DeviceLike = None
    ) -> ndarray:
        """How many trials there are until one succeeds, each with probability `p`."""
        found = _number(dtype, "geometric")
        drawn = self._by_formula("geometric", size, found, device, p)
        if drawn is not None:
            return drawn
        shape, device, (p,) = self._parameters("geometric", size, device, p=(p, "chance"))
        k = _native.ceil(-self._exponential(_count(shape), device) / _native.log1p(-p))
        return _whole(_native.clip(k, 1.0, _LARGEST), shape, found)

    def logseries(
        self, p: Any, size: Shape | None = None, dtype: DTypeLike = "int64", *, device: DeviceLike = None
    ) -> ndarray:
        """Integers k from 1 on with probabilities in proportion to p ** k / k. Source: Kemp 1981."""
        found = _number(dtype, "logseries")
        drawn = self._by_formula("logseries", size, found, device, p)
        if drawn is not None:
            return drawn
        shape, device, (p,) = self._parameters("logseries", size, device, p=(p, "below one"))
        n = _count(shape)
        v = self._uniform(n, device)
        q = -_native.expm1(_native.log1p(-p) * self._uniform(n, device))
        q = _native.clip(q, 1e-300, 1 - _EPSILON)
        k = _native.where(
            v <= q * q, _native.floor(1 + _native.log(v) / _native.log(q)), _native.where(v <= q, 2.0, 1.0)
        )
        return _whole(_native.clip(_native.where(v >= p, 1.0, k), 1.0, _LARGEST), shape, found)

    def zipf(
        self, a: Any, size: Shape | None = None, dtype: DTypeLike = "int64", *, device: DeviceLike = None
    ) -> ndarray:
        """Integers k from 1 on with probabilities in proportion to k ** -a, of those that int64 holds."""
        found = _number(dtype, "zipf")
        drawn = self._bits.draw("zipf", size, _INT64, self._device if device is None else device, a)
        if drawn is not None:
            return drawn.astype(found, copy=False)
        shape, device, (a,) = self._parameters("zipf", size, device, a=(a, "above one"))
        drawn = self._variates("zipf", _count(shape), device, a, dtype=_INT64)
        return drawn.astype(found, copy=False).reshape(shape)

    def noncentral_chisquare(
        self,
        df: Any,
        nonc: Any,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Floats of the noncentral chi-squared distribution: `df` degrees of freedom and twice a Poisson variate."""
        shape, device, (df, nonc) = self._numbers(
            "noncentral_chisquare", size, device, df=(df, "positive"), nonc=(nonc, "natural")
        )
        x = self._noncentral(_count(shape), device, df, nonc).reshape(shape)
        return x.astype(_number(dtype, "noncentral_chisquare"), copy=False)

    def _noncentral(self, n: int, device: DeviceLike, df: Any, nonc: Any) -> ndarray:
        if isinstance(nonc, float) and self._on_host(device):  # what was looked at needs no second look
            mean = _checked(nonc / 2, "nonc / 2", "count", "noncentral_chisquare")
            return self._chisquares(n, device, df + 2 * self._poissons((n,), device, mean, _FLOAT64))
        return self.chisquare(df + 2 * self.poisson(nonc / 2, (n,), "float64", device=device))

    def noncentral_f(
        self,
        dfnum: Any,
        dfden: Any,
        nonc: Any,
        size: Shape | None = None,
        dtype: DTypeLike = "float64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Floats of the noncentral F distribution: a noncentral chi-squared variate in Fisher's quotient."""
        shape, device, (top, bottom, nonc) = self._numbers(
            *("noncentral_f", size, device),
            dfnum=(dfnum, "positive"),
            dfden=(dfden, "positive"),
            nonc=(nonc, "natural"),
        )
        n = _count(shape)
        if isinstance(top, float) and self._on_host(device):
            x, y = self._noncentral(n, device, top, nonc) / top, self._chisquares(n, device, bottom) / bottom
        else:
            x = self.noncentral_chisquare(top, nonc, (n,), device=device) / top
            y = self.chisquare(bottom, (n,), device=device) / bottom
        return (x / y).astype(_number(dtype, "noncentral_f"), copy=False).reshape(shape)

    def multinomial(
        self,
        n: Any,
        pvals: ArrayLike,
        size: Shape | None = None,
        dtype: DTypeLike = "int64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """How often each of some outcomes happens in `n` trials; the last axis is that of the outcomes.

        pvals: their probabilities along the last axis; what they lack of 1 is the last one's. ValueError for a sum
        above 1. An array of `n` gives a row for each of its elements.
        """
        like = next((x for x in (n, pvals) if isinstance(x, ndarray)), None)
        device = like.device if like is not None else self._device if device is None else device
        p = as_array(pvals, like) if like is not None else _native.asarray(pvals, device=device)
        p = p.astype(_FLOAT64, copy=False)
        if (rows := self._rows_of_few(n, p, size)) is not None:
            return self._trial_by_trial(int(n), p, rows).astype(_number(dtype, "multinomial"), copy=False)
        p = _checked(p, "pvals", "probability", "multinomial")
        if p.ndim == 0:
            raise ValueError("multinomial(): pvals has no axis; give the probabilities of the outcomes")
        if p.shape[-1] == 0:
            raise ValueError("multinomial(): pvals is empty; give the probabilities of the outcomes")
        if bool((p[..., :-1].sum(-1) > 1 + 1e-12).any()):
            raise ValueError("multinomial(): pvals sum to more than 1. Divide them by their sum")
        shape, _, (left,) = self._parameters("multinomial", None, p.device, n=(n, "count"))
        trials = left.reshape(shape)
        if size is None:
            common = _native.broadcast_to(trials, _both(shape, p.shape[:-1])).shape
        else:
            common = shape_of(size, "multinomial")
        few = trials.ndim == 0 and p.ndim == 1 and is_scalar(n) and 0 < n <= _FEW_TRIALS
        if few and _count(common) * int(n) * p.size <= _TRIALS_LIMIT:
            return self._trial_by_trial(int(n), p, common).astype(_number(dtype, "multinomial"), copy=False)
        rest = _native.broadcast_to(trials, common).copy()
        chances, columns = _native.broadcast_to(p, (*common, p.shape[-1])), []
        missing = _native.broadcast_to(p[..., 0] * 0 + 1, common)
        for i in range(p.shape[-1] - 1):
            part = _native.clip(chances[..., i] / _native.where(missing > 0, missing, 1.0), 0.0, 1.0)
            columns.append(self.binomial(rest, part))
            rest, missing = rest - columns[-1], missing - chances[..., i]
        return _native.stack([*columns, rest.astype("int64")], -1).astype(_number(dtype, "multinomial"), copy=False)

    def _rows_of_few(self, n: Any, p: ndarray, size: Shape | None) -> tuple[int, ...] | None:
        """The shape of the rows where the host is to draw each of a few trials, and the parameters are in order: of
        short ones Python sees that sooner than operations on arrays."""
        if not (isinstance(p, _native.HostArray) and p.ndim == 1 and 0 < p.size <= _FEW_TRIALS and is_scalar(n)):
            return None
        chances = p.tolist()
        if not (0 < n <= _FEW_TRIALS and all(0 <= x <= 1 for x in chances) and sum(chances[:-1]) <= 1 + 1e-12):
            return None
        shape = () if size is None else shape_of(size, "multinomial")
        return shape if _count(shape) * int(n) * p.size <= _TRIALS_LIMIT else None

    def _trial_by_trial(self, n: int, p: ndarray, shape: tuple[int, ...]) -> ndarray:
        """The outcome of each trial by the sums of the probabilities, and how often each was."""
        sums = p[:-1].cumsum()
        if isinstance(p, _native.HostArray):
            counts = _native.empty((*shape, p.size), _INT64, device=p.device)
            offset = self._bits.take((_count(shape) * n + 1) // 2)
            _native.trials_fill(counts, sums, n, self._bits.key, offset)
            return counts
        u = self._draw("uniform", (_count(shape) * n,), _FLOAT64, None, p.device)
        outcomes = _native.searchsorted_flat(sums, u, True).reshape((*shape, 1, n))
        return (outcomes == count_up(p.size, p.device, outcomes.dtype).reshape((-1, 1))).sum(-1)

    def multivariate_hypergeometric(
        self,
        colors: ArrayLike,
        nsample: Any,
        size: Shape | None = None,
        dtype: DTypeLike = "int64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """How many of each colour are among `nsample`, drawn without replacement; the last axis is that of the colours.

        colors: how many there are of each. ValueError where more are drawn than there are.
        """
        pool = as_array(colors) if isinstance(colors, ndarray) else _native.asarray(colors, device=device)
        if pool.ndim != 1 or kind_of(pool.dtype) not in "iu" or pool.size == 0:
            raise ValueError(
                f"multivariate_hypergeometric(): colors is {pool.dtype} of shape {pool.shape}; give counts"
            )
        counts = _checked(pool.astype(_FLOAT64), "colors", "count", "multivariate_hypergeometric")
        shape = () if size is None else shape_of(size, "multivariate_hypergeometric")
        rest = _native.broadcast_to(_native.asarray(float(nsample), _FLOAT64, device=pool.device), shape)
        if isinstance(pool, _native.HostArray):
            columns = self._colours(counts, rest, shape)
        else:
            columns = []
            for i in range(pool.size):
                columns.append(self.hypergeometric(counts[i], counts[i + 1 :].sum(), rest, shape))
                rest = rest - columns[-1]
        found = _number(dtype, "multivariate_hypergeometric")
        return _native.stack(columns, -1).astype(found, copy=False)

    def _colours(self, counts: ndarray, rest: ndarray, shape: tuple[int, ...]) -> list[ndarray]:
        """Each colour's number on the host; of the last, what is left."""
        _check_pool(_checked(rest, "nsample", "count", "multivariate_hypergeometric") // 1 > counts.sum())
        columns = []
        for i, good in enumerate(counts.tolist()[:-1]):
            parameters = [good, counts[i + 1 :].sum().item(), rest.reshape(-1) if shape else rest]
            columns.append(self._counted("hypergeometric", (shape, counts.device, parameters), _INT64, None))
            rest = rest - columns[-1]
        self._bits.take(1)  # as many counters as a draw takes
        return [*columns, rest.astype(_INT64)]


def _check_pool(exceeded: Any) -> None:
    if bool(exceeded.any() if isinstance(exceeded, ndarray) else exceeded):
        raise ValueError("hypergeometric(): nsample is more than ngood + nbad; draw at most as many as there are")


def _both(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    from dlbridge.nd._arguments import broadcast_shapes

    return broadcast_shapes(one, other)


def _number(dtype: DTypeLike, operation: str) -> Any:
    found = resolve(dtype)
    if kind_of(found) not in "biuf":
        raise TypeError(
            f"{operation}(): dtype is {found}; it must be of integers, of floats that hold them, or bool (none or some)"
        )
    return found


def _whole(k: ndarray, shape: tuple[int, ...], dtype: Any) -> ndarray:
    return k.astype("int64").astype(dtype, copy=False).reshape(shape)
