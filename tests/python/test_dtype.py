"""DType beside NumPy's dtypes: spellings, equality, hashes, and that a tensor's dtype disturbs no framework."""

import ctypes

import pytest
import stable_ids
from child_process import run_python
from dlbridge import DType, Tensor, asdlpack

np = pytest.importorskip("numpy", reason="NumPy has the dtypes")

NAMES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
OTHERS = [
    *("float", "complex", "int", "intc", "intp", "long", "longlong", "short", "byte", "uint", "ulonglong", "half"),
    *("single", "double", "csingle", "cdouble", b"f4", "p", "n", "?"),
    *(int, float, complex, bool, np.intc, np.longlong, np.half, ctypes.c_float, ctypes.c_int64, ctypes.c_bool),
    type("Typed", (), {"dtype": np.dtype("f4")})(),
]
SPELLINGS = [
    *(spelling for name in NAMES for spelling in (name, np.dtype(name), np.dtype(name).type)),
    *(mark + np.dtype(name).str[1:] for name in NAMES for mark in ("", "<", "=", "|")),
    *(np.dtype(name).char for name in NAMES),
    *OTHERS,
]
NONE_OF_OURS = [
    *("other", ">f4", "U1", "M8[s]", "g", "f3", "", b"no", "f4,i4", "(2,)f4", "O", "V4"),
    *(5, object(), (2, 32, 1), object, str, list, np.dtype(">f4"), np.dtype("f4,i4"), np.dtype(("f4", 2))),
    *(np.longdouble, type("f4", (), {})),
]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=stable_ids.of)
def test_every_spelling_of_numpy_names_the_dtype(spelling):
    want = np.dtype(spelling)
    dtype = DType(spelling)
    assert type(dtype) is DType and dtype.name == want.name and dtype is DType(want.name)
    assert (dtype == spelling) == (want == spelling) == (spelling == dtype)
    for name in NAMES:
        assert (DType(name) == spelling) == (np.dtype(name) == spelling), name


@pytest.mark.parametrize("spelling", NONE_OF_OURS, ids=stable_ids.of)
def test_what_names_no_dtype_is_refused_and_unequal(spelling):
    with pytest.raises(TypeError, match=r"DType\(\)"):
        DType(spelling)
    assert not any(DType(name) == spelling for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_equal_dtypes_have_equal_hashes(name):
    dtype, theirs = DType(name), np.dtype(name)
    assert dtype == theirs and theirs == dtype and hash(dtype) == hash(theirs)
    assert {dtype: 1}[theirs] == {theirs: 1}[dtype] == 1
    assert (dtype.kind, dtype.char, dtype.str, dtype.type) == (theirs.kind, theirs.char, theirs.str, theirs.type)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_dtypes_of_ml_dtypes(name):
    theirs = getattr(pytest.importorskip("ml_dtypes", reason="it has the dtypes"), name)
    dtype = DType(name)
    assert DType(theirs) is DType(np.dtype(theirs)) is dtype and dtype == theirs and np.dtype(theirs) == dtype
    assert hash(dtype) == hash(np.dtype(theirs)) and dtype.kind == "f" and np.empty(2, dtype).dtype == theirs


def test_none_is_the_default_dtype_and_equals_none():
    assert DType(None) is DType() is DType("float64") and DType("float64") != None  # noqa: E711


@pytest.mark.parametrize("name", NAMES)
def test_descr_is_that_of_array_interfaces(name):
    assert DType(name).descr == np.dtype(name).descr


def test_dtypes_of_torch():
    torch = pytest.importorskip("torch", reason="torch has the dtypes")
    assert DType(torch.float32) is DType("f4") and DType(torch.bfloat16) == "bfloat16" == DType(torch.bfloat16)
    assert DType("f8") != torch.float32


def test_numpy_takes_the_dtype_of_a_tensor():
    t = asdlpack(np.zeros(2, "f4"))
    assert np.empty(2, t.dtype).dtype == np.float32 and np.result_type(t.dtype, np.int64) == np.float64
    assert np.result_type(t, np.float64) == np.float64 and np.issubdtype(t.dtype, np.floating)
    assert type(t.dtype(1.5)) is np.float32 and t.dtype(1.5) == 1.5


def test_hash_without_numpy():
    """The name's; and comparing does not load it."""
    code = (
        "import sys\n"
        "sys.modules['numpy'] = None\n"
        "from dlbridge import DType\n"
        "assert hash(DType('f4')) == hash('float32') and DType('f4') == 'single' and DType('f4') != object()\n"
        "assert DType(float) == 'f8' and DType('f4') != list\n"
    )
    run_python(code)


@pytest.mark.parametrize("first", ["", "import dlbridge.nd\n"], ids=["dlbridge", "dlbridge.nd"])
def test_jax_takes_tensors_and_arrays(first):
    """In a process of its own: no import may change what the dtype of a tensor looks like."""
    pytest.importorskip("jax", reason="jax takes the tensors")
    code = (
        "import numpy as np, jax.numpy as jnp, dlbridge\n" + first + "t = dlbridge.asdlpack(np.arange(3, dtype='f4'))\n"
        "import sys\n"
        "for x in (t, *([dlbridge.nd.asarray(t)] if 'dlbridge.nd' in sys.modules else [])):\n"
        "    y = jnp.asarray(x)\n"
        "    assert y.dtype == np.float32 and y.tolist() == [0, 1, 2] and jnp.zeros(2, x.dtype).dtype == np.float32\n"
    )
    run_python(code)


def test_every_tensor_says_its_numpy_dtype():
    assert asdlpack(np.zeros(1, "c8")).__numpy_dtype__ == np.dtype("c8") and isinstance(Tensor.__numpy_dtype__, object)
