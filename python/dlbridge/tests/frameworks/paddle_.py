"""PaddlePaddle."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import BOOL, COMPLEX, FLOATS, SLICED, ArrayType, Framework, Look, spelled

_DTYPES = BOOL | FLOATS | COMPLEX | {"int8", "int16", "int32", "int64", "uint8"}
_FLOATS = "(paddle.bfloat16, paddle.float8_e4m3fn, paddle.float8_e5m2)"  # numpy() gives their bits as integers
_LOOK = Look(f"(x.astype('float32') if x.dtype in {_FLOATS} else x).numpy().ravel().tolist()", "x.data_ptr()")

FRAMEWORK = Framework(
    "paddle",
    "paddle",
    (
        ArrayType(
            "paddle",
            "paddle.to_tensor(numpy.array({values}, {dtype}).reshape({shape}), place={device}.replace('cuda', 'gpu'))",
            spelled("'{}'", _DTYPES),
            _LOOK,
            SLICED,
            devices=("cpu", "cuda"),
        ),
    ),
    convert="paddle",
    takes={"dlpack": "paddle.utils.dlpack.from_dlpack(source)"},
    look=_LOOK,
    imports=("numpy",),
    devices={"cuda": "paddle.device.is_compiled_with_cuda() and paddle.device.cuda.device_count()"},
    distribution="paddlepaddle",
)
