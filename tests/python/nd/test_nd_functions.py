"""Every function and method against NumPy's of the same name: expressions that both evaluate."""

import re

import composed_cases
import numpy as np
import pytest
from dlbridge import nd
from function_cases import EXPRESSIONS, FUNCTIONS
from method_cases import METHODS, STATEMENTS
from nd_support import both, check, inputs, on_device

ROWS = (FUNCTIONS | composed_cases.FUNCTIONS).items()
CALLS = [f"xp.{name}({arguments})" for name, rows in ROWS for arguments in rows]
EXPRESSIONS = EXPRESSIONS + composed_cases.EXPRESSIONS


@pytest.mark.parametrize("expression", CALLS + EXPRESSIONS)
def test_function_as_numpy(expression, device):
    both(expression, device)


@pytest.mark.parametrize("expression", METHODS)
def test_method_as_numpy(expression, device):
    both(expression, device)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statement_as_numpy(statement, device):
    theirs = {**inputs(), "np_eye": np.eye(4)}
    ours = on_device(theirs, device)
    theirs["r"] = theirs["r"][::-2, 1::2]
    with np.errstate(all="ignore"):
        exec(statement, {"xp": np, "np": np}, theirs)
        exec(statement, {"xp": nd, "np": np}, ours)
    for name, want in theirs.items():
        check(ours[name], want)


# Names whose tests are in the other files.
ELSEWHERE = """
AxisError CudaArray HostArray ndarray ufunc cuda fft linalg lib polynomial random dtype e euler_gamma inf nan newaxis pi
asnumpy empty
from_dlpack fromDlpack get_array_module finfo iinfo common_type min_scalar_type promote_types result_type astype
array_repr array_str array2string may_share_memory histogram_bin_edges RawKernel RawModule ElementwiseKernel
ReductionKernel fuse row_stack get_default_memory_pool get_default_pinned_memory_pool NpzFile flatiter poly1d fromfile
fromstring genfromtxt load loadtxt save savetxt savez savez_compressed __array_namespace_info__ byte_bounds
"""


def test_every_public_name_is_tested_here_or_is_a_ufunc():
    """A function that is added to the namespace needs a row above, or a test of its own that is named here."""
    tested = set(re.findall(r"xp\.(\w+)", " ".join(CALLS + EXPRESSIONS + METHODS + STATEMENTS)))
    missing = [
        name
        for name in nd.__all__
        if name not in ELSEWHERE.split()
        and not isinstance(getattr(nd, name), (nd.ufunc, nd.dtype))
        and name not in tested
    ]
    assert missing == []


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_division_of_many_integers_by_one(dtype):
    """On the host by a multiplication where the divisor is above 0."""
    limits = np.iinfo(dtype)
    near = [limits.min, limits.min + 1, limits.max - 1, limits.max, limits.max // 2, -8, -7, -1, 0, 1, 2, 6, 7, 8, 100]
    a = np.resize(np.array([x for x in near if limits.min <= x], dtype), (5, 67))
    for divisor in (1, 2, 3, 7, 10, 127, limits.max // 2, limits.max - 1, limits.max, limits.min or 1, -1, -7):
        if not limits.min <= divisor:
            continue
        d = np.array(divisor, dtype)
        for x in (a, a[:, ::3], a.T, a[0, :15]):
            with np.errstate(all="ignore"):
                for name in ("floor_divide", "remainder"):
                    got = getattr(nd, name)(nd.array(x, device="cpu"), nd.array(d, device="cpu"))
                    np.testing.assert_array_equal(np.asarray(got), getattr(np, name)(x, d), err_msg=f"{name} {d}")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_arctan2_of_every_pair_of_special_values(dtype):
    special = np.array(
        [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, np.finfo(dtype).tiny, -np.finfo(dtype).max, 3], dtype
    )
    y, x = (np.tile(part.ravel(), 3) for part in np.meshgrid(special, special))
    for step in (1, 2):
        got = nd.arctan2(nd.array(y, device="cpu")[::step], nd.array(x, device="cpu")[::step])
        want = np.arctan2(y, x)[::step]
        np.testing.assert_allclose(np.asarray(got), want, rtol=4 * np.finfo(dtype).eps)
        np.testing.assert_array_equal(np.signbit(np.asarray(got))[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_var_of_runs_and_columns_of_every_length(dtype):
    random = np.random.default_rng(5)
    eps = np.finfo(dtype).eps
    for n in (1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 511, 513, 1025, 3000):
        for offset in (0, 1000):
            a = (random.standard_normal((n, 19)) + offset).astype(dtype)
            x = nd.array(a, device="cpu")
            want = a.astype("f8").var(axis=0)
            for got in (x.var(axis=0), x.T.copy().var(axis=1), x[:, ::2].var(axis=0)):
                wanted = want if got.shape == want.shape else want[::2]
                np.testing.assert_allclose(np.asarray(got, "f8"), wanted, rtol=100 * eps, atol=1e-300)
    a = np.ones((200, 40), dtype)
    a[77, 3], a[5, 39] = np.inf, np.nan
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            np.isnan(np.asarray(nd.array(a, device="cpu").var(axis=0))), np.isnan(a.var(axis=0))
        )


def test_flags_are_one_object_for_all_arrays_that_have_the_same():
    a, b = nd.zeros((2, 3), device="cpu"), nd.ones((4,), device="cpu")
    assert a.flags is nd.zeros((5, 5), device="cpu").flags
    assert (a.flags.c_contiguous, a.flags.f_contiguous, a.flags.owndata, a.flags.writeable) == (True, False, True, True)
    assert (b[::2].flags.c_contiguous, b[::2].flags.owndata) == (False, False)
    assert not nd.broadcast_to(b, (3, 4)).flags.writeable


@pytest.mark.parametrize("increasing", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex64"])
def test_vander_multiplies_from_column_to_column(dtype, increasing):
    x = np.array([0, 1, 2, 3], dtype)
    for n in (None, 0, 1, 2, 7):
        got, want = nd.vander(nd.array(x, device="cpu"), n, increasing), np.vander(x, n, increasing)
        assert got.dtype == str(want.dtype)
        np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("trim", ["f", "b", "fb"])
def test_trim_zeros_of_what_begins_and_ends_anywhere(trim):
    for text in ("", "0", "000", "5", "0050", "500", "007", "0102030", "00000000000000000000001"):
        x = np.array([int(digit) for digit in text], "i4")
        np.testing.assert_array_equal(
            np.asarray(nd.trim_zeros(nd.array(x, device="cpu"), trim)), np.trim_zeros(x, trim)
        )


def test_spellings_of_a_dtype_are_remembered_as_what_they_are():
    texts = {"f4": "float32", "<f4": "float32", "?": "bool", "c8": "complex64"}
    types = {float: "float64", int: "int64", bool: "bool", np.float16: "float16", np.uint8: "uint8"}
    for _ in range(3):
        for spelling, name in (texts | types).items():
            assert nd.zeros(2, spelling, device="cpu").dtype == name
        for wrong in ("no dtype", ">f4", str, list, "S5", type("own", (), {})):
            with pytest.raises(TypeError):
                nd.zeros(2, wrong, device="cpu")
