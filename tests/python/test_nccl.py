"""What nccl4py itself reads of the tensors that `source` and `buf` give, where it is installed. It reads memory of the
host, too, which stands for a device's here: calls need a GPU, and are in test_nccl_gpu.py."""

import pytest
from dlbridge import _core, asdlpack, nccl, nd

buffer = pytest.importorskip("nccl.core.buffer", reason="nccl4py reads the tensors", exc_type=ImportError)
PARTS = {"bool": "uint8", "complex64": "float32", "complex128": "float64"}


@pytest.mark.parametrize("dtype", [*sorted(nccl._KNOWN), "bool", "complex64", "complex128"])
def test_nccl4py_reads_pointer_count_and_type(dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="nccl4py names bfloat16 by it")
    x = asdlpack(nd.ones((2, 3), dtype, device="cpu"))
    read = buffer.NcclBuffer(nccl._as_nccl_has_it(x))
    count = 12 if dtype.startswith("complex") else 6
    assert (read.ptr, read.count, read.dtype.name.lower()) == (x.data_ptr, count, PARTS.get(dtype, dtype))


def test_float8_is_refused_for_nccl4py_does_not_read_it():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="it has the dtype")
    numpy = pytest.importorskip("numpy", reason="it makes the array")
    x = asdlpack(numpy.zeros(3, ml_dtypes.float8_e5m2))
    assert isinstance(x, _core.HostTensor) and "float8_e5m2" not in nccl._KNOWN
    with pytest.raises(TypeError, match="dtype"):
        buffer.NcclBuffer(x)
