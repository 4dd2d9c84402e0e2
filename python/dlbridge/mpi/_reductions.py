"""Reductions of every dtype, by nd's functions: MPI's own take no datatypes but MPI's."""

from __future__ import annotations

from typing import Any

from dlbridge import _core
from dlbridge.mpi import _types

_FUNCTIONS = {"SUM": "add", "PROD": "multiply", "MIN": "minimum", "MAX": "maximum"}


def made(name: str) -> Any:
    """An mpi4py.MPI.Op."""
    from dlbridge import nd

    function = getattr(nd, _FUNCTIONS[name])

    def reduce(received: Any, result: Any, datatype: Any) -> None:
        dtype = _types.dtype_of(datatype)
        arrays = []
        for memory in (received, result):
            octets = _core.asdlpack(memory)
            shape = (octets.nbytes // datatype.Get_size(),)
            arrays.append(nd.from_dlpack(_core.reinterpret(octets, dtype=dtype, shape=shape)))
        function(*arrays, out=arrays[1])

    return _types.mpi().Op.Create(reduce, commute=True)
