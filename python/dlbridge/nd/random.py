"""Random arrays: the Generator, and NumPy's older functions over one RandomState that all of them share."""

from __future__ import annotations

from dlbridge.nd._bit_generators import Philox4x32
from dlbridge.nd._generator import Generator, RandomState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import DeviceLike

__all__ = [
    "Generator",
    "Philox4x32",
    "Philox4x3210",
    "RandomState",
    "beta",
    "binomial",
    "bytes",
    "chisquare",
    "choice",
    "default_rng",
    "dirichlet",
    "exponential",
    "f",
    "gamma",
    "geometric",
    "get_random_state",
    "get_state",
    "gumbel",
    "hypergeometric",
    "laplace",
    "logistic",
    "lognormal",
    "logseries",
    "multinomial",
    "multivariate_normal",
    "negative_binomial",
    "noncentral_chisquare",
    "noncentral_f",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "power",
    "rand",
    "randint",
    "randn",
    "random",
    "random_integers",
    "random_sample",
    "ranf",
    "rayleigh",
    "sample",
    "seed",
    "set_random_state",
    "set_state",
    "shuffle",
    "standard_cauchy",
    "standard_exponential",
    "standard_gamma",
    "standard_normal",
    "standard_t",
    "triangular",
    "uniform",
    "vonmises",
    "wald",
    "weibull",
    "zipf",
]

_shared = RandomState()


Philox4x3210 = Philox4x32


def get_random_state() -> RandomState:
    """The RandomState that the functions of this module draw from."""
    return _shared


def set_random_state(rs: RandomState) -> None:
    """Lets the functions of this module draw from the stream of another RandomState, where that makes its arrays."""
    if not isinstance(rs, RandomState):
        raise TypeError(f"set_random_state(): rs is of type {type(rs).__name__}; give a RandomState")
    _shared._bits, _shared._device = rs._bits, rs._device


def default_rng(seed: Any = None, *, device: DeviceLike = None) -> Generator:
    """A Generator of a seed: an integer of any size, a sequence of them, None for one of the system, a
    Philox4x32; or that Generator."""
    return seed if isinstance(seed, Generator) else Generator(seed, device=device)


beta = _shared.beta
binomial = _shared.binomial
bytes = _shared.bytes
chisquare = _shared.chisquare
choice = _shared.choice
dirichlet = _shared.dirichlet
exponential = _shared.exponential
f = _shared.f
gamma = _shared.gamma
geometric = _shared.geometric
get_state = _shared.get_state
gumbel = _shared.gumbel
hypergeometric = _shared.hypergeometric
laplace = _shared.laplace
logistic = _shared.logistic
lognormal = _shared.lognormal
logseries = _shared.logseries
multinomial = _shared.multinomial
multivariate_normal = _shared.multivariate_normal
negative_binomial = _shared.negative_binomial
noncentral_chisquare = _shared.noncentral_chisquare
noncentral_f = _shared.noncentral_f
normal = _shared.normal
pareto = _shared.pareto
permutation = _shared.permutation
poisson = _shared.poisson
power = _shared.power
rand = _shared.rand
randint = _shared.randint
randn = _shared.randn
random = _shared.random
random_integers = _shared.random_integers
random_sample = _shared.random_sample
ranf = _shared.random_sample
rayleigh = _shared.rayleigh
sample = _shared.random_sample
seed = _shared.seed
set_state = _shared.set_state
shuffle = _shared.shuffle
standard_cauchy = _shared.standard_cauchy
standard_exponential = _shared.standard_exponential
standard_gamma = _shared.standard_gamma
standard_normal = _shared.standard_normal
standard_t = _shared.standard_t
triangular = _shared.triangular
uniform = _shared.uniform
vonmises = _shared.vonmises
wald = _shared.wald
weibull = _shared.weibull
zipf = _shared.zipf
