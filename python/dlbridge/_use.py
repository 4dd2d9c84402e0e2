"""`use`: a block in which a stream works on somebody else's array."""

from __future__ import annotations

from dlbridge import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any


class use:
    """``with use(x, stream=s) as t:`` lends the array `x` to the CUDA stream `s`, in order both ways.

    At the start `s` is made to wait until the data of `x` is ready, and `t`, a `Tensor`, may be worked on with `s`. At
    the end the producer's stream, as it is then, waits for what `s` holds: the producer may write to the array, free it
    or hand its memory out again without a race. Nothing waits on the host, and `s` may be destroyed after the block.

    Where a producer does not name its stream, the legacy default stream waits, and with it every stream
    that was not made non-blocking. `stream`: a handle, 1 (legacy default), 2 (per-thread default), or an object with
    ``__cuda_stream__``.

    Raises what asdlpack() raises; BufferError for an array on the host, TypeError or ValueError for a bad stream.
    """

    def __init__(self, obj: Any, *, stream: Any) -> None:
        if stream is None or (isinstance(stream, int) and stream == -1):
            raise ValueError(
                f"use(): stream is {stream}, which names no stream. Give the one that will work on the array: a "
                "handle, 1 for the legacy default stream, or an object with __cuda_stream__"
            )
        self._source = obj
        self._stream = stream
        self._entered: list[Any] = []

    def __enter__(self) -> _core.Tensor:
        tensor = _core.asdlpack(self._source, stream=self._stream)
        # A capsule is good for one reading: what it gave stands for its producer.
        self._entered.append(tensor if tensor.owner is None else self._source)
        return tensor

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _core.end_use(self._entered.pop(), self._stream)
