"""einsum: sums of products named by letters, pair by pair through batched matrix products."""

from __future__ import annotations

from functools import lru_cache, partial
from math import prod
from operator import attrgetter, index, itemgetter, methodcaller

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_arrays, into
from dlbridge.nd._dtypes import can_cast, kind_of, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dlbridge.nd._arguments import DTypeLike
    from dlbridge.nd._dtypes import DType

    Call = Callable[..., Any]

ndarray = _native.ndarray
_shape_of = attrgetter("shape")
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


def _parse(subscripts: str, *ndims: int) -> tuple[tuple[str, ...], str]:
    """The terms, and the output's."""
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
    return tuple(terms), output


class _Operand:
    """An array whose way to the result is planned: the extents of its axes by their letters, in order, and the calls
    that it goes through."""

    def __init__(self, term: str, shape: tuple[int, ...]) -> None:
        self.calls: list[Call] = []
        self.extents: dict[str, int] = {}
        for letter, extent in zip(term, shape, strict=True):
            known = self.extents.setdefault(letter, extent)
            if known != extent:
                raise ValueError(
                    f"einsum(): the axes {letter!r} of one array have extents {known} and {extent}; they must be equal"
                )
        while len(term) > len(self.extents):  # a letter that stands twice becomes a diagonal, the last axis
            letter = next(c for c in term if term.count(c) > 1)
            first = term.index(letter)
            second = term.index(letter, first + 1)
            self.calls.append(methodcaller("diagonal", 0, first, second))
            term = term[:first] + term[first + 1 : second] + term[second + 1 :] + letter
        self.extents = {c: self.extents[c] for c in term}

    def sum_all_but(self, kept: str, dtype: Any) -> None:
        """Letters that are not kept are summed over; integers stay of their dtype."""
        axes = tuple([axis for axis, letter in enumerate(self.extents) if letter not in kept])
        if axes:
            of_sum = dtype if kind_of(dtype) in "biu" else None
            self.calls.append(lambda x: x.sum(axes, of_sum))
            self.extents = {c: extent for c, extent in self.extents.items() if c in kept}

    def align(self, letters: str, broadcasts: bool = False) -> None:
        """The axes in the order of `letters`, extents of 1 where there are none; but for the first ones where it
        broadcasts."""
        term = list(self.extents)
        axes = tuple([term.index(c) for c in letters if c in term])
        if axes != tuple(range(len(term))):
            self.calls.append(methodcaller("transpose", axes))
        asked = letters[letters.index(min(term, key=letters.index)) :] if term and broadcasts else letters
        added = tuple([slice(None) if c in term else None for c in asked])
        if None in added:
            self.calls.append(itemgetter(added))
        self.extents = {c: self.extents.get(c, 1) for c in letters}

    def become_matrix(self, batch: str, first: str, second: str, extents: dict[str, int]) -> None:
        letters = batch + first + second
        self.align(letters)
        shape = tuple([extents[c] for c in letters])
        if tuple(self.extents.values()) != shape:
            self.calls.append(partial(_native.broadcast_to, shape=shape))
        if not len(first) == len(second) == 1:
            sides = [prod(extents[c] for c in part) for part in (first, second)]
            self.calls.append(methodcaller("reshape", (*shape[: len(batch)], *sides)))


def _pair(a: _Operand, b: _Operand, kept: str, extents: dict[str, int], dtype: Any) -> tuple[Call, _Operand]:
    """How two operands are combined, and their product, summed over the letters that nothing else needs."""
    a.sum_all_but(kept + "".join(b.extents), dtype)
    b.sum_all_but(kept + "".join(a.extents), dtype)
    shared = [c for c in a.extents if c in b.extents]
    batch, summed = "".join(c for c in shared if c in kept), "".join(c for c in shared if c not in kept)
    rows = "".join(c for c in a.extents if c not in b.extents)
    columns = "".join(c for c in b.extents if c not in a.extents)
    letters = batch + rows + columns
    # Many sums of one product each: matrix products of one element would be called one by one. Those of 16-bit floats
    # are, for they are not rounded before they are added.
    apart = batch and not rows and not columns and dtype.itemsize != 2
    if not summed or apart:
        order = "".join(a.extents) + columns
        a.align(order)
        b.align(order, broadcasts=True)
        shape = tuple([p if q == 1 else q for p, q in zip(a.extents.values(), b.extents.values(), strict=True)])
        product = _Operand(order, shape)
        product.sum_all_but(letters, dtype)
        return _native.multiply, product
    shape = tuple([extents[c] for c in letters])
    if len(summed) == 1 and not letters and a.extents == b.extents:
        return _native.matmul, _Operand("", ())  # of two vectors
    a.become_matrix(batch, rows, summed, extents)
    b.become_matrix(batch, summed, columns, extents)
    product = _Operand(letters, shape)
    if not len(rows) == len(columns) == 1:
        product.calls.append(methodcaller("reshape", shape))
    return _native.matmul, product


@lru_cache(maxsize=256)  # programs repeat their few calls, and a small product takes less time than to plan it
def _plan(subscripts: str, dtype: Any, *shapes: tuple[int, ...]) -> Call:
    """What makes the result of arrays of these shapes."""
    terms, output = _parse(subscripts, *map(len, shapes))
    x, *others = (_Operand(term, shape) for term, shape in zip(terms, shapes, strict=True))
    extents = _extents([x, *others])
    first, steps = x.calls, []
    for position, y in enumerate(others, 1):
        kept = output + "".join(terms[position + 1 :])
        combine, x = _pair(x, y, kept, extents, dtype)
        steps.append((y.calls, combine, x.calls))
    x.sum_all_but(output, dtype)
    x.align(output)
    return _in_turn(first, steps)


def _in_turn(first: list[Call], steps: list[tuple[list[Call], Call, list[Call]]]) -> Call:
    """One function of the calls that the first array goes through, and of each other array's calls, the function that
    combines it with what is there, and the calls of the product."""

    def run(x: ndarray, *others: ndarray) -> ndarray:
        for call in first:
            x = call(x)
        for y, (calls, combine, after) in zip(others, steps, strict=True):
            for call in calls:
                y = call(y)
            x = combine(x, y)
            for call in after:
                x = call(x)
        return x

    # Of one array that is viewed, and of two of which only one takes a call: small ones take hardly longer than loops.
    if not steps and len(first) == 1:
        return first[0]
    if len(steps) != 1 or len(first) + len(steps[0][0]) + len(steps[0][2]) > 1:
        return run
    calls, combine, after = steps[0]
    if first:
        of_first = first[0]
        return lambda x, y: combine(of_first(x), y)
    if calls:
        of_second = calls[0]
        return lambda x, y: combine(x, of_second(y))
    if after:
        of_product = after[0]
        return lambda x, y: of_product(combine(x, y))
    return combine


def _dtype_of_all(operands: tuple[Any, ...]) -> DType | None:
    """The dtype of arrays that share one; None, where they do not, or are no arrays of ours."""
    dtype: DType | None = None
    for x in operands:
        if not isinstance(x, ndarray) or (dtype is not None and x.dtype is not dtype):
            return None
        dtype = x.dtype
    return dtype


def _extents(operands: list[_Operand]) -> dict[str, int]:
    """Letters to extents; those of 1 are broadcast, also to 0."""
    extents: dict[str, int] = {}
    for letter, extent in (item for operand in operands for item in operand.extents.items()):
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


def _operands(
    subscripts: Any, operands: tuple[Any, ...], out: ndarray | None, dtype: DTypeLike | None, casting: str
) -> tuple[str, list[ndarray], DType]:
    """The subscripts as text, the arrays of the dtype that is computed in, and that dtype."""
    given: Any = operands
    if not isinstance(subscripts, str):
        subscripts, given = _as_text((subscripts, *operands))
    arrays = as_arrays(*given)
    if not arrays:
        raise ValueError("einsum(): no array; give one for each term of the subscripts")
    if dtype is not None:
        wanted = resolve(dtype)
    else:
        wanted = arrays[0].dtype if len(arrays) == 1 else _native.result_type(*arrays)
    if dtype is not None and len(arrays) == 1 and out is None:
        (term,), output = _parse(subscripts, arrays[0].ndim)
        if set(term) == set(output):
            wanted = arrays[0].dtype  # a view, as NumPy's, which has the dtype that it has
    for position, a in enumerate(arrays):
        if a.dtype is not wanted or casting != "safe":
            if not can_cast(a.dtype, wanted, casting):
                raise TypeError(
                    f"einsum(): cannot cast {a.dtype} to {wanted} (casting={casting!r}). Give casting='unsafe'"
                )
            arrays[position] = a.astype(wanted, copy=False)
    return subscripts, arrays, wanted


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
    arrays: Any = operands
    is_plain = dtype is out is None and casting == "safe" and isinstance(subscripts, str)
    if is_plain and len(operands) == 1 and isinstance(x := operands[0], ndarray):  # a view takes less than what follows
        result = _plan(subscripts, x.dtype, x.shape)(x)
        return result.view() if result is x else result
    if is_plain and len(operands) == 2:  # as do small products
        x, y = operands
        if isinstance(x, ndarray) and isinstance(y, ndarray) and x.dtype is y.dtype:
            return _plan(subscripts, x.dtype, x.shape, y.shape)(x, y)
    wanted = _dtype_of_all(operands) if is_plain else None
    if wanted is None:
        subscripts, arrays, wanted = _operands(subscripts, operands, out, dtype, casting)
    result = _plan(subscripts, wanted, *map(_shape_of, arrays))(*arrays)
    if result is arrays[0]:
        result = result.view()  # where nothing is summed over
    return result if out is None else into(out, result, "einsum")
