"""load(): what it maps and shares, what of a file it refuses, and that safetensors' own loader agrees."""

import gc
import json
import struct

import dlbridge
import pytest
from dlbridge import asdlpack, load
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

# (dtype of the format, dtype here, elements that take 24 bytes)
DTYPES = [
    ("BOOL", "bool", 24),
    ("U8", "uint8", 24),
    ("U16", "uint16", 12),
    ("U32", "uint32", 6),
    ("U64", "uint64", 3),
    ("I8", "int8", 24),
    ("I16", "int16", 12),
    ("I32", "int32", 6),
    ("I64", "int64", 3),
    ("F16", "float16", 12),
    ("F32", "float32", 6),
    ("F64", "float64", 3),
    ("BF16", "bfloat16", 12),
    ("C64", "complex64", 3),
    ("F8_E4M3", "float8_e4m3fn", 24),
    ("F8_E4M3FNUZ", "float8_e4m3fnuz", 24),
    ("F8_E5M2", "float8_e5m2", 24),
    ("F8_E5M2FNUZ", "float8_e5m2fnuz", 24),
    ("F8_E8M0", "float8_e8m0fnu", 24),
    ("F6_E2M3", "float6_e2m3fn", 32),
    ("F6_E3M2", "float6_e3m2fn", 32),
    ("F4", "float4_e2m1fn", 48),
]
ITEMSIZE = {"U8": 1, "I16": 2, "F32": 4, "F64": 8, "BOOL": 1}


def info(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def raw_file(header, data=b"", align=8):
    """A file's bytes; the header, an object or bytes, is filled up so that the data begins at a multiple of `align`."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % align)
    return struct.pack("<Q", len(text)) + text + data


@pytest.fixture
def write(tmp_path):
    def write(header, data=b"", align=8):
        path = tmp_path / "x.safetensors"
        path.write_bytes(raw_file(header, data, align))
        return path

    return write


@pytest.fixture
def two(write):
    """A file of two tensors, at multiples of 64."""
    data = np.arange(16, dtype=np.float32).tobytes() + np.arange(3, dtype=np.int64).tobytes()
    return write({"w": info("F32", [2, 8], 0, 64), "b": info("I64", [3], 64, 88)}, data, 64)


@pytest.mark.parametrize(("code", "dtype", "count"), DTYPES, ids=[row[0] for row in DTYPES])
def test_every_dtype_of_the_format_is_read(write, code, dtype, count):
    data = bytes(i % 2 for i in range(24))
    tensor = load(write({"x": info(code, [count], 0, 24)}, data))["x"]
    assert tensor.dtype == dtype and tensor.shape == (count,) and tensor.nbytes == 24
    assert bytes(dlbridge._core.reinterpret(tensor, dtype="uint8", shape=(24,), padded=False)) == data


def test_names_keep_the_order_of_the_header(write):
    path = write({"b": info("U8", [1], 1, 2), "a": info("U8", [1], 0, 1), "": info("U8", [], 2, 3)}, b"\1\2\3")
    assert [(name, np.asarray(x).tolist()) for name, x in load(path).items()] == [("b", [2]), ("a", [1]), ("", 3)]


@pytest.mark.parametrize("as_path", [str, lambda path: path], ids=["str", "Path"])
def test_tensors_share_one_read_only_mapping(two, as_path):
    tensors = load(as_path(two))
    assert list(tensors) == ["w", "b"] and type(tensors) is dict
    w, b = tensors.values()
    assert type(w) is dlbridge.HostTensor and w.readonly and b.readonly
    assert b.data_ptr - w.data_ptr == 64
    np.testing.assert_array_equal(np.asarray(w), np.arange(16, dtype=np.float32).reshape(2, 8))
    np.testing.assert_array_equal(np.asarray(b), [0, 1, 2])


def test_tensors_in_a_cycle_are_collected(two):
    """With a memoryview between tensor and mapping, CPython before 3.11.8 and 3.12.2 would crash here."""
    for _ in range(3):
        cycle = [load(two)]
        cycle.append(cycle)
        del cycle
        gc.collect()


def test_a_tensor_keeps_the_mapping_alive(two):
    b = load(two)["b"]
    two.unlink()
    assert np.asarray(b).tolist() == [0, 1, 2]


@pytest.mark.parametrize("to", ["numpy", "torch", "jax", "nd"])
def test_every_framework_shares_the_mapping(two, to):
    pytest.importorskip("dlbridge.nd" if to == "nd" else to)
    arrays = load(two, to=to)
    addresses = [asdlpack(x).data_ptr for x in arrays.values()]
    assert addresses[1] - addresses[0] == 64
    assert np.asarray(arrays["w"]).sum() == 120


def test_torch_writes_to_pages_of_its_own(two):
    torch = pytest.importorskip("torch")
    content = two.read_bytes()
    w = load(two, "torch")["w"]
    w += 1
    assert torch.equal(w, torch.arange(1, 17, dtype=torch.float32).reshape(2, 8))
    assert two.read_bytes() == content
    assert np.asarray(load(two)["w"])[0, 0] == 0


@pytest.mark.parametrize(("writable", "expected"), [(None, False), (False, False), (True, True)])
def test_writable_says_which_mapping(two, writable, expected):
    content = two.read_bytes()
    w = load(two, "numpy", writable=writable)["w"]
    assert w.flags.writeable is expected
    if expected:
        w[:] = 7
    assert two.read_bytes() == content


def test_torch_copies_from_a_read_only_mapping(two):
    pytest.importorskip("torch")
    arrays = load(two, "torch", writable=False)
    assert arrays["b"].data_ptr() - arrays["w"].data_ptr() != 64


def test_jax_copies_what_is_not_aligned_for_it(write):
    jax = pytest.importorskip("jax")
    path = write({"a": info("U8", [1], 0, 1), "b": info("F32", [1], 1, 5)}, b"\1" + struct.pack("<f", 2.5), 64)
    arrays = load(path, jax)
    assert arrays["a"].tolist() == [1] and arrays["b"].tolist() == [2.5]


def test_what_a_framework_cannot_take_is_named(write):
    path = write({"layer.x": info("F4", [2], 0, 1)}, b"\1")
    with pytest.raises(dlbridge.ExchangeError, match=r'^load\(\): x\.safetensors\["layer\.x"\]: '):
        load(path, "nd")


def test_an_unknown_framework_is_refused_before_the_file_is_read(tmp_path):
    with pytest.raises(ValueError, match="to='nothing' is neither a known consumer"):
        load(tmp_path / "none.safetensors", "nothing")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.safetensors")


@pytest.mark.gpu
@pytest.mark.parametrize("to", [None, "nd", "torch", "cupy"])
def test_tensors_go_to_a_device(two, to):
    if to in ("torch", "cupy"):
        module = pytest.importorskip(to)
        if to == "torch" and not module.cuda.is_available():
            pytest.skip("torch has no CUDA here")
    arrays = load(two, to, device="cuda:0")
    assert [asdlpack(x).device.type for x in arrays.values()] == ["cuda", "cuda"]
    back = dlbridge.convert(arrays, "numpy", device="cpu")
    np.testing.assert_array_equal(back["w"], np.arange(16, dtype=np.float32).reshape(2, 8))
    np.testing.assert_array_equal(back["b"], [0, 1, 2])


def device_framework(to):
    module = pytest.importorskip(to)
    if to == "torch" and not module.cuda.is_available():
        pytest.skip("torch has no CUDA here")
    if to == "jax" and not any(device.platform == "gpu" for device in module.devices()):
        pytest.skip("jax has no CUDA here")
    return module


def counted(write, sizes):
    """A file of float32 tensors "0", "1", ... of so many elements, which are their number, and the next at the end."""
    header, parts, at = {}, [], 0
    for i, size in enumerate(sizes):
        header[str(i)] = info("F32", [size], at, at + 4 * size)
        parts.append(np.full(size, i, np.float32))
        parts[-1][-1:] += 1
        at += 4 * size
    return write(header, b"".join(part.tobytes() for part in parts), 64), parts


# Side by side and not aligned, empty, small, and more than one copy takes: from 4 MiB on, and 18 MiB of less.
MANY = [16, 16, 3, 0, 1000, 1 << 20, 16, (1 << 20) + 7, (3 << 20) + 1, *[1 << 18] * 18, 5]


@pytest.mark.gpu
@pytest.mark.parametrize("to", ["nd", "torch", "cupy", "jax"])
def test_every_element_gets_to_a_device(write, to):
    device_framework("dlbridge.nd" if to == "nd" else to)
    path, parts = counted(write, MANY)
    arrays = load(path, to, device="cuda:0")
    back = dlbridge.convert(arrays, "numpy", device="cpu")
    for i, part in enumerate(parts):
        np.testing.assert_array_equal(back[str(i)], part)
        assert asdlpack(arrays[str(i)]).data_ptr % 64 == 0


@pytest.mark.gpu
def test_a_stream_of_the_consumer_waits_for_the_data(write):
    torch = device_framework("torch")
    path, parts = counted(write, MANY)
    stream = torch.cuda.Stream()
    for _ in range(10):
        with torch.cuda.stream(stream):
            arrays = load(path, torch, device="cuda:0")
            sums = [x.double().sum() for x in arrays.values()]
            stream.synchronize()  # before the arrays go
            assert [float(x) for x in sums] == [float(part.sum(dtype=np.float64)) for part in parts]


@pytest.mark.gpu
def test_jax_computes_with_tensors_that_share_memory(write):
    jax = device_framework("jax")
    path, parts = counted(write, [16, 16, 3, 16])
    arrays = load(path, "jax", device="cuda:0")
    twice = jax.jit(lambda x: x * 2)
    assert [np.asarray(twice(x)).tolist() for x in arrays.values()] == [(part * 2).tolist() for part in parts]


ONE = info("U8", [1], 0, 1)
ONE_TEXT = json.dumps(ONE).encode()
GOOD = {
    "no tensors": (raw_file({}), {}),
    "metadata alone": (raw_file({"__metadata__": {"a": "b"}}), {}),
    "no metadata": (raw_file(b'{"__metadata__":null}'), {}),
    "spaces behind": (raw_file(b"{}  "), {}),
    "fields that nobody knows": (raw_file({"x": {**ONE, "y": [1]}}, b"a"), {"x": (1,)}),
    "no axes": (raw_file({"x": info("F32", [], 0, 4)}, bytes(4)), {"x": ()}),
    "no elements": (raw_file({"x": info("U8", [0, 5], 0, 0), "y": ONE, "z": info("F32", [0], 1, 1)}, b"a"),
                    {"x": (0, 5), "y": (1,), "z": (0,)}),
    "not aligned": (raw_file({"x": ONE, "y": info("F64", [1], 1, 9)}, bytes(9)), {"x": (1,), "y": (1,)}),
}  # fmt: skip
BAD = {
    "nothing": (b"", "it has 0 bytes, and the length of the header alone takes 8"),
    "seven bytes": (bytes(7), "it has 7 bytes"),
    "no header": (bytes(8), "does not begin with '{'"),
    "longer than the file": (struct.pack("<Q", 3) + b"{}", "say that the header has 3 bytes; the file has 10"),
    "longer than anything": (b"\xff" * 16, "the header has 18446744073709551615 bytes"),
    "space before": (raw_file(b" {}"), "does not begin with '{'"),
    "byte order mark": (raw_file(b"\xef\xbb\xbf{}"), "does not begin with '{'"),
    "a list": (raw_file(b"[]"), "does not begin with '{'"),
    "not UTF-8": (raw_file(b'{"\xff":1}'), "is not JSON in UTF-8"),
    "not JSON": (raw_file(b"{'x':1}"), "is not JSON in UTF-8"),
    "zeros behind": (raw_file(b"{}\0"), "is not JSON in UTF-8"),
    "NaN": (raw_file(b'{"x":NaN}'), "has NaN, which is not JSON"),
    "thousands of digits": (raw_file(b'{"x":' + b"1" * 5000 + b"}"), "is not JSON in UTF-8"),
    "nested too deep": (raw_file(b'{"x":' + b"[" * 200_000), "is not JSON in UTF-8"),
    "a name twice": (raw_file(b'{"x":' + ONE_TEXT + b',"x":' + ONE_TEXT + b"}", b"a"), "the name 'x' twice"),
    "a field twice": (raw_file(b'{"x":{"dtype":"U8",' + ONE_TEXT[1:] + b"}", b"a"), "the name 'dtype' twice"),
    "a name that is no text": (raw_file(b'{"\\ud800":' + ONE_TEXT + b"}", b"a"), "is not Unicode text"),
    "metadata of numbers": (raw_file({"__metadata__": {"a": 1}}), "__metadata__ is not an object of strings"),
    "metadata twice": (raw_file(b'{"__metadata__":{"a":"b","a":"c"}}'), "the name 'a' twice"),
    "no object": (raw_file({"x": ["U8", [1], [0, 1]]}, b"a"), "'x' is not an object with 'dtype'"),
    "no shape": (raw_file({"x": {"dtype": "U8", "data_offsets": [0, 1]}}, b"a"), "'x' is not an object with 'dtype'"),
    "unknown dtype": (raw_file({"x": info("C128", [1], 0, 16)}, bytes(16)), "has dtype 'C128'; the format has BOOL"),
    "dtype that is no string": (raw_file({"x": info([], [1], 0, 1)}, b"a"), r"has dtype \[\]"),
    "negative extent": (raw_file({"x": info("U8", [-1, -1], 0, 1)}, b"a"), "not a list of counts"),
    "extent of true": (raw_file({"x": info("U8", [True], 0, 1)}, b"a"), "not a list of counts"),
    "extent of 1.0": (raw_file({"x": info("U8", [1.0], 0, 1)}, b"a"), "not a list of counts"),
    "one extent": (raw_file({"x": info("U8", 1, 0, 1)}, b"a"), "not a list of counts"),
    "extent of 2**63": (raw_file({"x": info("U8", [0, 2**63], 0, 0)}), "not a list of counts"),
    "an impossible shape": (raw_file({"x": info("F32", [0, 2**62], 0, 0)}), "does not fit in 63 bits"),
    "65 axes": (raw_file({"x": info("U8", [1] * 65, 0, 1)}, b"a"), "at most 64 dimensions"),
    "three offsets": (raw_file({"x": {**ONE, "data_offsets": [0, 1, 1]}}, b"a"), r"not \[begin, end\]"),
    "offsets backwards": (raw_file({"x": info("U8", [1], 1, 0)}, b"a"), "takes 8 bits"),
    "offsets below 0": (raw_file({"x": info("U8", [1], -1, 0)}, b"a"), r"not \[begin, end\]"),
    "less than the shape": (raw_file({"x": info("F32", [2], 0, 4)}, bytes(4)), "takes 64 bits"),
    "half a byte": (raw_file({"x": info("F4", [3], 0, 2)}, bytes(2)), "takes 12 bits"),
    "a hole in front": (raw_file({"x": info("U8", [1], 1, 2)}, b"ab"), "at byte 1 and leaves a hole behind"),
    "a hole between": (raw_file({"x": ONE, "y": info("U8", [1], 2, 3)}, b"abc"), "leaves a hole behind"),
    "an overlap": (raw_file({"x": info("U8", [2], 0, 2), "y": info("U8", [2], 1, 3)}, b"abc"), "overlaps"),
    "the same bytes": (raw_file({"x": ONE, "y": ONE}, b"a"), "overlaps"),
    "a tail": (raw_file({"x": ONE}, b"ab"), "take 1 bytes and its data has 2"),
    "cut off": (raw_file({"x": info("U8", [4], 0, 4)}, b"abc"), "take 4 bytes and its data has 3"),
    "bool of 2": (raw_file({"x": info("BOOL", [2], 0, 2)}, b"\1\2"), "holds bytes other than 0 and 1"),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_the_format_allows_is_read(tmp_path, name):
    content, shapes = GOOD[name]
    path = tmp_path / "x"
    path.write_bytes(content)
    assert {name: tensor.shape for name, tensor in load(path).items()} == shapes


@pytest.mark.parametrize("name", BAD)
def test_what_the_format_forbids_is_refused(tmp_path, name):
    content, message = BAD[name]
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(dlbridge.DataError, match=message) as error:
        load(path)
    assert str(error.value).startswith("load(): 'x.safetensors' breaks the safetensors format: ")
    assert str(error.value).endswith(". Fetch it, or save it, again")


# What the format's text forbids or dlbridge cannot hold, and safetensors' own loader takes.
STRICTER = {"space before", "a name twice", "metadata twice", "no object", "an impossible shape", "extent of 2**63",
            "65 axes", "bool of 2"}  # fmt: skip


@pytest.mark.parametrize("name", [*GOOD, *BAD])
def test_safetensors_itself_agrees(name):
    safetensors = pytest.importorskip("safetensors")
    content, _ = (GOOD | BAD)[name]
    try:
        safetensors.deserialize(content)
        taken = True
    except Exception:
        taken = False
    assert taken is (name in GOOD or name in STRICTER)


def test_files_that_safetensors_writes(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    rng = np.random.default_rng(0)
    arrays = {f"{dtype}.{i}": rng.integers(0, 2, shape).astype(dtype)
              for dtype in ("bool", "uint8", "int16", "float16", "float32", "float64", "complex64")
              for i, shape in enumerate([(), (0,), (3,), (2, 3, 5)])}  # fmt: skip
    library.save_file(arrays, tmp_path / "x", {"format": "np"})
    loaded = load(tmp_path / "x", "numpy")
    assert loaded.keys() == arrays.keys()
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name], array)


VALID = raw_file({"__metadata__": {"a": "b"}, "x": info("F32", [2, 1], 0, 8), "y": info("BOOL", [3], 8, 11)}, bytes(11))
EDITS = st.lists(
    st.tuples(st.integers(0, len(VALID) - 1), st.integers(0, 2), st.binary(min_size=0, max_size=4)), max_size=6
)


def loads_or_refuses(path, content):
    path.write_bytes(content)
    try:
        tensors = load(path)
    except dlbridge.DataError:
        return
    for tensor in tensors.values():
        bytes(np.asarray(dlbridge._core.reinterpret(tensor, dtype="uint8", shape=(tensor.nbytes,), padded=False)))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS)
@example(edits=[])
def test_no_change_of_a_file_s_bytes_does_more_than_raise(tmp_path, edits):
    content = bytearray(VALID)
    for place, removed, added in edits:
        content[place : place + removed] = added
    loads_or_refuses(tmp_path / "x", bytes(content))


FIELDS = st.one_of(st.none(), st.booleans(), st.integers(-2, 2**65), st.floats(), st.text(max_size=3),
                   st.sampled_from(["F32", "U8", "BOOL", "F4", [0, 4], [0, 1], [1], [0], [4, 8]]),
                   st.lists(st.integers(-1, 9), max_size=3))  # fmt: skip
INFOS = st.fixed_dictionaries({}, optional={"dtype": FIELDS, "shape": FIELDS, "data_offsets": FIELDS, "z": FIELDS})


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(header=st.dictionaries(st.sampled_from(["a", "b", "__metadata__"]), INFOS | FIELDS), size=st.integers(0, 12))
def test_no_header_does_more_than_raise(tmp_path, header, size):
    loads_or_refuses(tmp_path / "x", raw_file(header, bytes(size)))
