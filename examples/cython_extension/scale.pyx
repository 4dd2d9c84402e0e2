# cython: language_level=3
"""scale.scaled(a, by): the rows of any framework's array, multiplied; a new array of the same framework."""

from dlbridge cimport (DLDataType, DLManagedTensorVersioned, dlbridge_api, dlbridge_array, dlbridge_data, dlbridge_drop,
                       dlbridge_get, dlbridge_like, dlbridge_need, dlbridge_new, kDLFloat)
from libc.stdint cimport int64_t

dlbridge_api()  # so that it is the import that fails where dlbridge is missing


def scaled(given, double by):
    """scaled(a, by)"""
    cdef DLDataType float32 = DLDataType(code=kDLFloat, bits=32, lanes=1)
    cdef dlbridge_need need = dlbridge_need(dtype=float32, device_type=0, ndim=1, order=0, writable=0)
    cdef dlbridge_array a
    cdef DLManagedTensorVersioned* out
    cdef const float* source
    cdef float* target
    cdef int64_t i
    dlbridge_get(given, "scaled", "a", &need, &a)
    try:
        out = dlbridge_new(float32, 1, a.record.dl.shape)
        source, target = <const float*>dlbridge_data(&a), <float*>out.dl_tensor.data
        with nogil:
            for i in range(a.record.size):
                target[i] = <float>(by * source[i * a.record.dl.strides[0]])
    finally:
        dlbridge_drop(&a)
    return dlbridge_like(out, given)
