"""planes(): video frames of PyAV as tensors."""

import gc

import dlbridge
import pytest
from dlbridge import planes

np = pytest.importorskip("numpy")
av = pytest.importorskip("av")

# format: (shape of each plane for an 8 x 6 frame, dtype)
FORMATS = {
    "yuv420p": ([(6, 8), (3, 4), (3, 4)], "uint8"),
    "yuv444p": ([(6, 8)] * 3, "uint8"),
    "nv12": ([(6, 8), (3, 4, 2)], "uint8"),
    "gray": ([(6, 8)], "uint8"),
    "rgb24": ([(6, 8, 3)], "uint8"),
    "bgra": ([(6, 8, 4)], "uint8"),
    "gbrp": ([(6, 8)] * 3, "uint8"),
    "yuv420p10le": ([(6, 8), (3, 4), (3, 4)], "uint16"),
    "p010le": ([(6, 8), (3, 4, 2)], "uint16"),
    "gray16le": ([(6, 8)], "uint16"),
    "rgb48le": ([(6, 8, 3)], "uint16"),
    "gbrpf32le": ([(6, 8)] * 3, "float32"),
}


def frame_of(name):
    frame = av.VideoFrame(8, 6, name)
    for plane in frame.planes:
        plane.update(bytes(i % 251 for i in range(plane.buffer_size)))
    return frame


@pytest.mark.parametrize("name", FORMATS)
def test_planes_are_views_of_the_frame(name):
    frame = frame_of(name)
    shapes, dtype = FORMATS[name]
    made = planes(frame)
    assert [tuple(t.shape) for t in made] == shapes
    for tensor, plane in zip(made, frame.planes, strict=True):
        assert tensor.dtype == dtype
        assert tensor.data_ptr == plane.buffer_ptr and tensor.strides[0] == plane.line_size
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        width = tensor.nbytes // plane.height
        np.testing.assert_array_equal(np.asarray(tensor).reshape(plane.height, -1).view(np.uint8), rows[:, :width])


@pytest.mark.parametrize("name", ["rgb24", "gray", "yuv444p"])
def test_values_are_those_of_pyav(name):
    frame = frame_of(name)
    theirs = frame.to_ndarray()
    ours = [np.asarray(t) for t in planes(frame)]
    np.testing.assert_array_equal(np.stack(ours) if len(ours) > 1 else ours[0], theirs)


@pytest.mark.parametrize("name", ["yuyv422", "monow", "rgb0", "rgb565le", "x2rgb10le"])
def test_pixels_that_are_no_elements_come_as_rows_of_bytes(name):
    frame = frame_of(name)
    (rows,) = planes(frame)
    assert rows.dtype == "uint8" and rows.shape == (6, frame.planes[0].line_size)


def test_a_palette_is_bytes():
    image, palette = planes(frame_of("pal8"))
    assert image.shape == (6, 8) and palette.shape == (1024,)


@pytest.mark.parametrize("name", ["gray16be", "yuv420p10be"])
def test_other_byte_order_is_refused_with_the_way_out(name):
    with pytest.raises(BufferError, match=rf"{name}, which is big-endian.*reformat\(format='{name[:-2]}le'\)"):
        planes(frame_of(name))


def test_the_memory_outlives_the_frame():
    luma = planes(frame_of("yuv420p"))[0]
    expected = np.asarray(luma).copy()
    junk = [frame_of("yuv420p") for _ in range(20)]
    gc.collect()
    np.testing.assert_array_equal(np.asarray(luma), expected)
    del junk


def test_nothing_leaks():
    frame = frame_of("nv12")
    planes(frame)
    before = dlbridge._core.live_counts()
    for _ in range(10):
        planes(frame)
    assert dlbridge._core.live_counts() == before


@pytest.mark.parametrize("x", [3, None, b"abc", object()])
def test_what_is_no_frame_is_a_type_error(x):
    with pytest.raises(TypeError, match=r"planes\(\): the object is \w+, not a VideoFrame"):
        planes(x)
