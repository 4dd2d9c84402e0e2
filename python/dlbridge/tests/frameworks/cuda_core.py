"""cuda.core: views of others' memory. It cannot read elements, so that only pointers are compared."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import Framework, Look

FRAMEWORK = Framework(
    "cuda.core",
    "cuda.core.utils",
    takes={
        "dlpack": "cuda.core.utils.StridedMemoryView.from_dlpack(source, stream_ptr=-1)",
        "cuda_array_interface": "cuda.core.utils.StridedMemoryView.from_cuda_array_interface(source, stream_ptr=-1)",
        "array_interface": "cuda.core.utils.StridedMemoryView.from_array_interface(source)",
    },
    look=Look("", "x.ptr", "", "x.readonly"),
    distribution="cuda-core",
)
