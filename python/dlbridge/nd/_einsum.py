"""einsum: sums of products named by letters, pair by pair through batched matrix products."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from operator import index

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_arrays, into
from dlbridge.nd._dtypes import can_cast, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dlbridge.nd._arguments import DTypeLike

ndarray = _native.ndarray
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _expand_ellipses(terms: list[str], ndims: tuple[int, ...], subscripts: str) -> tuple[list[str], str]:
    """The terms with letters in place of "...", and those letters; broadcast axes are aligned at the end."""
    free = [letter for letter in _LETTERS if letter not in subscripts]
    longest = max((ndim - len(term) + 3 for term, ndim in zip(terms, ndims, strict=True) if "..." in term), default=0)
    spare = "".join(free[: max(longest, 0)])
    expanded = []
    for term, ndim in zip(terms, ndims, strict=True):
        if "..." in term:
            count = ndim - len(term) + 3
            if count < 0:
                raise ValueError(f"einsum(): the term {term!r} names more axes than the {ndim} of its array")
            term = term.replace("...", spare[len(spare) - count :])
        if len(term) != ndim:
            raise ValueError(f"einsum(): the term {term!r} names {len(term)} axes; its array has {ndim}")
        expanded.append(term)
    return expanded, spare


@lru_cache(maxsize=256)  # programs repeat their few subscripts, and a small product takes less time than to read them
def _parse(subscripts: str, *ndims: int) -> tuple[tuple[str, ...], bool]:
    """The terms and the output's, and whether a term names a letter twice."""
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ndims):
        raise ValueError(f"einsum(): {subscripts!r} names {len(terms)} arrays; {len(ndims)} were given")
    for letter in inputs.replace("...", "").replace(",", "") + output.replace("...", ""):
        if letter not in _LETTERS:
            raise ValueError(f"einsum(): {letter!r} in {subscripts!r} is not a letter")
    terms, spare = _expand_ellipses(terms, ndims, text)
    joined = "".join(terms)
    if not arrow:
        output = spare + "".join(sorted(c for c in set(joined) - set(spare) if joined.count(c) == 1))
    else:
        if spare and "..." not in output:
            raise ValueError(f"einsum(): '...' of {subscripts!r} stands for axes, and the output has no '...'. Name it")
        output = output.replace("...", spare)
    if len(set(output)) != len(output) or not set(output) <= set(joined):
        raise ValueError(f"einsum(): the output {output!r} of {subscripts!r} must name axes of the inputs, each once")
    return (*terms, output), any(len(set(term)) < len(term) for term in terms)


def _with_unique_letters(x: ndarray, term: str) -> tuple[ndarray, str]:
    """Letters that stand twice become diagonals."""
    unique = "".join(dict.fromkeys(term))
    if unique == term:
        return x, term
    shape, strides = [], []
    for letter in unique:
        axes = [axis for axis, other in enumerate(term) if other == letter]
        extents = {x.shape[axis] for axis in axes}
        if len(extents) > 1:
            raise ValueError(
                f"einsum(): the axes {letter!r} of one array have extents {sorted(extents)}; they must be equal"
            )
        shape.append(extents.pop())
        strides.append(sum(x.strides[axis] for axis in axes))
    return _native.as_strided(x, tuple(shape), tuple(strides), 0), unique


@lru_cache(maxsize=1024)
def _alignment(term: str, letters: str) -> tuple[tuple[int, ...] | None, tuple[slice | None, ...] | None]:
    """What transpose() and then an index make of axes `term` those of `letters`; None for what changes nothing."""
    axes = tuple(term.index(letter) for letter in letters if letter in term)
    added = tuple(slice(None) if letter in term else None for letter in letters)
    return axes if axes != tuple(range(len(term))) else None, added if None in added else None


def _aligned(x: ndarray, term: str, letters: str) -> ndarray:
    """`x` with its axes in the order of `letters`, extents of 1 where it has none."""
    axes, added = _alignment(term, letters)
    if axes is not None:
        x = x.transpose(axes)
    return x if added is None else x[added]


def _reduced(x: ndarray, term: str, kept: str) -> tuple[ndarray, str]:
    """Without the letters that are not kept: they are summed over."""
    left = "".join([c for c in term if c in kept])
    if left == term:
        return x, term
    return x.sum(tuple([axis for axis, letter in enumerate(term) if letter not in kept]), x.dtype), left


@lru_cache(maxsize=1024)
def _parts(ta: str, tb: str, kept: str) -> tuple[str, str, str, str]:
    """The letters of both that stay, of one alone, and of both that are summed over: a batch of matrix products."""
    shared = [c for c in ta if c in tb]
    batch, summed = "".join(c for c in shared if c in kept), "".join(c for c in shared if c not in kept)
    return batch, "".join(c for c in ta if c not in tb), "".join(c for c in tb if c not in ta), summed


def _pair(a: ndarray, ta: str, b: ndarray, tb: str, kept: str, extents: dict[str, int]) -> tuple[ndarray, str]:
    """The product of two operands, summed over the letters that nothing else needs."""
    a, ta = _reduced(a, ta, kept + tb)
    b, tb = _reduced(b, tb, kept + ta)
    batch, rows, columns, summed = _parts(ta, tb, kept)
    # Many sums of one product each: matrix products of one element would be called one by one. Those of 16-bit floats
    # are, for they are not rounded before they are added.
    apart = batch and not rows and not columns and a.dtype.itemsize != 2
    if not summed or apart:
        letters = batch + rows + columns
        product = _native.multiply(_aligned(a, ta, letters + summed), _aligned(b, tb, letters + summed))
        return _reduced(product, letters + summed, letters)
    left = _matrix(a, ta, batch, rows, summed, extents)
    right = _matrix(b, tb, batch, summed, columns, extents)
    product = _native.matmul(left, right)
    letters = batch + rows + columns
    return product if len(rows) == len(columns) == 1 else product.reshape([extents[c] for c in letters]), letters


def _matrix(x: ndarray, term: str, batch: str, first: str, second: str, extents: dict[str, int]) -> ndarray:
    letters = batch + first + second
    x = _aligned(x, term, letters)
    shape = tuple([extents[c] for c in letters])
    if x.shape != shape:
        x = _native.broadcast_to(x, shape)
    if len(first) == len(second) == 1:
        return x
    sides = [prod(extents[c] for c in part) for part in (first, second)]
    return x.reshape((*shape[: len(batch)], *sides))


def _extents(arrays: list[ndarray], terms: list[str]) -> dict[str, int]:
    """Letters to extents; those of 1 are broadcast, also to 0."""
    extents: dict[str, int] = {}
    for x, term in zip(arrays, terms, strict=True):
        for letter, extent in zip(term, x.shape, strict=True):
            known = extents.setdefault(letter, extent)
            if extent != known:
                if 1 not in (extent, known):
                    raise ValueError(
                        f"einsum(): the axes {letter!r} have extents {known} and {extent}; they must be equal, or 1"
                    )
                extents[letter] = extent if known == 1 else known
    return extents


def _as_text(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """NumPy's other form: each array is followed by a list of the numbers of its axes; the output's may come last."""
    arrays = list(operands[: len(operands) // 2 * 2 : 2])
    lists = [*operands[1::2], *(operands[-1:] if len(operands) % 2 else ())]

    def letters(axes: Any) -> str:
        if not all(axis is Ellipsis or 0 <= index(axis) < len(_LETTERS) for axis in axes):
            raise ValueError(f"einsum(): {axes} names an axis that is not from 0 to {len(_LETTERS) - 1}")
        return "".join("..." if axis is Ellipsis else _LETTERS[index(axis)] for axis in axes)

    terms = [letters(axes) for axes in lists]
    inputs = ",".join(terms[: len(arrays)])
    return (f"{inputs}->{terms[-1]}" if len(terms) > len(arrays) else inputs), arrays


def einsum(
    subscripts: Any,
    *operands: Any,
    out: ndarray | None = None,
    dtype: DTypeLike | None = None,
    casting: str = "safe",
    optimize: Any = False,
) -> ndarray:
    """The sum of products that `subscripts` names: "ij,jk->ik" is the matrix product, "ii" the trace, "...ij->...ji" a
    transpose. Letters that are missing on the right are summed over. Operands are combined from left to right;
    optimize has no effect. einsum(a, [0, 1], b, [1, 2], [0, 2]) names the axes by numbers. ValueError for subscripts
    that do not fit the arrays. dtype: what the operands are cast to, where `casting` allows it; a view
    of one array keeps its own. Source: NumPy.
    """
    given: Any = operands
    if not isinstance(subscripts, str):
        subscripts, given = _as_text((subscripts, *operands))
    arrays = as_arrays(*given)
    if not arrays:
        raise ValueError("einsum(): no array; give one for each term of the subscripts")
    (*terms, output), repeated = _parse(subscripts, *[a.ndim for a in arrays])
    dtype = _native.result_type(*arrays) if dtype is None else resolve(dtype)
    if len(arrays) == 1 and out is None and set(terms[0]) == set(output):
        dtype = arrays[0].dtype  # a view, as NumPy's, which has the dtype that it has
    for position, a in enumerate(arrays):
        if a.dtype != dtype or casting != "safe":
            if not can_cast(a.dtype, dtype, casting):
                raise TypeError(
                    f"einsum(): cannot cast {a.dtype} to {dtype} (casting={casting!r}). Give casting='unsafe'"
                )
            arrays[position] = a.astype(dtype, copy=False)
        if repeated:
            arrays[position], terms[position] = _with_unique_letters(arrays[position], terms[position])
    x, term = arrays[0], terms[0]
    if len(arrays) > 1:
        extents = _extents(arrays, terms)
        for position in range(1, len(arrays)):
            kept = output + "".join(terms[position + 1 :])
            x, term = _pair(x, term, arrays[position], terms[position], kept, extents)
    x, term = _reduced(x, term, output)
    result = _aligned(x, term, output)
    return into(out, result.view() if result is arrays[0] else result, "einsum")  # a view, where nothing is summed over
