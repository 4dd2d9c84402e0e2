"""mpi4py: memory from MPI_Alloc_mem, and what it takes as a message."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import ArrayType, Framework, Look

_LOOK = Look("list(memoryview(x))", "x.address", "x.__setitem__(0, value)", "x.readonly")

FRAMEWORK = Framework(
    "mpi4py",
    "mpi4py.MPI",
    (
        ArrayType(
            "mpi4py",
            "(lambda m: (m.__setitem__(slice(None), bytes({values})), m)[1])(mpi4py.MPI.Alloc_mem({shape}[0]))",
            {"uint8": ""},
            _LOOK,
            {"contiguous": "{x}", "read-only": "{x}.toreadonly()"},
            ("buffer",),
            flat=True,
        ),
    ),
    takes={"buffer": "mpi4py.MPI.buffer(memoryview(source).cast('B'))", "dlpack": "mpi4py.MPI.buffer(source)"},
    # What it takes are bytes: read back as the type that was sent would need the very bridge under test.
    look=Look("", "x.address", "", "x.readonly"),
    distribution="mpi4py",
)
