"""Random arrays: the Generator, and NumPy's older functions over one generator that all of them share."""

from __future__ import annotations

from operator import index

from dlbridge.nd import _native
from dlbridge.nd._generator import Generator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import DeviceLike, DTypeLike, Shape

ndarray = _native.ndarray

__all__ = [
    "Generator",
    "bytes",
    "choice",
    "default_rng",
    "exponential",
    "get_state",
    "gumbel",
    "laplace",
    "logistic",
    "lognormal",
    "normal",
    "permutation",
    "rand",
    "randint",
    "randn",
    "random",
    "random_sample",
    "ranf",
    "rayleigh",
    "sample",
    "seed",
    "set_state",
    "shuffle",
    "standard_cauchy",
    "standard_exponential",
    "standard_normal",
    "uniform",
]

_shared = Generator()


def default_rng(seed: Any = None, *, device: DeviceLike = None) -> Generator:
    """A Generator of a seed: an integer of any size, a sequence of them, None for one of the system; or that
    Generator."""
    return seed if isinstance(seed, Generator) else Generator(seed, device=device)


def seed(seed: Any = None) -> None:
    """Restarts the shared generator; arguments as for default_rng()."""
    _shared.state = Generator(seed).state


def get_state() -> dict[str, Any]:
    """The state of the shared generator, for set_state()."""
    return _shared.state


def set_state(state: dict[str, Any]) -> None:
    """Takes the shared generator back to where get_state() was called."""
    _shared.state = state


def rand(*size: int, dtype: DTypeLike = "float64", device: DeviceLike = None) -> ndarray:
    """Uniform floats in [0, 1); the arguments are the extents."""
    return _shared.random(size, dtype, device=device)


def randn(*size: int, dtype: DTypeLike = "float64", device: DeviceLike = None) -> ndarray:
    """Normally distributed floats of mean 0 and standard deviation 1; the arguments are the extents."""
    return _shared.standard_normal(size, dtype, device=device)


random = random_sample = ranf = sample = _shared.random


def randint(
    low: int,
    high: int | None = None,
    size: Shape | None = None,
    dtype: DTypeLike = "int64",
    *,
    device: DeviceLike = None,
) -> ndarray:
    """Uniform integers in [low, high), or [0, low) with one argument."""
    return _shared.integers(low, high, size, dtype, device=device)


uniform = _shared.uniform
normal = _shared.normal
standard_normal = _shared.standard_normal
exponential = _shared.exponential
standard_exponential = _shared.standard_exponential
lognormal = _shared.lognormal
laplace = _shared.laplace
logistic = _shared.logistic
gumbel = _shared.gumbel
rayleigh = _shared.rayleigh
standard_cauchy = _shared.standard_cauchy
shuffle = _shared.shuffle
choice = _shared.choice
bytes = _shared.bytes


def permutation(a: Any, *, device: DeviceLike = None) -> ndarray:
    """A copy of an array with its parts along axis 0 in random order; of an integer n, the numbers below it."""
    return _shared.permutation(a if isinstance(a, (ndarray, list, tuple)) else index(a), device=device)
