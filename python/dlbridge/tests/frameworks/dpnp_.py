"""dpnp: arrays in the memory of oneAPI devices. From its documentation: no such device was at hand."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import NUMPY_NATIVE, SLICED, ArrayType, Framework, Look, spelled

_LOOK = Look("dpnp.asnumpy(x).ravel().tolist()")

FRAMEWORK = Framework(
    "dpnp",
    "dpnp",
    (
        ArrayType(
            "dpnp",
            "dpnp.asarray({values}, dtype={dtype}).reshape({shape})",
            spelled("'{}'", NUMPY_NATIVE),
            _LOOK,
            SLICED,
            devices=("oneapi",),
        ),
    ),
    convert="dpnp",
    takes={"dlpack": "dpnp.from_dlpack(source)"},
    look=_LOOK,
    devices={"oneapi": "dpnp.get_default_queue() if hasattr(dpnp, 'get_default_queue') else True"},
)
