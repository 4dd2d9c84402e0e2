"""Generator: the distributions together, those of vectors, and NumPy's older RandomState."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array, shape_of
from dlbridge.nd._bit_generators import Philox4x32
from dlbridge.nd._counts import _Counts
from dlbridge.nd._distributions import _FLOAT64, _checked
from dlbridge.nd._draws import _float

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, DeviceLike, DTypeLike, Shape

ndarray = _native.ndarray
_NO_UNDERFLOW = 0.1  # gamma variates of such shapes are above 1e-200


class Generator(_Counts):
    """Random arrays. The same seed gives the same numbers on the host and on every device, call by call.

    `seed`: see key_of(); `device`: where arrays are made unless a call says otherwise, the current device by default.
    All methods may be called from several threads. A draw takes a number of counters that does not depend on the
    numbers. For parameters in arrays the host waits for the device.
    """

    def dirichlet(
        self, alpha: ArrayLike, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Vectors of floats that sum to 1, along the last axis; alpha: the vector of concentrations."""
        found = _float(dtype, "dirichlet")
        if device is None:
            device = self._device
        a = as_array(alpha) if isinstance(alpha, ndarray) else _native.asarray(alpha, device=device)
        if a.ndim != 1 or a.size == 0:
            raise ValueError(f"dirichlet(): alpha has shape {a.shape}; give a vector of concentrations")
        a = _checked(a.astype(_FLOAT64, copy=False), "alpha", "positive", "dirichlet")
        shape = (*(() if size is None else shape_of(size, "dirichlet")), a.size)
        lines = _native.broadcast_to(a, shape).reshape(-1)
        if bool((a >= _NO_UNDERFLOW).all()):
            x = self._made("gamma", shape, a.device, _FLOAT64, lines)
        else:
            x = self._made("log_gamma", shape, a.device, _FLOAT64, lines)
            x = _native.exp(x - x.max(-1, keepdims=True)) if x.size else x
        return (x / x.sum(-1, keepdims=True)).astype(found, copy=False)

    def multivariate_normal(
        self,
        mean: ArrayLike,
        cov: ArrayLike,
        size: Shape | None = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        dtype: DTypeLike = "float64",
        *,
        method: str = "svd",
        device: DeviceLike = None,
    ) -> ndarray:
        """Vectors of floats, normally distributed with a vector of means and a matrix of covariances.

        check_valid: what becomes of a matrix that is not positive semidefinite within `tol`: "warn", "raise" or
        "ignore". method: of its root, "svd", "eigh" or "cholesky"; it is taken on the host. The last axis is the
        vectors'. Source: NumPy.
        """
        found = _float(dtype, "multivariate_normal")
        like = next((x for x in (mean, cov) if isinstance(x, ndarray)), None)
        device = like.device if like is not None else self._device if device is None else device
        centre, c = (
            (as_array(x, like) if like is not None else _native.asarray(x, device=device)).astype(_FLOAT64, copy=False)
            for x in (mean, cov)
        )
        if centre.ndim != 1 or c.shape != (centre.size, centre.size):
            raise ValueError(
                f"multivariate_normal(): cov of shape {c.shape} for a mean of shape {centre.shape}; give a vector and "
                "a square matrix of its length"
            )
        root = _root(_native.to_device(c, "cpu"), check_valid, tol, method)
        shape = (*(() if size is None else shape_of(size, "multivariate_normal")), centre.size)
        x = _native.matmul(self.standard_normal(shape, device=centre.device), _native.to_device(root, centre.device))
        return (x + centre).astype(found, copy=False)


def _root(cov: ndarray, check_valid: str, tol: float, method: str) -> ndarray:
    """A matrix whose transpose times itself is the covariance."""
    from dlbridge.nd import linalg
    from dlbridge.nd._logic import allclose

    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError(f"multivariate_normal(): method is {method!r}; it must be 'svd', 'eigh' or 'cholesky'")
    if check_valid not in ("warn", "raise", "ignore"):
        raise ValueError(f"multivariate_normal(): check_valid is {check_valid!r}; it is 'warn', 'raise' or 'ignore'")
    if method == "cholesky":
        rows = linalg.cholesky(cov).T
    elif method == "eigh":
        values, vectors = linalg.eigh(cov)
        rows = vectors.T * _native.sqrt(_native.maximum(values, 0.0))[:, None]
    else:
        _, values, vectors = linalg.svd(cov)
        rows = vectors * _native.sqrt(values)[:, None]
    if check_valid != "ignore" and not bool(allclose(_native.matmul(rows.T, rows), cov, rtol=tol, atol=tol)):
        text = "multivariate_normal(): cov is not symmetric positive semidefinite"
        if check_valid == "raise":
            raise ValueError(text)
        import warnings

        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return rows


def _cut(bound: Any) -> Any:
    return int(bound) if isinstance(bound, float) else bound


class RandomState(Generator):
    """A Generator with NumPy's older names. Its numbers are the Generator's, not those of NumPy's RandomState."""

    def seed(self, seed: Any = None) -> None:
        """Starts again with another seed; None for one of the system."""
        self.state = Philox4x32(seed).state

    def get_state(self) -> dict[str, Any]:
        """The state, for set_state()."""
        return self.state

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes back to where get_state() was called."""
        self.state = state

    def rand(self, *size: int, dtype: DTypeLike = "float64", device: DeviceLike = None) -> ndarray:
        """Uniform floats in [0, 1); the arguments are the extents."""
        return self.random(size, dtype, device=device)

    def randn(self, *size: int, dtype: DTypeLike = "float64", device: DeviceLike = None) -> ndarray:
        """Normally distributed floats of mean 0 and standard deviation 1; the arguments are the extents."""
        return self.standard_normal(size, dtype, device=device)

    def random_sample(
        self, size: Shape | None = None, dtype: DTypeLike = "float64", *, device: DeviceLike = None
    ) -> ndarray:
        """Uniform floats in [0, 1), as random()."""
        return self.random(size, dtype, device=device)

    def randint(
        self,
        low: Any,
        high: Any = None,
        size: Shape | None = None,
        dtype: DTypeLike = "int64",
        *,
        device: DeviceLike = None,
    ) -> ndarray:
        """Uniform integers in [low, high), or [0, low) with one argument; the bounds are numbers, or arrays that
        broadcast to `size`. Floats are cut to integers, as NumPy does it here, and not in Generator.integers()."""
        first, last = (_cut(bound) for bound in (low, high))
        return self.integers(first, last, size, dtype, device=device)

    def random_integers(
        self, low: int, high: int | None = None, size: Shape | None = None, *, device: DeviceLike = None
    ) -> ndarray:
        """Uniform integers from `low` to `high`, both included, or from 1 to `low` with one argument."""
        first, last = (1, index(low)) if high is None else (index(low), index(high))
        return self.integers(first, last, size, endpoint=True, device=device)

    def tomaxint(self, size: Shape | None = None, *, device: DeviceLike = None) -> ndarray:
        """Uniform integers from 0 to the largest of int64."""
        return self.integers(0, (1 << 63) - 1, size, endpoint=True, device=device)
