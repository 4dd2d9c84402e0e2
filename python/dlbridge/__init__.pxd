# dlbridge.h for Cython: `from dlbridge cimport dlbridge_get, …`. The header says what each function does. Build with
# -I and dlbridge.get_include().
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t, uintptr_t


cdef extern from "dlbridge.h" nogil:
    ctypedef enum DLDataTypeCode:
        kDLInt
        kDLUInt
        kDLFloat
        kDLBfloat
        kDLComplex
        kDLBool

    ctypedef enum DLDeviceType:
        kDLCPU
        kDLCUDA
        kDLCUDAHost
        kDLCUDAManaged

    ctypedef struct DLDataType:
        uint8_t code
        uint8_t bits
        uint16_t lanes

    ctypedef struct DLDevice:
        DLDeviceType device_type
        int32_t device_id

    ctypedef struct DLTensor:
        void* data
        DLDevice device
        int32_t ndim
        DLDataType dtype
        int64_t* shape
        int64_t* strides
        uint64_t byte_offset

    ctypedef struct DLManagedTensorVersioned:
        DLTensor dl_tensor

    ctypedef struct dlbridge_record:
        DLTensor dl
        uint64_t flags
        int64_t size
        uintptr_t ready_handle
        uint8_t ready_kind

    ctypedef struct dlbridge_array:
        dlbridge_record record

    ctypedef struct dlbridge_need:
        DLDataType dtype
        int32_t device_type
        int32_t ndim
        char order
        uint8_t writable

    void* dlbridge_data(const dlbridge_array* array)


cdef extern from "dlbridge.h":
    int dlbridge_get(object given, const char* function, const char* argument, const dlbridge_need* need,
                     dlbridge_array* out) except -1
    void dlbridge_drop(dlbridge_array* array)
    DLManagedTensorVersioned* dlbridge_new(DLDataType dtype, int32_t ndim, const int64_t* shape) except NULL
    object dlbridge_like(DLManagedTensorVersioned* managed, object example)
    object dlbridge_as(DLManagedTensorVersioned* managed, const char* framework)
    const void* dlbridge_api() except NULL
