"""Shifts by one count for all elements, and by one for each."""

import numpy as np
import pytest
from dlbridge import nd

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("size", [3, 64, 1000])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["left_shift", "right_shift"])
def test_a_count_for_all_shifts_as_one_for_each(name, dtype, size, device):
    limits = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(limits.min, limits.max, size, dtype=dtype, endpoint=True)
    x[:2] = limits.min, limits.max
    ours = nd.array(x, device=device)
    for count in (0, 1, 7, limits.bits - 1, limits.bits, 120, *([-1] if limits.min else [])):
        number = np.array(count, dtype)
        want = getattr(np, name)(x, number)
        got = getattr(nd, name)(ours, nd.array(number, device=device))
        each = getattr(nd, name)(ours, nd.array(np.full(size, number), device=device))
        np.testing.assert_array_equal(nd.asnumpy(got), want)
        np.testing.assert_array_equal(nd.asnumpy(each), want)
    ours <<= 1
    np.testing.assert_array_equal(nd.asnumpy(ours), x << np.array(1, dtype))
