"""PEP 3118 formats: every code, both ways, with `struct` as the oracle."""

import ctypes as ct
import struct

import pytest
from dlbridge import ExchangeError, _core, asdlpack
from provoke import BufferExporter, Managed

# --- formats ----------------------------------------------------------------------------------------------------------

KIND_OF = {"?": "bool", "c": "uint"} | dict.fromkeys("bhilqn", "int") | dict.fromkeys("BHILQN", "uint")
KIND_OF |= dict.fromkeys("efd", "float")
NATIVE_ONLY = "nN"
ACCEPTED = [
    prefix + code
    for prefix in ("", "@", "^", "=", "<")
    for code in KIND_OF
    if not (code in NATIVE_ONLY and prefix in ("=", "<"))
]


def size_of(format):
    """The oracle is `struct`, which does not know `^` (native size, no alignment)."""
    return struct.calcsize(format.replace("^", "@"))


def expected_name(format):
    kind = KIND_OF[format[-1]]
    return kind if kind == "bool" else f"{kind}{8 * size_of(format)}"


@pytest.mark.parametrize("format", ACCEPTED)
def test_every_number_code_in_every_size_mode(format):
    """`=` and `<` are standard size, where `l` has 4 bytes; `c` is uint8."""
    assert _core.parse_format(format, size_of(format)) == expected_name(format)


@pytest.mark.parametrize("prefix", ["", "@", "=", "<"])
@pytest.mark.parametrize(("code", "size"), [("Ze", 4), ("Zf", 8), ("Zd", 16)])
def test_complex_codes(prefix, code, size):
    """`Ze` is complex32."""
    assert _core.parse_format(prefix + code, size) == f"complex{8 * size}"


def test_no_format_is_unsigned_bytes():
    assert _core.parse_format(None, 1) == "uint8"
    assert asdlpack(BufferExporter(format=None, itemsize=1, shape=(12,)).object).dtype == "uint8"


@pytest.mark.parametrize("format", ["=n", "<N", "<n"])
def test_native_only_codes_have_no_standard_size(format):
    with pytest.raises(ExchangeError, match="native-only"):
        _core.parse_format(format, 8)


@pytest.mark.parametrize("format", ["f", "<i", "Zd", "?", "@l", "<l", None])
@pytest.mark.parametrize("itemsize", [0, 3, 5, 24, -1])
def test_a_size_other_than_the_itemsize_is_refused(format, itemsize):
    with pytest.raises(ExchangeError, match="the buffer's itemsize is"):
        _core.parse_format(format, itemsize)


REFUSED = [
    "g",
    "Zg",
    "s",
    "4s",
    "p",
    "u",
    "w",
    "x",
    "P",
    "O",
    "&i",
    "T{i:x:}",
    "2f",
    "(2,3)f",
    "ff",
    "",
    "@",
    "Z",
    "Zi",
]


@pytest.mark.parametrize("format", [*REFUSED, "ZZf", "ie", "<", "$", "é", "i" * 500])
def test_what_is_no_plain_number_is_refused_by_name(format):
    with pytest.raises(ExchangeError, match="buffer format '"):
        _core.parse_format(format, 4)


@pytest.mark.parametrize("format", [">i", "!i", ">Zf", ">d", "!e", ">q"])
def test_the_other_byte_order_is_refused(format):
    """pydlpack misreads it."""
    itemsize = 8 if "Z" in format else size_of(format)
    with pytest.raises(ExchangeError, match=f"buffer format '{format}' is in the opposite byte order.*Byte-swap first"):
        _core.parse_format(format, itemsize)


@pytest.mark.parametrize("format", [">b", ">B", "!?", ">c"])
def test_a_byte_has_no_order(format):
    assert _core.parse_format(format, 1) in ("int8", "uint8", "bool")


SAMPLES = {"bool": [True, False], "uint": [0, 1, 250], "int": [-7, 0, 120], "float": [0.5, -2.0, 0.0]}


@pytest.mark.parametrize("format", [f for f in ACCEPTED if f[-1] != "c"])
def test_values_cross_both_ways(format):
    """Read from a buffer of that format, exported under our own code, unpacked by `struct`."""
    values = SAMPLES[expected_name(format).rstrip("0123456789")]
    packed = (
        struct.pack(str(len(values)) + format.lstrip("@^=<"), *values)
        if format[0] not in "=<"
        else struct.pack(format[0] + str(len(values)) + format[1:], *values)
    )
    exporter = BufferExporter(format=format.encode(), itemsize=size_of(format), shape=(len(values),))
    ct.memmove(exporter.memory, packed, len(packed))
    view = memoryview(asdlpack(exporter.object))
    assert struct.calcsize(view.format) == view.itemsize == size_of(format)
    assert list(struct.unpack(str(len(values)) + view.format, view.tobytes())) == values
    view.release()
    assert exporter.live == 0


@pytest.mark.parametrize("row", _core.dtypes(), ids=lambda row: row["name"])
def test_every_dtype_has_a_code_or_a_refusal(row):
    """bfloat16 and its like have no code."""
    managed = Managed((ct.c_uint8 * 64)(), dtype=(row["code"], row["bits"], row["lanes"]))
    tensor = asdlpack(managed.capsule())
    if row["pep3118"]:
        view = memoryview(tensor)
        assert (view.format, view.itemsize, view.nbytes) == (row["pep3118"], row["itemsize"], 3 * row["itemsize"])
        assert _core.parse_format(view.format, view.itemsize) == row["name"]
        assert asdlpack(view).dtype == row["name"]
    else:
        with pytest.raises(ExchangeError, match=f"dtype {row['name']} has no PEP 3118 code.*Use DLPack"):
            memoryview(tensor)
