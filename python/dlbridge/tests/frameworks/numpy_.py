"""NumPy."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import ANY_VIEW, NUMPY_NATIVE, ArrayType, Framework, Look, spelled

# Arrays of ml_dtypes' types, kind V, have items that are no Python numbers.
LOOK = Look(
    "(x.astype('float32') if x.dtype.kind == 'V' else x).ravel().tolist()",
    "x.ctypes.data",
    "x.__setitem__((0,) * x.ndim, value)",
    "not x.flags.writeable",
)
VIEWS = {**ANY_VIEW, "read-only": "numpy.broadcast_to({x}, {shape})"}
PROTOCOLS = ("dlpack", "array_interface", "buffer")
MAKE = "numpy.array({values}, {dtype}).reshape({shape})"

FRAMEWORK = Framework(
    "numpy",
    "numpy",
    (ArrayType("numpy", MAKE, spelled("'{}'", NUMPY_NATIVE), LOOK, VIEWS, PROTOCOLS),),
    convert="numpy",
    takes={
        "dlpack": "numpy.from_dlpack(source)",
        # asarray() would take the buffer protocol first, so it is given nothing but the attribute in question.
        "array_interface": "numpy.asarray(types.SimpleNamespace("
        "__array_interface__=source.__array_interface__, owner=source))",
        "buffer": "numpy.asarray(memoryview(source))",
    },
    look=LOOK,
    imports=("types",),
    only_devices=("cpu",),
)
