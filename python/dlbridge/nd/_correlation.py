"""How variables vary together."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array
from dlbridge.nd._dtypes import is_inexact, kind_of
from dlbridge.nd._grids import diagonal
from dlbridge.nd._joining import concatenate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dlbridge.nd._arguments import ArrayLike, DTypeLike

ndarray = _native.ndarray


def _variables(m: ArrayLike, rowvar: bool, dtype: DTypeLike | None, more: bool = False) -> ndarray:
    """The observations as rows, one a variable. One row of those that come second stays a row, as in NumPy."""
    m = as_array(m)
    if m.ndim > 2:
        raise ValueError(f"cov(): the observations have {m.ndim} axes; give one or two")
    dtype = _native.result_type(m.dtype, "float64") if dtype is None else dtype
    rows = m.reshape(1, -1) if m.ndim < 2 else m if rowvar or (more and len(m) == 1) else m.T
    return rows.astype(dtype, copy=False)


def _weights(
    x: ndarray, fweights: ArrayLike | None, aweights: ArrayLike | None
) -> tuple[ndarray | None, ndarray | None]:
    """The product of both kinds of weights, and those of the second kind, which reduce the degrees of freedom."""
    product = None
    found: list[ndarray | None] = []
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        w = None if given is None else as_array(given, x)
        found.append(w)
        if w is None:
            continue
        if w.ndim > 1 or w.shape != (x.shape[1],):
            error = RuntimeError if w.ndim > 1 or w.size != x.shape[1] else ValueError
            raise error(f"cov(): {name} have shape {w.shape}; give one for each of the {x.shape[1]} observations")
        if name == "fweights" and kind_of(w.dtype) not in "iu":
            raise TypeError(f"cov(): fweights are {w.dtype}; they count observations and must be integers")
        if bool((w < 0).any()):
            raise ValueError(f"cov(): {name} are negative somewhere; give 0 or more")
        product = w if product is None else product * w
    return product, found[1]


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The covariances of variables. A row of `m` is a variable and a column an observation, or the other way round.

    rowvar: False for the other way. y: more variables of the same observations. ddof: what is taken from the number of
    observations; 0 with `bias`, else 1. fweights: how often each was seen; aweights: how much each counts. dtype: at
    least float64. Source: NumPy.
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"cov(): ddof is {ddof}; give an integer")
    x = _variables(m, rowvar, dtype)
    if y is not None:
        more = _variables(y, rowvar, dtype, more=True)
        common = _native.result_type(x.dtype, more.dtype)
        x = concatenate([x.astype(common, copy=False), more.astype(common, copy=False)])
    ddof = int(not bias) if ddof is None else int(ddof)
    w, counting = _weights(x, fweights, aweights)
    total = x.shape[1] if w is None else w.sum().item()
    if w is None:
        centre, freedom = x.mean(axis=1, keepdims=True), total - ddof
    else:
        if total == 0:
            raise ZeroDivisionError("cov(): the weights sum to zero, and nothing can be averaged")
        centre = (x * w).sum(axis=1, keepdims=True) / total
        lost = 0 if ddof == 0 else ddof if counting is None else ddof * (w * counting).sum().item() / total
        freedom = total - lost
    if x.shape[0] == 0:
        return _native.empty((0, 0), "float64", device=x.device)
    if freedom <= 0:
        import warnings

        warnings.warn("cov(): degrees of freedom <= 0", RuntimeWarning, stacklevel=2)
    if not is_inexact(x):
        raise TypeError(f"cov(): dtype is {x.dtype}, and means are taken away in it; give a float or complex one")
    x = x - centre
    weighted = x if w is None else (x * w).astype(x.dtype, copy=False)
    result = _native.matmul(x, weighted.T.conj()) / max(freedom, 0)
    return result.squeeze()


def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, *, dtype: DTypeLike | None = None
) -> ndarray:
    """The correlation coefficients of variables: their covariances by their deviations, between -1 and 1.

    Arguments as for cov(). NaN where a variable does not vary. Source: NumPy.
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = _native.sqrt(diagonal(c).real)
    c = c / deviation[:, None] / deviation[None, :]
    if kind_of(c.dtype) != "c":
        return _native.clip(c, -1, 1)
    real, imag = c.real, c.imag
    real[...] = _native.clip(real, -1, 1)
    imag[...] = _native.clip(imag, -1, 1)
    return c
