"""The reductions that leave NaN out, in one pass each: nd/_nan.py."""

from __future__ import annotations

import warnings

import numpy as np
from dlbridge import nd
from dlbridge.nd import _compiled, _nan
from support import host, launches_of, on_device, raises, rng

AXES = (None, 0, 1, 2, -1)


def numbers(dtype):
    x = rng.normal(size=(5, 7, 9)).astype(dtype)
    x[rng.random(x.shape) < 0.3] = np.nan
    x[1, 2, :3] = np.inf, -np.inf, np.nan
    x[:, 3, 4] = 2, np.nan, 2, 1, 1
    return x


def test_means_and_variances_in_one_pass_leave_nan_out():
    for dtype in ("float16", "float32", "float64"):
        x = numbers(dtype)
        x[~np.isfinite(x)] = np.nan
        x[2, 3] = np.nan  # a slice without a number
        for name in ("nanmean", "nanvar") if dtype != "float16" else ("nanmean",):  # its means are float32
            for axis in (*AXES, (0, 2)):
                for keepdims in (False, True):
                    options = {"axis": axis, "keepdims": keepdims} | ({} if name == "nanmean" else {"ddof": 1})
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        want = getattr(np, name)(x.astype("float64"), **options)
                    got = getattr(nd, name)(on_device(x), **options)
                    assert got.shape == np.shape(want) and got.dtype.name == dtype, (name, dtype, axis)
                    near = {"float16": 3e-3, "float32": 2e-5, "float64": 1e-12}[dtype]
                    np.testing.assert_allclose(host(got), want, rtol=near, atol=near, err_msg=f"{name} {axis}")
    _, names = launches_of(lambda: nd.nanvar(on_device(numbers("float64")), axis=1))
    assert names == ["nanmean_double", "nanvar_double"]


def test_an_infinity_is_a_number_and_its_distance_is_none():
    x = np.array([[1.0, np.inf, np.nan], [2.0, 3.0, np.nan]])
    assert host(nd.nanmean(on_device(x), axis=1)).tolist() == [np.inf, 2.5]
    got = host(nd.nanvar(on_device(x), axis=1))
    assert np.isnan(got[0]) and got[1] == 0.25


def test_positions_of_extremes_in_one_pass_leave_nan_out():
    for dtype in ("float16", "float32", "float64"):
        for x in (numbers(dtype), numbers(dtype)[::2, :, ::-2].T):
            for name in ("argmax", "argmin"):
                for axis in AXES:
                    number = np.isnan(x).all(axis=axis, keepdims=True)
                    filled = np.where(number, 0, x)
                    want = np.where(number, -1, getattr(np, f"nan{name}")(filled, axis=axis, keepdims=True))
                    inner = 1 if axis is None else int(np.prod(x.shape[axis % 3 + 1 :]))
                    got = _nan._in_one_pass(name, on_device(x), inner, axis=axis, keepdims=True)
                    np.testing.assert_array_equal(host(got), want, err_msg=f"{name} {axis}")
        with raises(ValueError, "all NaN"):
            nd.nanargmax(on_device(np.full((2, 2), np.nan, dtype)))
    assert int(host(nd.nanargmax(on_device(np.array([np.nan, -np.inf, np.nan, -np.inf]))))) == 1
    assert int(host(nd.nanargmin(on_device(np.array([np.nan, 3.0, np.nan, 3.0]))))) == 1
    _, names = launches_of(lambda: nd.nanargmin(on_device(numbers("float32"))))
    assert names == ["nanargmin_float"]
    assert not [name for name, kernel in _compiled._kernels.items() if kernel is None]
