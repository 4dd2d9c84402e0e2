"""DLPack producers and consumers made with ctypes, whose deleters count; and small C helpers for the tests."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import shutil
import subprocess
from pathlib import Path

import dlbridge
import pytest
from dlbridge import _core, nd
from dlbridge.tests.conformance._abi import (
    LEGACY,
    USED,
    VERSIONED,
    DLDataType,
    DLDevice,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLPackVersion,
)

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
FLOAT32, INT32, UINT8 = (2, 32, 1), (0, 32, 1), (1, 8, 1)


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

# A capsule that is being destroyed must not be wrapped in a py_object: these take its address.
_name_at = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer_at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))


@_DESTRUCTOR
def _destroy(capsule):
    name = _name_at(capsule)
    if name in (LEGACY, VERSIONED):
        kind = DLManagedTensor if name == LEGACY else DLManagedTensorVersioned
        managed = kind.from_address(_pointer_at(capsule, name))
        if managed.deleter:
            _DELETER(managed.deleter)(ctypes.addressof(managed))


class Exporter:
    """A DLPack producer: memory of its own, one capsule per call, and the deleters' calls counted.

    `wrong` sets fields of the struct before it is given away (`struct_shape` its shape). `on_delete` runs inside the
    deleter.
    """

    def __init__(
        self, shape=(2, 3), *, dtype=INT32, legacy=False, device=(CPU, 0), on_delete=None, deleter=True, **wrong
    ):
        self.shape, self.dtype, self.legacy, self.device, self.wrong = tuple(shape), dtype, legacy, device, wrong
        self.on_delete = on_delete
        count = 1
        for extent in self.shape:
            count *= extent
        self.memory = (ctypes.c_int32 * (count + 1))(*range(count))  # one more: byte_offset may shift the end
        self.wrong.setdefault("data", ctypes.addressof(self.memory))
        self.made, self.deleted, self.calls = 0, [], []
        self._alive, self._again = {}, []  # a freed struct's address may be the next one's
        self._deleter = _DELETER(self._delete) if deleter else None

    def _delete(self, address):
        self.deleted.append(address)
        if self._alive.pop(address, None) is None:  # freed for real, so that a sanitizer sees a late use
            self._again.append(address)
        if self.on_delete is not None:
            self.on_delete()

    def managed(self):
        """The address of a new managed struct, which the caller owns."""
        out = (DLManagedTensor if self.legacy else DLManagedTensorVersioned)()
        dl = out.dl_tensor
        shape = (ctypes.c_int64 * max(len(self.shape), 1))(*self.shape)
        dl.device, dl.ndim, dl.dtype = DLDevice(*self.device), len(self.shape), DLDataType(*self.dtype)
        dl.shape = shape
        out.deleter = ctypes.cast(self._deleter, ctypes.c_void_p) if self._deleter else None
        keep = [out, shape]
        parts = [dl, dl.device, dl.dtype, out]
        if not self.legacy:
            out.version = DLPackVersion(1, 0)
            parts.append(out.version)
        for name, value in self.wrong.items():
            field = name.removeprefix("struct_")
            if field in ("shape", "strides") and value is not None:
                value = (ctypes.c_int64 * len(value))(*value)
                keep.append(value)
            setattr(next(part for part in parts if hasattr(part, field)), field, value)
        address = ctypes.addressof(out)
        self._alive[address] = keep
        self.made += 1
        return address

    def capsule(self):
        return _new_capsule(self.managed(), LEGACY if self.legacy else VERSIONED, _destroy)

    def __dlpack__(self, **arguments):
        self.calls.append(arguments)
        return self.capsule()

    def __dlpack_device__(self):
        return self.device

    def assert_all_deleted_once(self):
        gc.collect()
        assert len(self.deleted) == self.made, f"{self.made} structs made, {len(self.deleted)} deleter calls"
        assert not self._again, "a deleter ran twice"


class Consumed:
    """Takes a capsule as a C consumer does: renames it and keeps the struct, until delete()."""

    def __init__(self, capsule):
        name = _name_at(id(capsule))
        self.address = _pointer_at(id(capsule), name)
        self.legacy = name == LEGACY
        assert _set_name(capsule, USED[name]) == 0
        self.struct = (DLManagedTensor if self.legacy else DLManagedTensorVersioned).from_address(self.address)
        self.deleter = self.struct.deleter

    def delete(self):
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.deleter)(self.address)

    def delete_with_gil(self):
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self.deleter)(self.address)

    def delete_on_foreign_thread(self):
        """On a thread that Python has never seen, while this one waits without the GIL."""
        libc = ctypes.CDLL(None)
        thread = ctypes.c_ulong()
        rc = libc.pthread_create(
            ctypes.byref(thread), None, ctypes.c_void_p(self.deleter), ctypes.c_void_p(self.address)
        )
        assert rc == 0
        assert libc.pthread_join(thread, None) == 0


@contextlib.contextmanager
def nothing_lost():
    """Live tensors, exports and copies are the same before and after."""
    gc.collect()
    before = _core.live_counts()
    yield
    gc.collect()
    assert _core.live_counts() == before


def host_array(x):
    """nd's array of host memory on the host, on a machine with a GPU, too."""
    return nd.asarray(x, device="cpu")


def compile_shared(source, folder, name, *flags):
    """Builds a C or C++ source file as a shared library; skips by name where there is no compiler."""
    is_cpp = str(source).endswith(".cpp")
    compiler = shutil.which("c++" if is_cpp else "cc")
    if compiler is None:
        pytest.skip(f"no {'C++' if is_cpp else 'C'} compiler on PATH to build {os.path.basename(source)}")
    path = os.path.join(str(folder), name)
    command = [compiler, "-shared", "-fPIC", "-O1", *flags, "-o", path, str(source), "-lpthread", "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


KERNEL_LIBRARY = "libdlbridge_kernels.so"


def link_package(folder):
    """dlbridge again, under `folder`, without a kernel library: arrays on the fake device want one beside the package.
    Where none is needed, an empty file will do."""
    package = folder / "dlbridge"
    package.mkdir()
    for item in Path(dlbridge.__file__).parent.iterdir():
        if item.name != KERNEL_LIBRARY:
            (package / item.name).symlink_to(item)
    return package
