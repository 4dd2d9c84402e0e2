"""DLPack producers and consumers made with ctypes, whose deleters count; and small C helpers for the tests."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dlbridge
import pytest
from dlbridge import _core

READ_ONLY, IS_COPIED = 1, 2
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
FLOAT32, INT32, UINT8 = (2, 32, 1), (0, 32, 1), (1, 8, 1)


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Legacy(ctypes.Structure):
    _fields_ = (("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    )


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
LEGACY, LEGACY_USED = b"dltensor", b"used_dltensor"  # capsules keep the pointer, not a copy
VERSIONED, VERSIONED_USED = b"dltensor_versioned", b"used_dltensor_versioned"


@_DESTRUCTOR
def _destroy(capsule):
    name = _name_at(capsule)
    if name in (LEGACY, VERSIONED):
        kind = Legacy if name == LEGACY else Versioned
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
        self._alive = {}
        self._deleter = _DELETER(self._delete) if deleter else None

    def _delete(self, address):
        self.deleted.append(address)
        self._alive.pop(address, None)  # freed for real, so that a sanitizer sees a late use
        if self.on_delete is not None:
            self.on_delete()

    def managed(self):
        """The address of a new managed struct, which the caller owns."""
        out = (Legacy if self.legacy else Versioned)()
        dl = out.dl_tensor
        shape = (ctypes.c_int64 * max(len(self.shape), 1))(*self.shape)
        (dl.device_type, dl.device_id), dl.ndim = self.device, len(self.shape)
        dl.code, dl.bits, dl.lanes = self.dtype
        dl.shape = shape
        out.deleter = ctypes.cast(self._deleter, ctypes.c_void_p) if self._deleter else None
        keep = [out, shape]
        if not self.legacy:
            out.major, out.minor, out.flags = 1, 0, 0
        for name, value in self.wrong.items():
            field = name.removeprefix("struct_")
            if field in ("shape", "strides") and value is not None:
                value = (ctypes.c_int64 * len(value))(*value)
                keep.append(value)
            setattr(dl if hasattr(dl, field) else out, field, value)
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
        assert len(set(self.deleted)) == len(self.deleted), "a deleter ran twice"


class Consumed:
    """Takes a capsule as a C consumer does: renames it and keeps the struct, until delete()."""

    def __init__(self, capsule):
        name = _name_at(id(capsule))
        self.address = _pointer_at(id(capsule), name)
        self.legacy = name == LEGACY
        assert _set_name(capsule, LEGACY_USED if self.legacy else VERSIONED_USED) == 0
        self.struct = (Legacy if self.legacy else Versioned).from_address(self.address)
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


def run_python(code, *arguments, timeout=120, **environment):
    """Runs `code` (or a script's path) in a new interpreter; the finished process, whose exit status must be 0."""
    head = [code] if str(code).endswith(".py") else ["-c", code]
    folder = os.path.dirname(os.path.abspath(__file__))
    paths = [folder, os.path.join(os.path.dirname(folder), "cuda"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", *map(str, head), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment},
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
