"""Arrays in parts on several devices: JAX's sharded arrays and PyTorch's DTensor, taken apart and put together."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlbridge import _core

Index = tuple[slice, ...]


@dataclass(frozen=True, eq=False)
class Shard:
    """A part of an array, as `shards()` gives it and `assemble()` takes it.

    array: its memory, where it lies. index: which part it is, a slice with start and stop for each axis, so that
    ``whole[shard.index]`` has its elements; None where they are no block of the whole. shape: that of the whole.
    replica: 0, 1, … where several devices have the same part.
    """

    array: _core.Tensor
    index: Index | None
    shape: tuple[int, ...]
    replica: int = 0


@dataclass(frozen=True)
class _Wanted:
    """A part of the array that is to be made: which, on which device in dlbridge's words, and in its framework's."""

    index: Index | None
    device: str
    place: Any = None


def _normal(index: Sequence[slice], shape: Sequence[int]) -> Index:
    """The slices with numbers for start and stop. TypeError for what is none, ValueError where one has a step."""
    if not isinstance(index, tuple) or not all(isinstance(one, slice) for one in index):
        raise TypeError(
            f"assemble(): {index!r} is no index. Give a tuple with a slice for each axis, as in np.s_[:2, :]"
        )
    if len(index) != len(shape):
        raise ValueError(
            f"assemble(): index {_text(index)} has {len(index)} axes, and the array {len(shape)}. Give each a slice"
        )
    ends = [one.indices(extent) for one, extent in zip(index, shape, strict=True)]
    if any(step != 1 for _, _, step in ends):
        raise ValueError(f"assemble(): index {_text(index)} has a step. A part is a block: start and stop alone")
    return tuple(slice(start, max(start, stop)) for start, stop, _ in ends)


def _text(index: Sequence[slice] | None) -> str:
    if index is None:
        return "no block"
    ends = [(one.start, one.stop) if one.step in (None, 1) else (one.start, one.stop, one.step) for one in index]
    return f"[{', '.join(':'.join('' if end is None else str(end) for end in one) for one in ends)}]"


def _extents(index: Index) -> tuple[int, ...]:
    return tuple(one.stop - one.start for one in index)


def _meet(a: Index, b: Index) -> bool:
    return all(max(x.start, y.start) < min(x.stop, y.stop) for x, y in zip(a, b, strict=True))


def _is_jax(x: Any) -> bool:
    """A jax.Array, or a jax.ShapeDtypeStruct with a sharding."""
    jax = sys.modules.get("jax")
    return jax is not None and (
        isinstance(x, jax.Array) or (isinstance(x, jax.ShapeDtypeStruct) and x.sharding is not None)
    )


def _is_dtensor(x: Any) -> bool:
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(x, module.DTensor)


def shards(x: Any) -> list[Shard]:
    """The parts of an array that this process has, as `Shard`s over their memory: nothing is copied.

    x: a jax.Array of any sharding: a part for each device of this process; a DTensor of PyTorch: the one of this
    process, none where it is not in the mesh; any other array: itself, as the one part.

    Each says which part of the whole it is (`Shard.index`), but where a DTensor is sharded in a way of its own. Parts
    that several devices have are there once for each, with numbers (`Shard.replica`). Raises ValueError for a DTensor
    of partial results, and what asdlpack() raises.
    """
    if _is_dtensor(x):
        index, _ = _block_of(x, "shards()")
        if x.device_mesh.get_coordinate() is None:
            return []
        return [Shard(_core.asdlpack(x.to_local().detach()), index, tuple(x.shape), _replica_of(x))]
    if _is_jax(x):
        shape = tuple(x.shape)
        return [
            Shard(_core.asdlpack(one.data), _normal(one.index, shape), shape, one.replica_id)
            for one in x.addressable_shards
        ]
    tensor = _core.asdlpack(x)
    return [Shard(tensor, tuple(slice(0, extent) for extent in tensor.shape), tensor.shape)]


def _block_of(x: Any, operation: str) -> tuple[Index | None, bool]:
    """Which block of a DTensor this process has, and whether it has one; None where it is no block."""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor import Shard as Sharded

    if any(placement.is_partial() for placement in x.placements):
        raise ValueError(
            f"{operation}: the DTensor has partial results ({x.placements}), whose sum over the processes is the array."
            " Reduce them first: x.redistribute(placements=[Replicate()])"
        )
    at = x.device_mesh.get_coordinate()
    if at is None or any(type(placement) not in (Sharded, Replicate) for placement in x.placements):
        return None, at is not None
    block = [[0, extent] for extent in x.shape]
    for dim, placement in enumerate(x.placements):
        if isinstance(placement, Sharded):  # as torch.chunk() cuts: the last ones may be short, or empty
            begin, end = block[placement.dim]
            each = -(-(end - begin) // x.device_mesh.size(dim))
            block[placement.dim] = [min(begin + each * at[dim], end), min(begin + each * (at[dim] + 1), end)]
    return tuple(slice(*ends) for ends in block), True


def _replica_of(x: Any) -> int:
    number = 0
    for dim, placement in enumerate(x.placements):
        if placement.is_replicate():
            number = number * x.device_mesh.size(dim) + x.device_mesh.get_coordinate()[dim]
    return number


def assemble(parts: Iterable[Shard | tuple[Index, Any]], *, like: Any) -> Any:
    """An array of several devices over the memory of its parts, sharded as `like` is.

    parts: those of this process, in any order: what `shards()` gave, or pairs of an index and an array of any
    framework. like: a jax.Array, a jax.ShapeDtypeStruct with a sharding, or a DTensor, whose elements are not looked
    at; what comes is of its type, shape, dtype and sharding.

    A part stays where it is, and is not copied where `convert()` would not. Where several devices are to have the same
    part, one will do for all, and is copied to the others; so is host memory between JAX's devices on the host.

    Raises ValueError where parts are missing, overlap or are cut otherwise than `like`, TypeError where `like` is not
    sharded, and DataError where a part has another shape, dtype or device.
    """
    if not (_is_jax(like) or _is_dtensor(like)):
        raise TypeError(
            f"assemble(): like is of type {type(like).__qualname__}, which says no sharding. Give a jax.Array, a "
            "jax.ShapeDtypeStruct with a sharding, or a DTensor"
        )
    shape, dtype = tuple(like.shape), str(like.dtype).removeprefix("torch.")
    wanted = list(_wanted_of(like))
    chosen = _chosen(_read(parts, shape, wanted), wanted)
    for number, part, one in chosen:
        _check(number, part, one, dtype)
    if _is_dtensor(like):
        return _dtensor(chosen, like)
    import jax

    made = [_on_device(part.array, one.place) for _, part, one in chosen]
    return jax.make_array_from_single_device_arrays(shape, like.sharding, made)


def _wanted_of(like: Any) -> Iterator[_Wanted]:
    if _is_dtensor(like):
        index, is_there = _block_of(like, "assemble()")
        if is_there:
            yield _Wanted(index, str(_core.asdlpack(like.to_local().detach()).device))
        return
    shape = tuple(like.shape)
    for device, index in like.sharding.addressable_devices_indices_map(shape).items():
        name = "cpu" if device.platform == "cpu" else f"cuda:{device.local_hardware_id}"
        yield _Wanted(_normal(index, shape), name, device)


def _read(parts: Iterable[Any], shape: tuple[int, ...], wanted: Sequence[_Wanted]) -> list[Shard]:
    """The parts as Shards of this shape. ValueError where one is cut otherwise than all that are wanted."""
    found = []
    for number, part in enumerate(parts):
        if not isinstance(part, Shard):
            index, array = part
            part = Shard(_core.asdlpack(array), index, shape)
        if part.shape == shape and part.index is not None:
            part = replace(part, index=_normal(part.index, shape))
        if part.shape != shape:
            raise ValueError(
                f"assemble(): part {number} is of an array of shape {part.shape}, and `like` has {shape}. Give "
                "parts of one array, and a `like` of its shape"
            )
        if part.index not in [one.index for one in wanted]:
            near = [one.index for one in wanted if part.index and one.index and _meet(part.index, one.index)]
            which = f"it overlaps {_text(near[0])}" if near else "this process has no such part"
            raise ValueError(
                f"assemble(): part {number} is {_text(part.index)}, and in the sharding of `like` {which}. Cut the "
                "parts as shards(like) does"
            )
        found.append(part)
    return found


def _chosen(parts: Sequence[Shard], wanted: Sequence[_Wanted]) -> list[tuple[int, Shard, _Wanted]]:
    """For each that is wanted its part and the part's number: one of its own, or the only one there is."""
    chosen = []
    for index in dict.fromkeys(map(_key, wanted)):
        places = [one for one in wanted if _key(one) == index]
        numbers = [number for number, part in enumerate(parts) if _key(part) == index]
        if not numbers:
            raise ValueError(f"assemble(): no part is {_text(places[0].index)}: there is a hole. Give it, too")
        if len(numbers) not in (1, len(places)):
            raise ValueError(
                f"assemble(): parts {', '.join(map(str, numbers))} are all {_text(places[0].index)}, and the sharding "
                f"of `like` has it on {len(places)} device(s) of this process: they overlap. Leave out what is too many"
            )
        for place in places:
            number = max(numbers, key=lambda number: _nearness(parts[number].array, place))
            if len(numbers) > 1:
                numbers.remove(number)
            chosen.append((number, parts[number], place))
    return chosen


def _nearness(tensor: _core.Tensor, one: _Wanted) -> int:
    made = _array_of_jax(tensor) if one.place is not None else None
    return 2 if made is not None and made.devices() == {one.place} else int(str(tensor.device) == one.device)


def _array_of_jax(tensor: _core.Tensor) -> Any:
    """The jax.Array whose memory this is, which knows on which of the host's devices it is; None where it is none's."""
    import jax

    made = tensor.owner
    fits = isinstance(made, jax.Array) and made.shape == tensor.shape and str(made.dtype) == str(tensor.dtype)
    return made if fits else None


def _key(part: Shard | _Wanted) -> tuple[Any, ...] | None:
    """The index as something that can be looked up: slices can from Python 3.12 on."""
    return None if part.index is None else tuple((one.start, one.stop) for one in part.index)


def _check(number: int, part: Shard, one: _Wanted, dtype: str) -> None:
    array = part.array
    if one.index is not None and array.shape != _extents(one.index):
        raise _core.DataError(
            f"assemble(): part {number} has shape {array.shape}, and {_text(one.index)} has {_extents(one.index)}. "
            "Give each array with its own index"
        )
    if str(array.dtype) != dtype:
        raise _core.DataError(
            f"assemble(): part {number} is of dtype {array.dtype}, and `like` of {dtype}. Cast it first"
        )
    if str(array.device) != one.device:
        raise _core.DataError(
            f"assemble(): part {number} is on {array.device}, and the sharding of `like` has {_text(one.index)} on "
            f"{one.device}. Copy it there first: asdlpack(part, device={one.device!r})"
        )


def _on_device(tensor: _core.Tensor, device: Any) -> Any:
    import jax

    made = _array_of_jax(tensor)
    made = _core.convert(tensor, "jax") if made is None else made
    return made if made.devices() == {device} else jax.device_put(made, device)


def _dtensor(chosen: Sequence[tuple[int, Shard, _Wanted]], like: Any) -> Any:
    import torch
    from torch.distributed.tensor import DTensor

    local = _core.convert(chosen[0][1].array, "torch") if chosen else torch.empty(0, dtype=like.dtype)
    return DTensor.from_local(
        local, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
    )
