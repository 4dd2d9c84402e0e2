"""Inputs: the same array for NumPy, the host and a device, described by a few words that a reproducer can print."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from dlbridge import nd

from oracle.compare import round_to_bfloat16

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
DTYPES = ("bool", *INTS, *FLOATS, *COMPLEX)
REAL = ("bool", *INTS, *FLOATS)
INEXACT = (*FLOATS, *COMPLEX)

LAYOUTS = ("contiguous", "offset", "strided", "reversed", "broadcast", "transposed", "gapped", "unaligned")

REPEATED_FROM = 1 << 22  # elements: larger arrays repeat so many, for random numbers take longer than what is tried


class Input(NamedTuple):
    """An array: `fill` names what its values are, `layout` how it lies in memory, `limit` ends an index's range."""

    dtype: str
    shape: tuple[int, ...]
    fill: str = "any"
    layout: str = "contiguous"
    seed: int = 0
    limit: int = 0


def _integers(dtype: str, fill: str, count: int, rng: np.random.Generator) -> np.ndarray:
    info = np.iinfo(dtype)
    if fill in ("any", "finite"):
        values = rng.integers(info.min, info.max, count, dtype, endpoint=True)
        near = rng.integers(0, 3, count) == 0
        values[near] = rng.integers(max(info.min, -9), 10, int(near.sum())).astype(dtype)
        ends = np.array([info.min, info.max, 0, 1, info.max - 1, 2], dtype)
        values[: min(count, 6)] = ends[:count]
        return rng.permutation(values)
    low, high = {
        "whole": (-4, 4),
        "ties": (-3, 3),
        "holes": (-3, 3),
        "positive": (1, 9),
        "unit": (0, 1),
        "signs": (1, 2),
        "exponent": (0, 7),
        "shift": (0, 70),
        "ascending": (-100, 100),
        "nonzero": (1, 100),
    }[fill]
    values = rng.integers(low if info.min else max(low, 0), high, count, endpoint=True).astype(dtype)
    if fill == "signs":
        return np.where(rng.integers(0, 9, count) == 0, values, values.dtype.type(1))
    return np.sort(values) if fill == "ascending" else values


SPECIAL = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, 2.0, -2.5)


def _floats(dtype: str, fill: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Values of a real float, as float64 or narrower; the caller rounds them to the dtype."""
    if fill == "any":
        info = np.finfo("float32" if dtype == "bfloat16" else dtype)
        values = rng.normal(scale=3.0, size=count)
        wide = rng.integers(0, 4, count) == 0
        values[wide] *= 10.0 ** rng.uniform(-math.log10(float(info.max)), math.log10(float(info.max)) - 1, wide.sum())
        special = np.array([*SPECIAL, info.max, info.tiny, info.smallest_subnormal, -info.smallest_subnormal])
        chosen = rng.integers(0, 8, count) == 0
        values[chosen] = rng.choice(special, int(chosen.sum()))
        if count > 40:
            values[: len(special)] = special
        return values
    if fill in ("whole", "shift", "exponent"):
        return rng.integers(-4, 5, count).astype(np.float64)
    if fill == "holes":
        return rng.choice(np.array([-2.0, -1.0, 0.0, 1.0, 3.0, math.nan]), count)
    if fill == "ties":
        return rng.choice(np.array([-1.5, -0.0, 0.0, 1.0, 2.0, math.inf, -math.inf, math.nan]), count)
    if fill == "signs":
        return rng.choice(np.array([1.0, 1.0, -1.0]), count)
    if fill in ("positive", "nonzero"):
        return rng.uniform(0.5, 2.0, count)
    if fill == "unit":
        return rng.uniform(-1.0, 1.0, count)
    values = rng.normal(scale=2.0, size=count)
    return np.sort(values) if fill == "ascending" else values


def _matrices(spec: Input, shape: tuple[int, ...]) -> np.ndarray:
    """Square matrices of floats near the unit matrix, whose eigenvalues are; or Hermitian ones, positive definite."""
    side = shape[-1]
    near = values_of(spec._replace(fill="unit"), shape) / (2 * side) + np.eye(side)
    found = near if spec.fill == "regular" else near + near.conj().swapaxes(-1, -2)
    return found.astype(spec.dtype)


@lru_cache(maxsize=16)
def values_of(spec: Input, shape: tuple[int, ...]) -> np.ndarray:
    """A C-contiguous array with the values of a description, not to be written; bfloat16 as float32 that holds it."""
    count = math.prod(shape)
    if count > REPEATED_FROM and spec.fill not in ("index", "bin", "permutation"):
        few = values_of(spec, (REPEATED_FROM,))
        if spec.fill == "ascending":
            return np.repeat(few, -(-count // REPEATED_FROM))[:count].reshape(shape)
        return np.resize(few, shape)
    if spec.fill in ("regular", "hermitian"):
        return _matrices(spec, shape)
    rng = np.random.default_rng(zlib.crc32(repr((spec.dtype, spec.fill, shape, spec.seed)).encode()))
    if spec.fill == "index":
        values = rng.integers(-spec.limit, spec.limit, count) if spec.limit else np.zeros(count, np.int64)
    elif spec.fill == "bin":
        values = rng.integers(0, max(spec.limit, 1), count)
    elif spec.fill == "permutation":
        values = rng.permutation(max(spec.limit, count))[:count] % max(spec.limit, 1)
    elif spec.dtype == "bool":
        values = rng.integers(0, 2, count) if spec.fill != "signs" else np.ones(count)
        values = np.sort(values) if spec.fill == "ascending" else values
    elif spec.dtype in INTS:
        values = _integers(spec.dtype, spec.fill, count, rng)
    elif spec.dtype in COMPLEX:
        part = "float32" if spec.dtype == "complex64" else "float64"
        with np.errstate(over="ignore"):
            values = np.empty(count, spec.dtype)
            values.real, values.imag = _floats(part, spec.fill, count, rng), _floats(part, spec.fill, count, rng)
            if spec.fill in ("ascending", "signs"):
                values.imag = 0
            if spec.fill == "signs":  # of size 1, so that products stay exact
                values *= rng.choice([1, 1j], count)
    else:
        values = _floats(spec.dtype, spec.fill, count, rng)
    with np.errstate(over="ignore"):
        if spec.dtype == "bfloat16":
            return round_to_bfloat16(np.asarray(values, np.float32)).reshape(shape)
        return np.asarray(values).astype(spec.dtype).reshape(shape)


def _laid_out(spec: Input) -> tuple[np.ndarray, Callable[[Any], Any] | None]:
    """The array that is made, and the view of it that has the layout, in every library."""
    shape, count, layout = spec.shape, math.prod(spec.shape), spec.layout
    if layout == "offset":  # aligned to its dtype, not to a vector
        return values_of(spec, (count + 1,)), lambda base: base[1:].reshape(shape)
    if layout == "unaligned":  # on a GPU, where nd makes no views between elements: the same values, aligned
        values = values_of(spec, shape)
        return np.append(values.dtype.type(0), values), lambda base: base[1:].reshape(shape)
    if not shape or layout == "contiguous":
        return values_of(spec, shape), None
    last = shape[-1]
    if layout == "strided":
        return values_of(spec, (*shape[:-1], 2 * last)), lambda base: base[..., ::2]
    if layout == "reversed":
        return values_of(spec, shape), lambda base: base[..., ::-1]
    if layout == "broadcast":
        stretched = (1, *shape[1:])
        if 0 in shape:
            return values_of(spec, shape), None
        return values_of(spec, stretched), lambda base: _module(base).broadcast_to(base, shape)
    if layout == "transposed":
        return values_of(spec, shape[::-1]), lambda base: base.T
    if layout == "gapped":
        return values_of(spec, (*shape[:-1], last + 3)), lambda base: base[..., 1 : last + 1]
    raise ValueError(f"no layout {layout!r}; there are {LAYOUTS}")


def _module(x: Any) -> Any:
    return nd if isinstance(x, nd.ndarray) else np


def make(spec: Input, device: str | None = None) -> Any:
    """The array of a description: NumPy's without a device, else an ndarray on it."""
    if spec.layout == "unaligned" and (device is None or not device.startswith("cuda")):
        return _unaligned(spec, device)
    base, view = _laid_out(spec)
    if device is None:
        base = base.copy()
    else:
        if spec.dtype == "bfloat16":  # on the host, so that a NaN has the same bits everywhere
            base = nd.array(base, device="cpu").astype("bfloat16")
        base = nd.array(base, device=device)
    return base if view is None else view(base)


def _unaligned(spec: Input, device: str | None) -> Any:
    values = values_of(spec, spec.shape)
    if spec.dtype == "bfloat16":
        if device is None:
            return values.copy()
        words = (values.view(np.uint32) >> 16).astype(np.uint16)
    else:
        words = values
    raw = np.zeros(words.nbytes + 1, np.uint8)
    raw[1:] = np.frombuffer(words.tobytes(), np.uint8)
    if device is None:
        return raw[1:].view(spec.dtype).reshape(spec.shape)
    return nd.array(raw, device=device)[1:].view(spec.dtype).reshape(spec.shape)
