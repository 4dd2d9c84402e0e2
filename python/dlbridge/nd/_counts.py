"""Distributions of counts: by a table where one distribution is drawn from often, else by the kernels' laws."""

from __future__ import annotations

from typing import Any

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, broadcast_shapes, is_scalar, shape_of
from dlbridge.nd._distributions import _FLOAT64, _checked, _count, _Distributions, _given, _Rules
from dlbridge.nd._dtypes import BY_NAME, kind_of, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dlbridge.nd._arguments import ArrayLike, DeviceLike, DTypeLike, Shape

ndarray = _native.ndarray
_INT64 = BY_NAME["int64"]
_TABLE_LIMIT, _SHORT = 1 << 16, 1 << 12  # entries; short tables may serve any number of draws
_TABLED_DRAWS, _TABLED_MEAN = 1 << 13, 900.0  # of Poisson's: as many pay for a table, of at most 4096 entries

# Sums of probabilities, and the count that the first stands for.
_Table = tuple[ndarray, int]
_Key = tuple[Any, ...]


def _entries(n: int) -> int:
    """How long a table for n numbers may be. Nothing else decides whether there is one, on which the numbers depend."""
    return min(_TABLE_LIMIT, max(_SHORT, 4 * n))


class _Counts(_Distributions):
    """dtype: of integers, of floats that hold the counts, or bool: whether there is any."""

    def __init__(self, seed: Any = None, *, device: DeviceLike = None) -> None:
        super().__init__(seed, device=device)
        self._tables: dict[_Key, _Table] = {}  # of the latest parameters that were numbers

    def _counted(
        self, law: str, given: tuple[tuple[int, ...], Any, list[Any]], dtype: Any, key: _Key | None
    ) -> ndarray:
        """Counts of a law of these parameters, numbers or lines: by a table where they are numbers, and it is short."""
        shape, device, parameters = given
        if all(isinstance(x, float) for x in parameters):
            made = _native.count_table(law, _entries(_count(shape)), *parameters)
            if made is not None:
                table = _native.to_device(made[0], _place(device)), made[1]
                self._remember(key, table)
                return self._from_table(table, shape, dtype)
        return self._made(law, shape, device, _INT64, *parameters).astype(dtype, copy=False)

    def _integers(
        self, law: str, size: Shape | None, dtype: DTypeLike, device: DeviceLike, rules: _Rules, *values: Any
    ) -> ndarray:
        """As _floats(), counts."""
        found = _number(dtype, law)
        drawn = self._bits.draw(law, size, _INT64, self._device if device is None else device, *values)
        if drawn is None:
            shape, device, parameters = self._numbers(law, size, device, **_given(rules, values))
            drawn = self._made(law, shape, device, _INT64, *parameters)
        return drawn if found is _INT64 else drawn.astype(found)

    def _remember(self, key: _Key | None, table: _Table) -> None:
        if key is not None and table[0].size <= _SHORT:
            self._tables[key] = table
            for older in list(self._tables)[:-16]:
                self._tables.pop(older, None)

    def _from_table(self, table: _Table, size: Shape | None, dtype: Any) -> ndarray:
        """By the inverse of the distribution's sums."""
        drawn = self._bits.draw_by_table(*table, size)
        return drawn if dtype is _INT64 else drawn.astype(dtype)

    def _remembered(
        self, operation: str, size: Shape | None, device: DeviceLike, dtype: Any, *parameters: Any
    ) -> tuple[ndarray | None, _Key | None]:
        """What a table that was made before gives, and the key of a table: none where a parameter is an array."""
        numbers = [x if type(x) is float else float(x) if type(x) is int or is_scalar(x) else None for x in parameters]
        if None in numbers:
            return None, None
        device = self._device if device is None else device
        key = (operation, str(_place(device)), *numbers)
        table = self._tables.get(key)  # short: see _remember()
        return None if table is None else self._from_table(table, size, dtype), key

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
        if not isinstance(mean, float) or mean > _TABLED_MEAN or _count(shape) < _TABLED_DRAWS:
            return self._made("poisson", shape, device, _INT64, mean).astype(found, copy=False)
        drawn, key = self._remembered("poisson", shape, device, found, mean)
        return self._counted("poisson", (shape, device, [mean]), found, key) if drawn is None else drawn

    def binomial(
        self, n: Any, p: Any, size: Shape | None = None, dtype: DTypeLike = "int64", *, device: DeviceLike = None
    ) -> ndarray:
        """How many of `n` trials succeed, each with probability `p`."""
        found = _number(dtype, "binomial")
        drawn, key = self._remembered("binomial", size, device, found, n, p)
        if drawn is not None:
            return drawn
        numbers = self._numbers("binomial", size, device, n=(n, "count"), p=(p, "probability"))
        return self._counted("binomial", numbers, found, key)

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
        numbers = self._numbers(
            *("hypergeometric", size, device), ngood=(ngood, "count"), nbad=(nbad, "count"), nsample=(nsample, "count")
        )
        good, bad, drawn = numbers[2]
        _check_pool(drawn // 1 > good // 1 + bad // 1)
        return self._counted("hypergeometric", numbers, found, key)

    def negative_binomial(
        self, n: Any, p: Any, size: Shape | None = None, dtype: DTypeLike = "int64", *, device: DeviceLike = None
    ) -> ndarray:
        """How many trials fail before `n` have succeeded, each with probability `p`; n need not be whole."""
        found = _number(dtype, "negative_binomial")
        drawn = self._bits.draw("negative_binomial", size, _INT64, self._device if device is None else device, n, p)
        if drawn is not None:
            return drawn.astype(found, copy=False)
        shape, device, (n, p) = self._numbers("negative_binomial", size, device, n=(n, "positive"), p=(p, "chance"))
        scale = (1 - p) / p
        _checked((n + 10 * n**0.5) * scale, "n * (1 - p) / p", "count", "negative_binomial")
        return self._made("negative_binomial", shape, device, _INT64, n, scale).astype(found, copy=False)

    def geometric(
        self, p: Any, size: Shape | None = None, dtype: DTypeLike = "int64", *, device: DeviceLike = None
    ) -> ndarray:
        """How many trials there are until one succeeds, each with probability `p`."""
        return self._integers("geometric", size, dtype, device, (("p", "chance"),), p)

    def logseries(
        self, p: Any, size: Shape | None = None, dtype: DTypeLike = "int64", *, device: DeviceLike = None
    ) -> ndarray:
        """Integers k from 1 on with probabilities in proportion to p ** k / k."""
        return self._integers("logseries", size, dtype, device, (("p", "below one"),), p)

    def zipf(
        self, a: Any, size: Shape | None = None, dtype: DTypeLike = "int64", *, device: DeviceLike = None
    ) -> ndarray:
        """Integers k from 1 on with probabilities in proportion to k ** -a, of those that int64 holds."""
        return self._integers("zipf", size, dtype, device, (("a", "above one"),), a)

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
        drawn = self._floats(
            "noncentral_chisquare", size, "float64", device, (("df", "positive"), ("nonc", "count")), df, nonc
        )
        return drawn.astype(_number(dtype, "noncentral_chisquare"), copy=False)

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
        rules = (("dfnum", "positive"), ("dfden", "positive"), ("nonc", "count"))
        drawn = self._floats("noncentral_f", size, "float64", device, rules, dfnum, dfden, nonc)
        return drawn.astype(_number(dtype, "noncentral_f"), copy=False)

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
        # What is not an array yet is looked at where it is, on the host.
        p = pvals if isinstance(pvals, ndarray) else _native.asarray(pvals, device="cpu")
        p = p.astype(_FLOAT64, copy=False)
        _check_chances(p)
        if not isinstance(pvals, ndarray):
            p = _native.to_device(p, _place(device))
        shape, device, (trials,) = self._numbers("multinomial", None, p.device, n=(n, "count"))
        common = broadcast_shapes(shape, p.shape[:-1]) if size is None else shape_of(size, "multinomial")
        counts = _native.empty((*common, p.shape[-1]), _INT64, device=p.device)
        if p.ndim > 1:
            p = _native.broadcast_to(p, counts.shape)
        if not isinstance(trials, float):
            trials = _native.broadcast_to(trials.reshape(shape), common).ravel()
        if counts.size:
            self._bits.multinomial(counts, _native.ascontiguousarray(p), trials)
        return counts.astype(_number(dtype, "multinomial"), copy=False)

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
        rest: Any = _checked(float(nsample), "nsample", "count", "multivariate_hypergeometric") // 1
        pools = counts.tolist()
        _check_pool(rest > sum(pools))
        columns = []
        for i, good in enumerate(pools[:-1]):
            given = (shape, pool.device, [good, float(sum(pools[i + 1 :])), rest])
            columns.append(self._counted("hypergeometric", given, _INT64, None))
            rest = rest - columns[-1]
        last = _native.broadcast_to(_native.asarray(rest, _FLOAT64, device=pool.device), shape)
        found = _number(dtype, "multivariate_hypergeometric")
        return _native.stack([*columns, last.astype(_INT64)], -1).astype(found, copy=False)


def _place(device: DeviceLike) -> Any:
    """The device that a new array of `device` lies on."""
    if device is None:
        return _native.default_device()
    return device if device == "cpu" else _native.empty((0,), "bool", device=device).device


def _check_chances(p: ndarray) -> None:
    if p.ndim == 0:
        raise ValueError("multinomial(): pvals has no axis; give the probabilities of the outcomes")
    if p.shape[-1] == 0:
        raise ValueError("multinomial(): pvals is empty; give the probabilities of the outcomes")
    if isinstance(p, _native.HostArray) and p.ndim == 1 and p.size <= 32:  # which Python sees sooner than operations
        chances = p.tolist()
        if all(0 <= x <= 1 for x in chances) and sum(chances[:-1]) <= 1 + 1e-12:
            return
    _checked(p, "pvals", "probability", "multinomial")
    if bool((p[..., :-1].sum(-1) > 1 + 1e-12).any()):
        raise ValueError("multinomial(): pvals sum to more than 1. Divide them by their sum")


def _check_pool(exceeded: Any) -> None:
    if bool(exceeded.any() if isinstance(exceeded, ndarray) else exceeded):
        raise ValueError("hypergeometric(): nsample is more than ngood + nbad; draw at most as many as there are")


def _number(dtype: DTypeLike, operation: str) -> Any:
    if type(dtype) is str and dtype == "int64":  # which it is by default
        return _INT64
    found = resolve(dtype)
    if kind_of(found) not in "biuf":
        raise TypeError(
            f"{operation}(): dtype is {found}; it must be of integers, of floats that hold them, or bool (none or some)"
        )
    return found
