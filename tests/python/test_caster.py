"""dlbridge/pybind11.h: arrays as arguments of an extension function (tests/pybind/caster_module.cpp)."""

import array
import ctypes
import gc
import mmap
import re
import sys

import dlbridge
import pytest
from caster_support import matrix
from dlbridge import asdlpack
from dlbridge.tests.conformance._abi import READ_ONLY
from lifecycle_support import CPU, FLOAT32, Exporter, nothing_lost

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")


def address(array):
    return array.__array_interface__["data"][0]


class Only:
    """An object with one protocol of an array, and no other."""

    def __init__(self, base, *names):
        self.base, self.names = base, names

    def __getattr__(self, name):
        if name in object.__getattribute__(self, "names"):
            return getattr(self.base, name)
        raise AttributeError(name)


# --- signatures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("any", "any(a: ANY[any, ...]) -> tuple"),
        ("flat", "flat(a: ANY[float32, ..., cpu]) -> tuple"),
        ("matrix", "matrix(a: ANY[float32, (*, *), C, cpu]) -> tuple"),
        ("fortran", "fortran(a: ANY[float64, (*, *), F, cpu]) -> tuple"),
        ("picture", "picture(a: ANY[uint8, (*, *, 3), cpu]) -> tuple"),
        ("scalar", "scalar(a: ANY[float32, (), cpu]) -> float"),
        ("nine", "nine(a: ANY[int8, (*, *, *, *, *, *, *, *, *), cpu]) -> tuple"),
        ("aligned64", "aligned64(a: ANY[float32, ..., cpu, aligned 64]) -> tuple"),
        ("floating", "floating(a: ANY[float32 | float64, (*,), cpu]) -> tuple"),
        ("on_gpu", "on_gpu(a: ANY[float32, (*, *, 3), C, cuda, writable], stream: "),
        ("on_gpu", ', stream: typing.Annotated[typing.Any, "CUDA stream"] | None = None) -> tuple'),
        ("owned", 'owned(t: typing.Annotated[dlbridge.AnyArray, "Tensor"]) -> '),
        ("numpy", " -> numpy.ndarray"),
        ("torch", " -> torch.Tensor"),
        ("jax", " -> jax.Array"),
        ("tensor", " -> dlbridge.Tensor"),
        ("nobody", 'nobody() -> typing.Annotated[typing.Any, "array of no_such_framework"]'),
    ],
)
def test_signature(ext, name, signature):
    if "ANY[" in signature:
        signature = re.sub(r"ANY\[(.*?)\](\)|,)", r'typing.Annotated[dlbridge.AnyArray, "Tensor[\1]"]\2', signature)
    assert signature in getattr(ext, name).__doc__


def test_docstring_of_a_direct_function_keeps_its_text(ext):
    assert ext.matrix.__doc__.splitlines()[2] == "A matrix."
    assert (ext.matrix.__name__, ext.matrix.__module__) == ("matrix", "caster_module")


# --- every protocol, without a copy -----------------------------------------------------------------------------------


def _sources():
    a = matrix()
    yield pytest.param(a, address(a), False, id="numpy")
    yield pytest.param(a.view(type("Sub", (np.ndarray,), {})), address(a), False, id="numpy subclass")
    readonly = matrix()
    readonly.flags.writeable = False
    yield pytest.param(readonly, address(readonly), True, id="numpy read-only")
    yield pytest.param(Only(a, "__dlpack__", "__dlpack_device__"), address(a), False, id="__dlpack__")
    yield pytest.param(Only(a, "__dlpack__"), address(a), False, id="__dlpack__ alone")
    yield pytest.param(Only(a, "__array_interface__"), address(a), False, id="__array_interface__")
    yield pytest.param(Only(a, "__array_struct__"), address(a), False, id="__array_struct__")
    yield pytest.param(memoryview(a), address(a), False, id="buffer")
    yield pytest.param(asdlpack(a), address(a), False, id="dlbridge.Tensor")


@pytest.mark.parametrize(("source", "pointer", "readonly"), list(_sources()))
@pytest.mark.parametrize("function", ["matrix", "plain_matrix", "matrix_by_reference"])
def test_shares_the_memory_of_every_protocol(ext, function, source, pointer, readonly):
    assert getattr(ext, function)(source) == (pointer, (3, 4), (4, 1))
    assert ext.any(source) == (pointer, (3, 4), (4, 1), "float32", "cpu", readonly)
    assert ext.flat(a=source)[0] == pointer


def test_capsules_are_taken_once(ext):
    producer = Exporter((2, 3))
    capsule = producer.capsule()
    assert ext.total_unlocked(capsule) == 15
    producer.assert_all_deleted_once()
    with pytest.raises(ValueError, match="already consumed"):
        ext.total_unlocked(capsule)


def test_exchange_api_of_torch(ext):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.arange(12.0).reshape(3, 4)
    before = sys.getrefcount(x)
    assert ext.matrix(x) == (x.data_ptr(), (3, 4), (4, 1))
    assert ext.strided(x[::2, 1:]) == x[::2, 1:].sum().item()
    assert ext.plus(x[0], 5) == 5.0
    assert (x[0, 3], sys.getrefcount(x)) == (8, before)
    with pytest.raises(BufferError, match="requires grad"):
        ext.flat(x.clone().requires_grad_())


def test_jax_arrays_are_read_only(ext):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x = jax.device_put(np.arange(12, dtype="float32").reshape(3, 4), jax.devices("cpu")[0])
    assert ext.matrix(x) == (x.unsafe_buffer_pointer(), (3, 4), (4, 1))
    assert ext.any(x)[5] is True
    with pytest.raises(
        TypeError, match=r"expected writable memory, got \(4,\) \[jaxlib.*copy = numpy.array\(a\), which"
    ):
        ext.plus(x[0])
    # No buffer format: through __dlpack__.
    assert ext.any(x.astype("bfloat16"))[3] == "bfloat16"
    y = x + 1
    y.delete()
    with pytest.raises((TypeError, RuntimeError, BufferError)):  # JAX's own words
        ext.matrix(y)


def test_other_producers(ext):
    data = bytearray(np.arange(6, dtype="uint8").tobytes())
    assert ext.any(data)[1:] == ((6,), (1,), "uint8", "cpu", False)
    assert ext.any(bytes(data))[5] is True
    assert ext.any(array.array("d", [1, 2]))[3] == "float64"
    with mmap.mmap(-1, 4096) as mapped:
        assert ext.any(mapped)[1] == (4096,)
    with pytest.raises(BufferError):
        kept = ext.owned(memoryview(data).cast("B"))
        data.extend(b"x")  # locked by the tensor that the extension keeps
    del kept
    data.extend(b"x")


# --- shapes and layouts ---------------------------------------------------------------------------------------------


def test_shapes_and_strides(ext):
    a = matrix()
    assert ext.strided(a[::-1, ::2]) == a[::-1, ::2].sum()
    assert ext.strided(a.T) == a.sum()
    assert ext.flat(a[:, 1])[1:] == ((3,), (4,))
    assert ext.fortran(np.asfortranarray(matrix("float64")))[2] == (1, 3)
    assert ext.scalar(np.array(2.5, "float32")) == 2.5
    assert ext.picture(np.zeros((2, 5, 3), "uint8"))[1] == (2, 5, 3)
    nine = np.zeros((1, 2) * 4 + (1,), "int8")
    assert ext.nine(nine) == (address(nine), nine.shape, tuple(s for s in nine.strides))
    assert ext.floating(np.zeros(6, "float64")[::3]) == ("float64", 2, 3)
    assert ext.any(np.zeros((1,) * 12, "int8"))[1] == (1,) * 12


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_empty_arrays(ext, shape):
    pointer, extents, _ = ext.matrix(np.zeros(shape, "float32"))
    assert (pointer, extents) == (0, shape)
    assert ext.plus(np.zeros(0, "float32")) == 0


def test_a_function_writes_where_the_caller_reads(ext):
    a = np.zeros(4, "float32")
    assert ext.plus(a) == 1
    assert ext.plus(a[::2], value=2) == 3
    assert a.tolist() == [3, 1, 3, 1]


# --- refusals -------------------------------------------------------------------------------------------------------


def _refusals():
    readonly = np.zeros(3, "float32")
    readonly.flags.writeable = False
    overlapping = np.lib.stride_tricks.as_strided(np.zeros(1, "float32"), (3,), (0,))
    full = r"dtype float32, got \(3, 4\) \[numpy.ndarray, float64, strides \(4, 1\), cpu, writable\]. Hint: "
    yield "matrix", matrix("float64"), full + r"a.astype\('float32'\)"
    yield "matrix", np.zeros(3, "float32"), r"rank 2, got \(3,\) .*Hint: a\[..., None\]"
    yield "matrix", np.zeros((1, 2, 3), "float32"), r"rank 2, got \(1, 2, 3\) .*Hint: a\[0\]"
    yield "matrix", np.zeros((2, 2, 3), "float32"), r"rank 2, got \(2, 2, 3\) .*Hint: reshape"
    yield "matrix", matrix()[:, ::2], r"C-contiguous, got .*strides \(4, 2\).*Hint: numpy.ascontiguousarray\(a\)"
    yield "fortran", matrix("float64"), r"Fortran-contiguous, got .*Hint: numpy.asfortranarray\(a\)"
    wider = r"numpy.broadcast_to\(a\[..., None\], \(4, 5, 3\)\)"
    yield "picture", np.zeros((4, 5), "uint8"), r"shape \(\*, \*, 3\), got \(4, 5\) .*Hint: " + wider
    yield "picture", np.zeros((4, 5, 4), "uint8"), r"shape \(\*, \*, 3\), got \(4, 5, 4\)"
    yield "plus", readonly, r"writable memory, got .*read-only\]. Hint: .*copy = numpy.array\(a\), which then has the"
    yield "plus", b"1234", r"dtype float32, got \(4,\) \[bytes, uint8"
    yield "plus", np.broadcast_to(np.float32(1), (3,)), r"writable memory"
    yield "plus", overlapping, r"distinct elements"
    yield "aligned64", np.zeros(64, "float32"), r"data aligned to 64 bytes, got .*copy=True"
    yield "floating", np.zeros(2, "float16"), r"dtype float32 or float64, got"
    to_gpu = r"dlbridge.asdlpack\(a, device='cuda'\)"
    yield "on_gpu", np.zeros((4, 5, 3), "float32"), r"device cuda .*cpu, writable\]. Hint: .*copy = " + to_gpu


REFUSALS = [pytest.param(*row, id=f"{row[0]}-{i}") for i, row in enumerate(_refusals())]


@pytest.mark.parametrize(("name", "source", "message"), REFUSALS)
def test_refusal_says_what_was_expected_and_got(ext, name, source, message):
    if name == "aligned64":  # whatever the allocator gave
        source = next(s for s in (source, source[1:], source[2:]) if address(s) % 64)
    before = sys.getrefcount(source)
    with pytest.raises(TypeError, match=rf"^{name}\(\): argument 'a': expected {message}"):
        getattr(ext, name)(source)
    with pytest.raises(TypeError, match=rf"^{name}\(\): argument 'a': expected {message}"):
        getattr(ext, name)(a=source)
    assert sys.getrefcount(source) == before


def test_hints_for_torch(ext):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    cases = [
        (
            "on_gpu",
            torch.zeros(480, 640),
            r"expected shape \(\*, \*, 3\), got \(480, 640\) \[torch.Tensor, float32, strides \(640, 1\), cpu, "
            r"writable\]. Hint: the function writes to a: pass copy = a\[..., None\].repeat\(1, 1, 3\), which then has",
        ),
        ("picture", torch.zeros(4, 5, dtype=torch.uint8), r"Hint: a\[..., None\].expand\(-1, -1, 3\)$"),
        ("on_gpu", torch.zeros(4, 6, 3), r"expected device cuda.*Hint: .*copy = a.cuda\(\), then a.copy_\(copy\)"),
        ("matrix", torch.zeros(3, 4, dtype=torch.float64), r"Hint: a.to\(torch.float32\)"),
        ("matrix", torch.zeros(3, 4).T, r"Hint: a.contiguous\(\)"),
        ("plus", torch.zeros(1).expand(3), r"Hint: .*copy = a.clone\(\), which then has the result"),
    ]
    for name, source, message in cases:
        with pytest.raises(TypeError, match=message):
            getattr(ext, name)(source)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (5, dlbridge.ProtocolError, "int has none of"),
        (None, dlbridge.ProtocolError, "NoneType has none of"),
        ([[1.0]], dlbridge.ProtocolError, "list has none of"),
        (np.zeros(3, ">f4"), BufferError, "byte order"),
        (np.zeros(3, "M8[s]"), BufferError, "datetime64"),
        (np.ma.masked_array(np.zeros(3, "float32"), mask=[0, 1, 0]), BufferError, "MaskedArray"),
        (Exporter((2, 2), major=2), BufferError, "2.0"),
        (Exporter((2, 2), struct_shape=(-1, 2)), ValueError, "negative"),
    ],
    ids=["int", "None", "list", "big-endian", "datetime", "masked", "DLPack 2", "negative extent"],
)
def test_what_the_reader_refuses_keeps_its_class(ext, source, error, message):
    for function in (ext.flat, ext.plain_matrix):
        with pytest.raises(error, match=message):
            function(source)
    if isinstance(source, Exporter):
        assert len(source.deleted) == source.made == 2


def test_errors_of_the_producer_come_through(ext):
    class Interrupted:
        def __dlpack_device__(self):
            return (CPU, 0)

        def __dlpack__(self, **_):
            raise KeyboardInterrupt

    for function in (ext.matrix, ext.plain_matrix, ext.which, ext.which_def, ext.strict):
        with pytest.raises(KeyboardInterrupt):
            function(Interrupted())


# --- calls ----------------------------------------------------------------------------------------------------------


def test_defaults_keywords_and_wrong_calls(ext):
    a = np.zeros(2, "float32")
    assert [ext.plus(a), ext.plus(a, 2), ext.plus(value=3, a=a), ext.plus_keyword(a, value=1)] == [1, 3, 6, 7]
    assert ext.plus_keyword(a) == 8
    calls = [
        lambda: ext.plus(),
        lambda: ext.plus(a, 1, 2),
        lambda: ext.plus(a, a=a),
        lambda: ext.plus(a, other=1),
        lambda: ext.plus(a, "x"),
        lambda: ext.plus_keyword(a, 1),
        lambda: ext.no_none(None),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call()
    assert a.tolist() == [8, 8]


def test_a_wrong_scalar_beside_a_capsule_is_what_the_error_is_about(ext):
    producer = Exporter((2,), dtype=FLOAT32)
    capsule = producer.capsule()
    with pytest.raises(TypeError, match="incompatible"):
        ext.plus(capsule, "x")
    assert ext.plus(capsule) == 1  # it was not consumed
    producer.assert_all_deleted_once()


def test_other_callables(ext):
    a = matrix()
    assert ext.capturing(a, 1) == a.sum() + 11
    assert ext.starred(a, 1, 2) == a.sum() + 2
    assert ext.noexcept_sum(a) == a.sum()
    assert ext.text("n=", a) == "n=12"
    assert [ext.optional(), ext.optional(None), ext.optional(a)] == [-1, -1, a.sum()]
    assert ext.list([a, a]) == 2 * a.sum()
    assert ext.cast(a) == a.sum()


def test_overloads(ext):
    for which in (ext.which, ext.which_def):
        assert which(np.zeros(2, "float32")) == "float32"
        assert which(np.zeros(2)) == "float64"
        assert which(5) == "int"
        with pytest.raises(TypeError, match=r"(?s)incompatible.*Tensor\[float32.*Tensor\[float64.*Invoked with"):
            which(np.zeros(2, "int8"))
    assert ext.strict(np.zeros(2, "float32")) == "float32"
    assert ext.strict(3) == "int"
    with pytest.raises(TypeError, match="incompatible"):
        ext.no_convert(np.zeros(2))
    assert ext.no_convert(matrix())


def test_overloads_do_not_use_up_capsules(ext):
    producer = Exporter((2,), dtype=FLOAT32)
    capsule = producer.capsule()
    assert ext.which(capsule) == "float32"
    producer.assert_all_deleted_once()


# --- conversion, where it is asked for --------------------------------------------------------------------------------


def test_conversion(ext):
    a = matrix()
    assert ext.convert(a) == (address(a), a.sum())  # nothing to do: nothing is copied
    others = [matrix(dtype) for dtype in ("float64", "int16", "float16", ">f4", ">f8", ">i2")]
    for other in (*others, a.T, a[::-1, ::2], memoryview(matrix("int8"))):
        pointer, total = ext.convert(other)
        assert total == np.asarray(other).sum()
        assert pointer not in (0, address(np.asarray(other)))
    assert ext.convert_fortran(matrix("float64"))[1] == a.sum()
    assert ext.convert_fortran(a.T)[1] == a.sum()
    with pytest.raises(TypeError, match="same_kind"):
        ext.convert(matrix("complex64"))
    with pytest.raises(TypeError, match=r"convert\(\): argument 'a': expected rank 2"):
        ext.convert(np.zeros(3))
    producer = Exporter((2, 3))
    capsule = producer.capsule()
    assert ext.convert(capsule)[1] == 15
    producer.assert_all_deleted_once()
    assert [ext.convert_or_int(matrix("float64")), ext.convert_or_int(4)] == [a.sum(), 4]
    with pytest.raises(TypeError, match="incompatible"):
        ext.convert_or_int("x")


def test_conversion_of_ml_dtypes(ext):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    a = matrix().astype(ml_dtypes.bfloat16)
    assert ext.convert(a)[1] == 66


def test_conversion_takes_read_only_arrays_but_never_for_writing(ext):
    assert "writable" in ext.plus.__doc__
    a = matrix("float64")
    a.flags.writeable = False
    assert ext.convert(a)[1] == a.sum()


def test_the_raw_struct_flags_count(ext):
    producer = Exporter((2,), dtype=FLOAT32, flags=READ_ONLY)
    with pytest.raises(TypeError, match="writable memory"):
        ext.plus(producer)
    producer.assert_all_deleted_once()


def test_module_keeps_no_reference_behind(ext):
    with nothing_lost():
        a = matrix()
        before = sys.getrefcount(a)
        for _ in range(50):
            ext.matrix(a), ext.plain_matrix(a), ext.any(a), ext.convert(a), ext.convert(matrix("int8"))
            with pytest.raises(TypeError):
                ext.fortran(a)
        gc.collect()
        assert sys.getrefcount(a) == before
    assert ctypes.sizeof(ctypes.c_void_p) == 8
