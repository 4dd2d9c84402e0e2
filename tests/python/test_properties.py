"""Random arrays through every reader and every exporter, with NumPy as the oracle: values, address, strides, flags."""

import ctypes as ct

import pytest
from dlbridge import ExchangeError, _core, asdlpack
from dlbridge.tests.conformance._abi import FULL_RO, get_buffer, release_buffer

np = pytest.importorskip("numpy", reason="NumPy is the oracle")
pytest.importorskip("hypothesis", reason="hypothesis makes the arrays")
from hypothesis import HealthCheck, assume, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

settings.register_profile(
    "dlbridge",
    max_examples=100,
    deadline=None,  # the first example of a run imports and compiles
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # the leak check holds over all examples as well
)
settings.load_profile("dlbridge")

DTYPES = [r["name"] for r in _core.dtypes() if r["typestr"]]


@st.composite
def arrays(draw, dtypes=DTYPES, max_dims=5):
    """A view of random layout: offset, negative, stepped, transposed, broadcast, with inserted axes, perhaps empty."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    shape = draw(st.lists(st.integers(0, 5), max_size=max_dims))
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).integers(0, 2, count * dtype.itemsize + 64, np.uint8)
    array = raw[: count * dtype.itemsize].view(dtype).reshape(shape)
    for axis in range(array.ndim):
        start = draw(st.integers(0, max(array.shape[axis] - 1, 0)))
        step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
        array = array[(slice(None),) * axis + (slice(start, None) if step > 0 else slice(None, None, step),)]
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    if draw(st.booleans()):
        array = np.expand_dims(array, draw(st.integers(0, array.ndim)))
    if draw(st.integers(0, 4)) == 0:
        array = np.broadcast_to(array, (draw(st.integers(1, 3)), *array.shape))
    if draw(st.booleans()):
        array = array.view()
        array.flags.writeable = False
    return array


class Holder:
    """Offers one protocol of an object and nothing else."""

    def __init__(self, **offers):
        self.__dict__.update(offers)


READERS = {
    "numpy": lambda a: asdlpack(a),
    "buffer": lambda a: asdlpack(a, protocol="buffer"),
    "array_interface": lambda a: asdlpack(Holder(__array_interface__=a.__array_interface__, keep=a)),
    "array_struct": lambda a: asdlpack(Holder(__array_struct__=a.__array_struct__)),
    "dlpack": lambda a: asdlpack(a, protocol="dlpack"),
    "capsule": lambda a: asdlpack(a.__dlpack__(max_version=(1, 0))),
    "through a tensor": lambda a: asdlpack(asdlpack(a), protocol="dlpack"),
    "through its buffer": lambda a: asdlpack(asdlpack(a), protocol="buffer"),
    "through its struct": lambda a: asdlpack(asdlpack(a), protocol="array_interface"),
}

EXPORTERS = {
    "buffer": lambda t: np.asarray(memoryview(t)),
    "array_interface": lambda t: np.asarray(Holder(__array_interface__=t.__array_interface__, keep=t)),
    "array_struct": lambda t: np.asarray(Holder(__array_struct__=t.__array_struct__)),
    "dlpack": lambda t: np.from_dlpack(t),
    "__array__": lambda t: t.__array__(),
    "to_numpy": lambda t: _core.to_numpy(t),
}


def assert_same(array, source, writeable=None):
    assert (array.shape, array.dtype) == (source.shape, source.dtype)
    assert array.tobytes() == source.tobytes()  # bytes, so that NaN equals itself
    if source.size:  # of an empty array NumPy makes one of its own
        assert array.flags.writeable == (source.flags.writeable if writeable is None else writeable)
        assert array.ctypes.data == source.ctypes.data
        assert used_strides(array) == used_strides(source)


def used_strides(array):
    return [stride for stride, extent in zip(array.strides, array.shape, strict=True) if extent > 1]


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=40)
@given(source=arrays())
def test_every_reader_sees_what_numpy_sees(reader, source):
    """Layouts at random."""
    tensor = READERS[reader](source)
    assert (tensor.shape, tensor.size, tensor.ndim, tensor.nbytes) == (
        source.shape,
        source.size,
        source.ndim,
        source.nbytes,
    )
    assert tensor.dtype == source.dtype
    assert tensor.readonly == (not source.flags.writeable)
    assert tensor.data_ptr == (source.ctypes.data if source.size else 0)
    if source.size:
        assert used_strides(tensor) == used_strides(source)


@pytest.mark.parametrize("exporter", EXPORTERS)
@settings(max_examples=40)
@given(source=arrays())
def test_every_exporter_gives_back_what_came_in(exporter, source):
    if exporter == "array_interface" and not source.size:
        assume(np.lib.NumpyVersion(np.__version__) >= "2.3.0")  # before, NumPy takes no address of 0, which nothing has
    assert_same(EXPORTERS[exporter](asdlpack(source)), source)


@given(source=arrays())
def test_a_copy_is_dense_writable_and_equal(source):
    tensor = asdlpack(source, copy=True)
    array = np.asarray(tensor)
    assert array.tobytes() == source.tobytes()
    assert array.flags.c_contiguous and array.flags.writeable
    assert not np.shares_memory(array, source)


@given(source=arrays())
def test_the_legacy_capsule_is_for_writable_tensors(source):
    tensor = asdlpack(source)
    if source.flags.writeable:
        legacy = Holder(__dlpack__=lambda **_: tensor.__dlpack__(), __dlpack_device__=lambda: (1, 0))
        assert_same(np.from_dlpack(legacy), source, writeable=False)  # NumPy trusts no legacy capsule with writing
    else:
        with pytest.raises(ExchangeError, match="read-only"):
            tensor.__dlpack__()


@given(source=arrays(), flags=st.integers(0, 0x1FF))
def test_buffer_requests_are_answered_as_numpy_answers_them(source, flags):
    """Accepted or refused, and the fields that were asked for."""

    def ask(exporter):
        try:
            view = get_buffer(exporter, flags)
        except (BufferError, ValueError):
            return None
        fields = (view.itemsize, view.readonly, bool(view.format), bool(view.shape), bool(view.strides), view.len)
        release_buffer(view)
        return fields if source.ndim and flags & 0x8 else fields[:3]

    if source.size:  # NumPy and PEP 3118 differ about the contiguity of what holds nothing
        assert ask(asdlpack(source)) == ask(source)


@given(source=arrays(dtypes=["int8", "float32", "complex128"]), request=st.just(FULL_RO))
def test_the_buffer_describes_every_element(source, request):
    """Each element is read through shape and strides by hand."""
    tensor = asdlpack(source)
    view = get_buffer(tensor, request)
    shape, strides = view.shape[: view.ndim], view.strides[: view.ndim]
    seen = b"".join(
        ct.string_at(view.buf + sum(i * s for i, s in zip(index, strides, strict=True)), view.itemsize)
        for index in np.ndindex(*shape)
    )
    release_buffer(view)
    assert seen == source.tobytes()


@given(
    shape=st.lists(st.integers(-2, 2**62), max_size=4),
    strides=st.none() | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4),
    typestr=st.sampled_from(["|u1", "<f4", "<c16", "|b1", "<i8"]),
    offset=st.integers(-8, 128),
)
def test_an_interface_never_reaches_out_of_its_buffer(shape, strides, typestr, offset):
    """Whatever is accepted lies inside the bytes that were given."""
    data = bytearray(64)
    interface = {"shape": tuple(shape), "typestr": typestr, "data": data, "version": 3, "offset": offset}
    if strides is not None:
        interface["strides"] = tuple(strides)
    try:
        tensor = asdlpack(Holder(__array_interface__=interface))
    except (ValueError, BufferError, OverflowError):
        return
    if tensor.size == 0:
        return
    first = ct.addressof((ct.c_char * 64).from_buffer(data))
    reaches = [(n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True)]
    low = tensor.data_ptr + sum(r for r in reaches if r < 0)
    high = tensor.data_ptr + sum(r for r in reaches if r > 0) + tensor.itemsize
    assert first <= low and high <= first + 64


@given(text=st.text(max_size=6), itemsize=st.integers(-1, 17))
def test_formats_and_typestrs_are_parsed_or_refused(text, itemsize):
    """Never anything but a dtype or a clear error."""
    names = {row["name"] for row in _core.dtypes()}
    for parse in (lambda: _core.parse_format(text, itemsize), lambda: _core.parse_typestr(text)):
        try:
            assert parse() in names
        except (BufferError, ValueError) as error:
            assert "'" in str(error)  # it names what was got
