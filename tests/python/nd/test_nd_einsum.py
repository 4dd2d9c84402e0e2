"""What einsum() promises beside values, which the tables of functions and the differential compare with NumPy's."""

import numpy as np
import pytest
from dlbridge import nd

VIEWS = ("ij", "ij->ij", "ji", "ij->ji", "ii->i", "...", "...j->j...")


@pytest.mark.parametrize("subscripts", VIEWS)
def test_one_array_of_which_nothing_is_summed_gives_a_view_that_may_be_written_to(subscripts):
    host = np.arange(9.0).reshape(3, 3)
    x = nd.array(host)
    view, theirs = nd.einsum(subscripts, x), np.einsum(subscripts, host)
    assert view is not x and view.base is x and nd.shares_memory(view, x)
    view[...] = -1
    theirs[...] = -1
    np.testing.assert_array_equal(nd.asnumpy(x), host)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("subscripts", ["ij,ij->j", "ij,ij->i", "ijk,jk->j", "i...,i...->..."])
def test_sums_of_single_products_keep_the_dtype_and_are_numpys(subscripts, dtype):
    rng = np.random.default_rng(7)

    def filled(shape):
        return nd.asarray(rng.integers(0, 2, shape)).astype(dtype)

    left, right = subscripts.partition("->")[0].split(",")
    extents = {"i": 5, "j": 3, "k": 4, ".": 2}
    a, b = (filled(tuple(extents[c] for c in term.replace("...", "."))) for term in (left, right))
    as_floats = np.einsum(subscripts, *(nd.asnumpy(x.astype("complex64")) for x in (a, b)))
    result = nd.einsum(subscripts, a, b)
    assert result.dtype == a.dtype
    np.testing.assert_array_equal(
        nd.asnumpy(result.astype("complex64")), as_floats.astype(bool) if dtype == "bool" else as_floats
    )


def test_extents_of_one_meet_others_in_every_operand():
    a, b, c = np.ones((1, 3)), np.arange(12.0).reshape(4, 3), np.arange(8.0).reshape(4, 2)
    expected = (a.T * 0 + 1) * np.einsum("ij,ik->jk", b, c)
    np.testing.assert_allclose(nd.asnumpy(nd.einsum("ij,ij,ik->jk", *map(nd.array, (a, b, c)))), expected)


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8", "bool", "complex64"])
def test_any_letters_over_any_extents_give_numpys_sums(dtype):
    """Letters twice in a term, extents of 1 beside others, up to four arrays, any order on the right."""
    random = np.random.default_rng(1)
    for _ in range(200):
        terms = ["".join(random.choice(list("abcd"), random.integers(0, 4))) for _ in range(random.integers(1, 5))]
        extents = dict(zip("abcd", random.integers(1, 4, 4), strict=True))
        letters = random.permutation(sorted(set("".join(terms))))
        subscripts = f"{','.join(terms)}->{''.join(letters[: random.integers(0, len(letters) + 1)])}"
        shapes = [{c: 1 if random.random() < 0.15 else extents[c] for c in term} for term in terms]
        arrays = [
            random.integers(0, 4, [shape[c] for c in term]).astype(dtype)
            for term, shape in zip(terms, shapes, strict=True)
        ]
        want = np.einsum(subscripts, *arrays)
        got = nd.einsum(subscripts, *(nd.asarray(x, device="cpu") for x in arrays))
        assert (got.dtype, got.shape) == (str(want.dtype), want.shape), subscripts
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, err_msg=subscripts)
