"""OpenCV, whose arrays are NumPy's: here it only takes arrays."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import Framework, Look

FRAMEWORK = Framework(
    "opencv",
    "cv2",
    convert="opencv",
    look=Look("x.ravel().tolist()", "x.ctypes.data", "x.__setitem__((0,) * x.ndim, value)", "not x.flags.writeable"),
    distribution="opencv-python",
    only_devices=("cpu",),
)
