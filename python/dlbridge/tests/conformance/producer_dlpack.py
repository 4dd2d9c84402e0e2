"""What DLPack asks of ``__dlpack__``: the fields of the struct, for each array of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from dlbridge.tests.conformance import _abi, _spec
from dlbridge.tests.conformance._check import (
    ARRAY_API,
    HEADER,
    PYTHON_SPEC,
    SHOULD,
    Check,
    Failed,
    Skip,
    expect,
    expect_equal,
)
from dlbridge.tests.conformance._making import Described, Making
from dlbridge.tests.conformance._spec import DTYPES, Spec

FORMS = ("legacy", "versioned")


def _shape(described: Described, spec: Spec, making: Making) -> None:
    if making.form == "plain":
        shape = getattr(making.array(), "shape", None)
        expect(shape is None or tuple(shape) == described.shape, f"the array's shape {shape}", described.shape)
        return
    expect_equal(described.shape, spec.shape, "shape")


def _dtype(described: Described, spec: Spec, making: Making) -> None:
    if making.form == "plain":
        raise Skip("the factory makes one array of its own choice")
    row = DTYPES[spec.dtype]
    got = (described.code, described.bits, described.lanes)
    expect_equal(got, (row["code"], row["bits"], row["lanes"]), f"{spec.dtype} as (code, bits, lanes)")


def _strides(described: Described, spec: Spec, making: Making) -> None:
    expect(described.strides is not None, "a strides array (dlpack.h 1.2 and newer)", "NULL")


def _values(described: Described, spec: Spec, making: Making) -> None:
    if not making.knows_values:
        raise Skip("the factory chooses the values")
    expect_equal(described.values(), spec.values, "the elements, read at data + byte_offset with the strides,")


def _null_data(described: Described, spec: Spec, making: Making) -> None:
    expect_equal(described.data, 0, "data of an array of size zero")


def _device(described: Described, spec: Spec, making: Making) -> None:
    announced = tuple(map(int, described.keep[-1].__dlpack_device__()))
    expect_equal(described.device, announced, "the device of __dlpack_device__()")


def _flags(described: Described, spec: Spec, making: Making) -> None:
    expect_equal(described.flags & ~_abi.KNOWN_FLAGS, 0, "unknown flag bits")
    expect(not described.flags & _abi.PADDED, "no padded flag on a type of whole bytes", hex(described.flags))
    expect(not described.flags & _abi.IS_COPIED, "no IS_COPIED: copy=None shares where it can", hex(described.flags))
    expect_equal(bool(described.readonly), making.is_readonly(spec), "READ_ONLY as the array is:")


def _version(described: Described, spec: Spec, making: Making) -> None:
    assert described.version is not None
    expect_equal(described.version[0], 1, "major version")


_Look = Callable[[Described, Spec, Making], None]
_EXPRESSIBLE = _spec.EXPRESSIBLE + tuple(Spec((2, 3), name) for name in _spec.FLOAT8)
_NUMBERS = _spec.EXPRESSIBLE

# aspect, how it is looked at, arrays, forms, severity, clause, source
_ASPECTS: tuple[tuple[str, _Look, Sequence[Spec], Sequence[str], str, str, str], ...] = (
    ("shape", _shape, _EXPRESSIBLE, FORMS, "must", "ndim and shape are those of the array", HEADER),
    ("dtype", _dtype, _EXPRESSIBLE, FORMS, "must", "dtype is one of DLDataTypeCode with its bits; bool has 8", HEADER),
    (
        "values",
        _values,
        _NUMBERS,
        FORMS,
        "must",
        "data + byte_offset is the first element, strides count elements",
        HEADER,
    ),
    (
        "strides",
        _strides,
        _EXPRESSIBLE,
        ("versioned",),
        "should",  # the Python specification still allows NULL for row-major
        "strides are not NULL where ndim is not 0",
        HEADER,
    ),
    ("null-data", _null_data, _spec.EMPTY, FORMS, "should", "data is NULL where the size is zero", HEADER),
    (
        "device",
        _device,
        _spec.OF_SHAPES,
        FORMS,
        "must",
        "the capsule is on the device that __dlpack_device__ announces",
        ARRAY_API,
    ),
    (
        "flags",
        _flags,
        _EXPRESSIBLE,
        ("versioned",),
        "must",
        "flags are set for what they say and zero otherwise",
        HEADER,
    ),
    ("version", _version, (_spec.BASE,), ("versioned",), "must", "a versioned struct carries major version 1", HEADER),
)


def _look(look: _Look, form: str, spec: Spec, making: Making) -> None:
    look(making.managed(form, spec), spec, making)


def _fields() -> Iterator[Check]:
    for aspect, look, specs, forms, severity, clause, source in _ASPECTS:
        for form in forms:
            for spec in specs:
                run = partial(_look, look, form, spec)
                yield Check(f"dlpack.{form}.{aspect}[{spec}]", "dlpack", clause, source, run, severity)


# --- what must not be exported ----------------------------------------------------------------------------------------


def _refused(form: str, spec: Spec, making: Making) -> None:
    array = making.offering("__dlpack__", spec)
    options = {"max_version": (1, 3)} if form == "versioned" else {}
    try:
        capsule = array.__dlpack__(**options)
    except BufferError:
        return
    except TypeError as error:
        if options and "max_version" in str(error):
            raise Skip("__dlpack__ has no max_version") from None
        raise Failed("BufferError", f"TypeError: {error}") from None
    except Exception as error:
        raise Failed("BufferError", f"{type(error).__name__}: {error}") from None
    fields = _abi.managed_of(capsule).dl_tensor.dtype
    raise Failed("BufferError", f"a capsule of (code, bits, lanes) {(fields.code, fields.bits, fields.lanes)}")


def _refusals() -> Iterator[Check]:
    for form in FORMS:
        for dtype in _spec.FOREIGN_DTYPES:
            spec = Spec((3,), dtype)
            yield Check(
                f"dlpack.{form}.inexpressible[{dtype}]",
                "dlpack",
                "a dtype that DLPack lacks, foreign byte order included, is refused with BufferError",
                ARRAY_API,
                partial(_refused, form, spec),
            )
        yield Check(
            f"dlpack.{form}.inexpressible-strides",
            "dlpack",
            "strides that are not a multiple of the itemsize are refused with BufferError",
            ARRAY_API,
            partial(_refused, form, Spec((3,), "int32", "packed")),
        )
        yield Check(
            f"dlpack.{form}.readonly-flag" if form == "versioned" else "dlpack.legacy.readonly-refused",
            "dlpack",
            "a read-only array is flagged READ_ONLY"
            if form == "versioned"
            else "a read-only array is refused where the struct cannot say it (the flag exists since DLPack 1.0)",
            HEADER if form == "versioned" else PYTHON_SPEC,
            partial(_readonly, form),
            "must" if form == "versioned" else SHOULD,
        )


def _readonly(form: str, making: Making) -> None:
    for spec in _spec.READONLY:
        if form == "legacy":
            _refused(form, spec, making)
        else:
            described = making.managed(form, spec)
            expect(bool(described.readonly), "the READ_ONLY flag", f"flags {described.flags:#x}")


CHECKS: tuple[Check, ...] = (*_fields(), *_refusals())
