"""The CUDA side without a GPU: OpenCV's GpuMat, by a module in its place that takes and gives what OpenCV 5.0 does.

Each test_* runs in an interpreter of its own, started by tests/python/test_cuda_fake.py: `python FILE NAME`."""

import ctypes
import sys
import types

from dlbridge import CudaTensor, ExchangeError, convert
from fake_cuda import *
from lifecycle_support import CUDA, INT32, Exporter

lib.cuMemcpyDtoDAsync_v2.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]

CHANNELS = 128  # what a type of OpenCV 5 can say
DEPTHS = {"CV_8U": 0, "CV_8S": 1, "CV_16U": 2, "CV_16S": 3, "CV_32S": 4, "CV_32F": 5, "CV_64F": 6, "CV_16F": 7}
SIZES = (1, 1, 2, 2, 4, 4, 8, 2)


class GpuMat:
    """`owner`: the memory that it keeps; None: it is foreign."""

    def __init__(self, rows=0, cols=0, kind=0, address=0, step=0, owner=None):
        self.rows, self.cols, self.kind, self.address, self.step, self.owner = rows, cols, kind, address, step, owner

    def channels(self):
        return (self.kind >> 5) % CHANNELS + 1

    def clone(self):
        row = self.cols * self.channels() * SIZES[self.kind & 31]
        device = sys.modules["cv2"].devices[-1]
        owner, context = Memory(self.rows * row // 4, device), ctypes.c_void_p()
        assert lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == lib.cuCtxPushCurrent_v2(context) == 0
        for i in range(self.rows):
            assert lib.cuMemcpyDtoDAsync_v2(owner.address + i * row, self.address + i * self.step, row, 1) == 0
        lib.cuCtxPopCurrent_v2(ctypes.byref(context))
        return GpuMat(self.rows, self.cols, self.kind, owner.address, row, owner)

    def __dlpack__(self, stream=None, max_version=None, dl_device=None, copy=None):
        """Whatever the device is, it is the first, and nobody waits."""
        shape, strides = (self.rows, self.cols, self.channels()), (self.step // 4, self.channels(), 1)
        made = Exporter(shape, strides=strides, dtype=INT32, device=(CUDA, 0), data=self.address)
        made.keeps = self
        return made.__dlpack__()

    def __dlpack_device__(self):
        return CUDA, 0


class GpuMatND:
    strides = (12, 4)  # in bytes

    def __init__(self, address):
        self.address = address

    def __dlpack__(self, **arguments):
        made = Exporter((2, 3), strides=self.strides, dtype=INT32, device=(CUDA, 0), data=self.address)
        made.keeps = self
        return made.__dlpack__()

    def __dlpack_device__(self):
        return CUDA, 0


def opencv(device=0):
    cv2 = sys.modules["cv2"] = types.ModuleType("cv2")
    vars(cv2).update(DEPTHS, cuda_GpuMat=GpuMat, cuda_GpuMatND=GpuMatND)
    cv2.CV_MAKETYPE = lambda depth, channels: depth | (channels - 1) << 5
    cv2.devices = [device]
    GpuMat.__module__ = GpuMatND.__module__ = "cv2.cuda"
    cv2.cuda = types.SimpleNamespace(
        GpuMat=GpuMat,
        createGpuMatFromCudaMemory=GpuMat,
        getDevice=lambda: cv2.devices[-1],
        setDevice=cv2.devices.append,
    )
    return cv2


def test_a_gpumat_is_read_behind_the_legacy_default_stream():
    opencv()
    memory, consumer = Memory(), new_stream()
    memory.set(OLD)
    memory.fill(NEW, 1)
    tensor = asdlpack(GpuMat(2, 3, 4, memory.address, 12))
    assert type(tensor) is CudaTensor
    assert (tensor.shape, tensor.data_ptr, tensor.readonly) == ((2, 3, 1), memory.address, False)
    forget()
    tensor.__dlpack__(stream=consumer, max_version=NEWEST)
    nothing_blocks()
    assert read_on(consumer, memory.address, 6) == [NEW] * 6


def test_a_gpumat_of_another_gpu_is_not_said_to_be_on_the_first():
    opencv()
    memory = Memory(device=1)
    assert str(asdlpack(GpuMat(2, 3, 4, memory.address, 12)).device) == "cuda:1"


def test_the_strides_of_a_gpumatnd_in_bytes_are_refused():
    opencv()
    memory = Memory()
    matrix = GpuMatND(memory.address)
    refused(ExchangeError, "strides in bytes", lambda: asdlpack(matrix))
    matrix.strides = (3, 1)
    assert values(asdlpack(matrix), 6) == list(range(6))


def test_a_gpumat_has_memory_of_its_own():
    cv2, memory = opencv(), Memory(12)
    forget()
    for shape, rows, columns, channels in (((3, 4), 3, 4, 1), ((2, 3, 2), 2, 3, 2)):
        for to in ("opencv", "cv2", cv2):
            made = convert(CaiArray(memory, shape), to)
            assert type(made) is GpuMat and made.owner is not None
            assert (made.rows, made.cols, made.channels(), made.kind & 31) == (rows, columns, channels, 4)
            assert values(asdlpack(made), 12) == list(range(12))
    like = convert(CaiArray(memory, (3, 4)), like=made)
    assert type(like) is GpuMat
    refused(ExchangeError, "keeps no memory alive", lambda: convert(CaiArray(memory, (3, 4)), "opencv", copy=False))


def test_a_gpumat_is_made_of_ready_data_on_the_gpu_of_the_data():
    cv2, memory = opencv(device=1), Memory()
    forget()
    made = convert(slow_array(new_stream(), memory), "opencv")
    assert cv2.devices == [1, 0, 1]
    nothing_blocks()
    assert any(stream_name(1) in line for line in new_calls("stream_wait"))
    assert values(asdlpack(made), 6) == [NEW] * 6


def test_a_gpumat_is_made_of_padded_rows_and_of_any_other_view():
    opencv()
    memory = Memory(12)
    for strides, expected in (
        ((16, 4), [0, 1, 2, 4, 5, 6, 8, 9, 10]),  # three of four columns
        ((4, 16), None),  # transposed
        ((0, 4), [0, 1, 2] * 3),  # broadcast
    ):
        array = CaiArray(memory, (3, 3), strides=strides)
        expected = expected or [0, 4, 8, 1, 5, 9, 2, 6, 10]
        assert values(asdlpack(convert(array, "opencv")), 9) == expected, strides
    backwards = CaiArray(memory, (3, 3), strides=(-12, 4), data=(memory.address + 24, False))
    assert values(asdlpack(convert(backwards, "opencv")), 9) == [6, 7, 8, 3, 4, 5, 0, 1, 2]
    assert convert(CaiArray(None, (0, 3)), "opencv").rows == 0


def test_what_no_gpumat_says_is_refused():
    opencv()
    memory = Memory(2 * CHANNELS)
    convert(CaiArray(memory, (1, 2, CHANNELS)), "opencv")
    refused(ExchangeError, "no 256 channels", lambda: convert(CaiArray(memory, (1, 1, 2 * CHANNELS)), "opencv"))
    refused(ExchangeError, "expected rank 2 to 3", lambda: convert(CaiArray(memory, (256,)), "opencv"))
    refused(ExchangeError, "cast it", lambda: convert(CaiArray(memory, (16, 8), typestr="<i8"), "opencv"))


if __name__ == "__main__":
    main(globals())
