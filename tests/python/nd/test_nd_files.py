"""Arrays in files: what NumPy wrote is read, what is written NumPy reads."""

import io

import dlbridge
import numpy as np
import pytest
from dlbridge import nd
from nd_support import check, put

X = np.arange(6.0).reshape(2, 3)


def test_an_array_is_written_and_read(tmp_path, device):
    nd.save(tmp_path / "x", put(X, device))
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), X)
    read = nd.load(tmp_path / "x.npy", device=device)
    check(read, X)
    assert read.device == put(X, device).device


def test_a_mapped_file_is_shared_on_the_host(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = nd.load(tmp_path / "x.npy", mmap_mode="r+")
    mapped[0, 0] = 7
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy")[0], [7, 1, 2])
    read_only = nd.load(tmp_path / "x.npy", mmap_mode="r")
    with pytest.raises(ValueError, match="read-only"):
        read_only[0, 0] = 1


@pytest.mark.parametrize("save", [nd.savez, nd.savez_compressed], ids=["savez", "savez_compressed"])
def test_several_arrays_are_written_and_read(tmp_path, device, save):
    save(tmp_path / "x.npz", put(X, device), weights=put(X[0], device))
    with nd.load(tmp_path / "x.npz", device=device) as file:
        assert sorted(file) == ["arr_0", "weights"] and len(file) == 2 and "weights" in file and "x" not in file
        check(file["arr_0"], X)
        check(file["weights"], X[0])
        with pytest.raises(KeyError):
            file["x"]


def test_nothing_is_unpickled_unasked(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        nd.load(tmp_path / "x.npy")


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_a_dump_is_read_where_that_is_allowed(tmp_path, dtype, device):
    x = put(X, device).astype(dtype)
    x.dump(tmp_path / "x")
    held = io.BytesIO()
    x.dump(held)
    assert held.getvalue() == x.dumps() == (tmp_path / "x").read_bytes()
    read = nd.load(tmp_path / "x", allow_pickle=True)
    assert read.dtype == dtype and read.device == x.device and read.tolist() == X.tolist()
    with pytest.raises(ValueError, match="allow_pickle"):
        nd.load(tmp_path / "x")


def test_long_headers_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match="header"):
        nd.load(tmp_path / "x.npy", max_header_size=8)


def test_text_is_written_and_read(device):
    text = io.StringIO()
    nd.savetxt(text, put(X, device), delimiter=",", fmt="%g")
    assert text.getvalue() == "0,1,2\n3,4,5\n"
    check(nd.loadtxt(io.StringIO(text.getvalue()), delimiter=",", device=device), X)
    check(nd.genfromtxt(io.StringIO("1,,3"), delimiter=",", device=device), np.array([1, np.nan, 3]))
    check(nd.fromstring("1 2 3", dtype="int32", sep=" ", device=device), np.array([1, 2, 3], "int32"))


def test_raw_numbers_are_read(tmp_path, device):
    (tmp_path / "x").write_bytes(X.tobytes())
    check(nd.fromfile(tmp_path / "x", dtype="float64", device=device), X.ravel())
    check(nd.fromfile(tmp_path / "x", dtype="float64", count=2, offset=8, device=device), X.ravel()[1:3])


def test_files_in_the_other_byte_order_are_turned_around(tmp_path, device):
    for order in "CF":
        theirs = np.asarray(np.arange(6.0).reshape(2, 3), np.dtype("float64").newbyteorder(), order=order)
        np.save(tmp_path / "x.npy", theirs)
        np.savez(tmp_path / "x.npz", x=theirs)
        for got in (nd.load(tmp_path / "x.npy", device=device), nd.load(tmp_path / "x.npz", device=device)["x"]):
            np.testing.assert_array_equal(nd.asnumpy(got), theirs)
    theirs.tofile(tmp_path / "x.bin")
    got = nd.fromfile(tmp_path / "x.bin", dtype=theirs.dtype, device=device)
    np.testing.assert_array_equal(nd.asnumpy(got), theirs.ravel())
    with pytest.raises(dlbridge.ExchangeError, match="byte order"):
        nd.load(tmp_path / "x.npy", mmap_mode="r", device="cpu")
