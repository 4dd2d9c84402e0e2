"""PyArrow: Array, Tensor, Buffer. All are immutable to their user."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import FLAT, FLOATS, INTEGERS, SLICED, ArrayType, Framework, Look, spelled

_ARRAY = Look("x.to_pylist()", "x.buffers()[1].address + x.offset * x.type.bit_width // 8")
_TENSOR = Look("x.to_numpy().ravel().tolist()", "x.to_numpy().ctypes.data", "", "not x.is_mutable")
_NUMPY = "numpy.array({values}, {dtype}).reshape({shape})"

FRAMEWORK = Framework(
    "pyarrow",
    "pyarrow",
    (
        ArrayType(
            "pyarrow Array",
            "pyarrow.array({values}, {dtype}())",
            spelled("pyarrow.{}", INTEGERS | FLOATS) | {"bool": "pyarrow.bool_"},
            _ARRAY,
            {**FLAT, "offset": "{x}[4:]"},
            ("dlpack", "arrow"),
            flat=True,
            readonly=True,
        ),
        ArrayType(
            "pyarrow Tensor",
            _NUMPY,
            spelled("'{}'", INTEGERS | FLOATS),
            _TENSOR,
            {layout: f"pyarrow.Tensor.from_numpy({view})" for layout, view in SLICED.items()},
        ),
        ArrayType(
            "pyarrow Buffer",
            "pyarrow.py_buffer(bytes(n % 256 for n in {values}))",
            {"int8": ""},  # its buffer's format is 'b'
            Look("memoryview(x).tolist()", "x.address"),
            {**FLAT, "offset": "{x}[4:]"},
            ("buffer",),
            flat=True,
            readonly=True,
        ),
    ),
    convert="pyarrow",
    takes={"dlpack": "(pyarrow.Array if source.ndim == 1 else pyarrow.Tensor).from_dlpack(source)"},
    look=Look(
        "x.to_pylist() if hasattr(x, 'to_pylist') else x.to_numpy().ravel().tolist()",
        "x.buffers()[1].address if hasattr(x, 'buffers') else x.to_numpy().ctypes.data",
    ),
    imports=("numpy",),
    only_devices=("cpu",),
)
