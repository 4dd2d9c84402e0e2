"""Run in a process of its own: every allocation of an operation fails once, and from there on, in turn.

Usage: python out_of_memory_child.py python|new NAME. `python`: CPython's allocators, through _testcapi; `new`:
C++ operator new, through the preloaded tests/python/fail_new.cpp. Prints how often
an operation ended in MemoryError.
"""

import array
import ctypes
import gc
import sys

from dlbridge import _core, asdlpack, convert, nd

# Not with CPython's allocators failing: these end in faults that are not ours.
UNSAFE_IN_PYTHON = {
    "no typestr": "CPython's PyErr_Format loses the error",
    "no typestr by struct": "as above",
    "refused format": "CPython 3.11's PyErr_Format loses the error",
    "refused byte order": "as above",
    "refused twice": "as above",
    "refused read-only": "as above",
    "no protocol": "as above",
    "bad keyword": "as above",
    "masked": "as above",
    "peek": "pybind11 turns it into RuntimeError",
    "pickle": "pybind11's dispatcher compares with a null name",
    "nd sum of float16": "CPython 3.11 leaks the arguments of a Python function whose frame finds no memory",
    "numpy scalar": "NumPy's gentype_struct_get uses a null array",
}
NINE = (1,) * 8 + (24,)  # more dimensions than a tensor holds inside


class Interface:
    def __init__(self, data, **fields):
        self.__array_interface__ = {"shape": (8,), "typestr": "|u1", "version": 3, "data": data, **fields}


class Producer:
    """A __dlpack__ whose capsule comes from dlbridge itself, so that no ctypes callback meets a failing allocation."""

    def __init__(self, tensor, legacy=False):
        self.tensor, self.legacy = tensor, legacy

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.tensor.__dlpack__(max_version=None if self.legacy else max_version)

    def __dlpack_device__(self):
        return (1, 0)


class Old(Producer):
    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__()


def numpy_or_none():
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def operations():
    data = bytearray(24)
    tensor = asdlpack(data)
    nine = memoryview(data).cast("B", NINE)
    four = memoryview(data).cast("B", (2, 3, 2, 2))
    strided = memoryview(array.array("i", range(12)))[::-2]
    address = ctypes.addressof(ctypes.c_char.from_buffer(data))
    struct_like = type("StructOnly", (), {"__array_struct__": property(lambda self: tensor.__array_struct__)})()
    no_typestr = _core.reinterpret(tensor, dtype="bfloat16", shape=(12,))
    swapped = Interface((address, False), typestr=">i2", keep=data)
    bad_byte_order = Interface((address, False), typestr=">i4")
    two_refusals = type("Two", (), {"__dlpack__": lambda self, **kw: None, "__array_interface__": {}})()
    out = {
        "bytearray": lambda: asdlpack(data),
        "bytes": lambda: asdlpack(b"read only"),
        "nine dimensions": lambda: asdlpack(nine),
        "strided memoryview": lambda: asdlpack(strided),
        "capsule": lambda: asdlpack(tensor.__dlpack__(max_version=(1, 0))),
        "legacy capsule": lambda: asdlpack(tensor.__dlpack__()),
        "object": lambda: asdlpack(Producer(tensor)),
        "legacy object": lambda: asdlpack(Producer(tensor, legacy=True)),
        "old signature": lambda: asdlpack(Old(tensor)),
        "nine dimensions by dlpack": lambda: asdlpack(asdlpack(nine).__dlpack__(max_version=(1, 0))),
        "array_interface, address": lambda: asdlpack(Interface((address, False), keep=data)),
        "array_interface, buffer": lambda: asdlpack(Interface(data)),
        "array_interface, own": lambda: asdlpack(tensor, protocol="array_interface"),
        "array_struct": lambda: asdlpack(struct_like),
        "arrow": lambda: asdlpack(tensor, protocol="arrow"),
        "arrow, four axes": lambda: asdlpack(asdlpack(four), protocol="arrow"),
        "arrow mask": lambda: asdlpack(tensor, nulls="mask"),
        "arrow export": lambda: tensor.__arrow_c_array__(),
        "arrow schema": lambda: tensor.__arrow_c_schema__(),
        "arrow type": lambda: _core.arrow_type(tensor),
        "copy": lambda: asdlpack(data, copy=True),
        "copy of a strided one": lambda: asdlpack(strided, copy=True),
        "copy of nine dimensions": lambda: asdlpack(nine, copy=True),
        "export": lambda: tensor.__dlpack__(max_version=(1, 0)),
        "legacy export": lambda: tensor.__dlpack__(),
        "export with all arguments": lambda: tensor.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False),
        "copied export": lambda: tensor.__dlpack__(max_version=(1, 0), copy=True),
        "copied legacy export": lambda: tensor.__dlpack__(copy=True),
        "dlpack_device": lambda: tensor.__dlpack_device__(),
        "export array_interface": lambda: tensor.__array_interface__,
        "no typestr": lambda: refuse(lambda: no_typestr.__array_interface__, AttributeError),
        "no typestr by struct": lambda: refuse(lambda: no_typestr.__array_struct__, AttributeError),
        "swapped copy": lambda: asdlpack(swapped, copy=True),
        "export array_struct": lambda: tensor.__array_struct__,
        "export buffer": lambda: memoryview(tensor),
        "export strided buffer": lambda: memoryview(asdlpack(strided)),
        "attributes": lambda: [getattr(tensor, name) for name in ("shape", "strides", "dtype", "device", "protocol")],
        "repr": lambda: repr(tensor),
        "refused format": lambda: refuse(lambda: asdlpack(memoryview(b"abcd").cast("c")), None),
        "refused byte order": lambda: refuse(lambda: asdlpack(bad_byte_order), BufferError),
        "refused twice": lambda: refuse(lambda: asdlpack(two_refusals), (TypeError, ValueError)),
        "refused read-only": lambda: refuse(lambda: asdlpack(b"abc").__dlpack__(), BufferError),
        "no protocol": lambda: refuse(lambda: asdlpack(object()), TypeError),
        "bad keyword": lambda: refuse(lambda: asdlpack(data, nothing=1), TypeError),
        "protocol by name": lambda: asdlpack(data, protocol="buffer", copy=False, device="cpu"),
        "pickle": lambda: tensor.__reduce_ex__(5),
        "peek": lambda: _core.peek_capsule(tensor.__dlpack__()),
    }
    out |= ndarray_operations()
    numpy = numpy_or_none()
    if numpy is not None:
        matrix = numpy.arange(6.0).reshape(2, 3)
        fortran = numpy.asfortranarray(matrix)
        masked = numpy.ma.array([1, 2], mask=[True, False])
        out |= {
            "numpy": lambda: asdlpack(matrix),
            "numpy scalar": lambda: asdlpack(numpy.float32(1)),
            "numpy by dlpack": lambda: asdlpack(matrix, protocol="dlpack"),
            "numpy nine dimensions": lambda: asdlpack(matrix.reshape((1,) * 8 + (6,))),
            "numpy copy": lambda: asdlpack(fortran, copy=True),
            "masked": lambda: refuse(lambda: asdlpack(masked), BufferError),
            "convert to numpy": lambda: convert(data, "numpy"),
            "asarray": lambda: numpy.asarray(tensor),
            "__array__": lambda: tensor.__array__(),
            "from_dlpack": lambda: numpy.from_dlpack(tensor),
        }
    return out, [data, tensor]


def ndarray_operations():
    """Each checks what it got: a failure in a kernel must not pass for a result."""
    x = nd.asarray([3.0, 1.0, 2.0, 0.0], dtype="float32", device="cpu")
    square = x.reshape(2, 2)
    halves = square.astype("float16")

    def gives(values, call):
        def run():
            got = call().tolist()
            assert got == values, got

        return run

    return {
        "nd add": gives([6, 2, 4, 0], lambda: x + x),
        "nd sort": gives([0, 1, 2, 3], lambda: nd.sort(x)),
        "nd argsort": gives([3, 1, 2, 0], lambda: nd.argsort(x)),
        "nd sum of float16": gives([4, 2], lambda: nd.sum(halves, axis=1)),
        "nd matmul": gives([[11, 3], [6, 2]], lambda: square @ square),
        "nd take": gives([3, 3], lambda: nd.take(x, nd.asarray([0, 0], device="cpu"))),
        "nd mask": gives([3, 2], lambda: x[x > 1]),
        "nd transposed copy": gives([[3, 2], [1, 0]], square.T.copy),
    }


def refuse(call, error):
    try:
        call()
    except MemoryError:
        raise
    except BaseException as raised:
        if error is None or isinstance(raised, error):
            return
        raise


class PythonAllocators:
    def __init__(self):
        import _testcapi

        self.set, self.reset = _testcapi.set_nomemory, _testcapi.remove_mem_hooks

    def fail(self, n, every):
        self.set(n, 0 if every else n + 1)


class OperatorNew:
    def __init__(self):
        self.fail_after = ctypes.PyDLL(None).fail_new_after
        self.fail_after.argtypes = [ctypes.c_long, ctypes.c_int]

    def fail(self, n, every):
        self.fail_after(n, 1 if every else 0)

    def reset(self):
        self.fail_after(-1, 0)


def provoke(name, run, allocators, objects):
    """How often `run` ended in MemoryError; it must end in that or in success."""
    for _ in range(3):
        run()
    gc.collect()
    counts, references = _core.live_counts(), [sys.getrefcount(one) for one in objects]
    failures = 0
    hoard = [asdlpack(b"hoard").__dlpack__(max_version=(1, 0)) for _ in range(200)]
    for every in (False, True):
        successes, n = 0, 0
        while successes < 24:  # in a row: some failures are made good (a fallback, a cached object)
            raised = None
            # What earlier runs gave back to the freelists is taken out again, so that objects are allocated.
            for _ in range(4):
                hoard.append(asdlpack(b"hoard").__dlpack__(max_version=(1, 0)))
            allocators.fail(n, every)
            try:
                run()
            except MemoryError:
                raised = MemoryError
            except BaseException as error:
                raised = error
            allocators.reset()
            if raised is MemoryError:
                failures, successes = failures + 1, 0
            elif raised is not None:
                raise AssertionError(
                    f"{name}: allocation {n} failed and became this instead of MemoryError"
                ) from raised
            else:
                successes += 1
            n += 1
            assert n < 2000, name
    del raised, hoard
    gc.collect()
    assert _core.live_counts() == counts, f"{name}: {_core.live_counts()} after, {counts} before"
    after = [sys.getrefcount(one) for one in objects]
    assert after == references, f"{name}: references {after}, {references} before"
    return failures


def main(kind, *names):
    allocators = PythonAllocators() if kind == "python" else OperatorNew()
    runs, objects = operations()
    total = 0
    for name in names or runs:
        if kind != "python" or name not in UNSAFE_IN_PYTHON:
            failures = provoke(name, runs[name], allocators, objects)
            print(f"{failures:4d} {name}", file=sys.stderr)
            total += failures
    print(total)


if __name__ == "__main__":
    main(*sys.argv[1:])
