"""Numbers in the opposite byte order: refused where the memory would be shared, turned around in a copy."""

import ctypes as ct
import struct
import sys

import pytest
from dlbridge import CopyError, ExchangeError, asdlpack, convert

SWAPPED = ">" if sys.byteorder == "little" else "<"
NATIVE = "<" if sys.byteorder == "little" else ">"
CODES = {"h": [1, -2, 3], "I": [1, 2**31, 3], "q": [1, -(2**40), 3], "f": [1.5, -2.0, 3.0], "d": [0.1, -2.0, 3.0]}
TYPESTR = {"h": "i2", "I": "u4", "q": "i8", "f": "f4", "d": "f8"}


class Interface:
    """__array_interface__ over an address, or over a buffer."""

    def __init__(self, memory, typestr, as_buffer):
        self.memory = memory
        address = ct.addressof(ct.c_char.from_buffer(memory))
        data = memory if as_buffer else (address, False)
        self.__array_interface__ = {"shape": (3,), "typestr": typestr, "version": 3, "data": data}


class Struct:
    """__array_struct__ of a NumPy array, and nothing else."""

    def __init__(self, array):
        self.__array_struct__ = array.__array_struct__
        self.array = array


def numpy_array(memory, typestr):
    return pytest.importorskip("numpy", reason="this form is NumPy's").frombuffer(memory, typestr)


FORMS = {
    "array_interface": lambda memory, typestr: Interface(memory, typestr, False),
    "array_interface over a buffer": lambda memory, typestr: Interface(memory, typestr, True),
    "array_struct": lambda memory, typestr: Struct(numpy_array(memory, typestr)),
    "numpy": numpy_array,
    "buffer": lambda memory, typestr: memoryview(numpy_array(memory, typestr)),
    "buffer, strided": lambda memory, typestr: memoryview(numpy_array(memory, typestr))[::-1],
}


def make(form, code):
    memory = bytearray(struct.pack(f"{SWAPPED}3{code}", *CODES[code]))
    values = CODES[code][::-1] if "strided" in form else CODES[code]
    return FORMS[form](memory, SWAPPED + TYPESTR[code]), values


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("form", FORMS)
def test_a_copy_is_in_native_order(form, code):
    source, values = make(form, code)
    tensor = asdlpack(source, copy=True)
    assert memoryview(tensor).tolist() == values
    assert not tensor.readonly
    assert memoryview(convert(source, "buffer", copy=True)).tolist() == values


@pytest.mark.parametrize("form", FORMS)
def test_sharing_is_refused_with_the_remedy(form):
    source, _ = make(form, "f")
    for options in ({}, {"copy": False}, {"device": "cpu"}):
        with pytest.raises(ExchangeError, match=r"byte order.*copy=True"):
            asdlpack(source, **options)


@pytest.mark.parametrize("form", ["array_interface", "buffer"])
def test_native_order_is_not_touched(form):
    memory = bytearray(struct.pack(f"{NATIVE}3f", 1, 2, 3))
    source = FORMS[form](memory, NATIVE + "f4") if form == "array_interface" else memoryview(memory).cast("f")
    assert memoryview(asdlpack(source, copy=True)).tolist() == [1, 2, 3]


def test_complex_numbers_are_two():
    numpy = pytest.importorskip("numpy", reason="complex numbers are NumPy's")
    for size in (8, 16):
        source = numpy.array([[1 + 2j, 3], [0, -1j]], f"{SWAPPED}c{size}")
        copied = numpy.asarray(asdlpack(source.T, copy=True))
        assert copied.dtype == f"{NATIVE}c{size}"
        assert (copied == source.T).all()


def test_half_precision_and_empty_arrays():
    numpy = pytest.importorskip("numpy", reason="half precision is NumPy's")
    source = numpy.array([1.5, -2.0], f"{SWAPPED}f2")
    assert numpy.asarray(asdlpack(source, copy=True)).tolist() == [1.5, -2.0]
    assert asdlpack(source[:0], copy=True).shape == (0,)


def test_a_reader_that_refuses_says_nothing_for_the_next():
    """Its dictionary is in the other order and its strides are none; its buffer is good."""
    native = struct.pack(f"{NATIVE}3f", 1, 2, 3)

    class Bytes(bytearray):
        @property
        def __array_interface__(self):
            return {"shape": (3,), "typestr": f"{SWAPPED}i4", "version": 3, "strides": (1, 1)}

    assert bytes(memoryview(asdlpack(Bytes(native), copy=True))) == native


def test_copy_false_never_swaps():
    source, _ = make("numpy", "f")
    with pytest.raises((CopyError, ExchangeError), match="byte order"):
        convert(source, "buffer", copy=False)
