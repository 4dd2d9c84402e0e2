"""Arrays through Dask: `dask.array` over chunks of dlbridge, and between workers without being pickled.

Importing this module registers `Tensor` and `nd.ndarray` with Dask. A worker that gets such an array imports it by
itself.
"""

from __future__ import annotations

from dlbridge.dask import _chunks, _wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from distributed import Client

__all__ = ["install"]

_PLUGIN = "dlbridge.dask"  # its name on the cluster: the last one counts


def install(*frameworks: str, client: Client | None = None) -> None:
    """Lets Dask's workers send the arrays of other frameworks as dlbridge sends its own.

    frameworks: "jax", "torch": JAX's arrays, which Dask pickles in one piece, and PyTorch's, of which it refuses
    bfloat16 and those of a GPU. They arrive as what they were. Tensors with a gradient go as they did before.
    client: all workers of its cluster, those of later, too; None: this process alone.

    May be called again, for more frameworks. Raises ValueError for another name and ImportError where a framework, or
    Dask's distributed, is not there.
    """
    _wire.register_frameworks(frameworks)
    if client is not None:
        from dlbridge.dask._plugin import Install

        client.register_plugin(Install(_wire.registered()), name=_PLUGIN)


_chunks.register()
_wire.register()
