"""isin() of narrow integers, each of which is a place of its own in a table."""

import numpy as np
import pytest
from dlbridge import nd

FORMS = {
    "dense": lambda x: x,
    "transposed": lambda x: x.T,
    "strided": lambda x: x[:, ::2],
    "wider": lambda x: x.astype("int16"),
}


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_bytes_are_found_among_bytes(dtype, form, invert, device):
    rng, limits = np.random.default_rng(0), np.iinfo(dtype)
    x = FORMS[form](rng.integers(limits.min, limits.max, (90, 40), dtype=dtype, endpoint=True))
    few = rng.integers(limits.min, limits.min + 50, 900, dtype=dtype)
    for test in (few, few[::3], np.broadcast_to(few[:1], (900,)), few[:0]):
        got = nd.isin(nd.array(x, device=device), nd.array(test, device=device), invert=invert)
        np.testing.assert_array_equal(nd.asnumpy(got), np.isin(x, test, invert=invert))
