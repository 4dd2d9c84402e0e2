/* Arrays as arguments and results of functions in C: for plain CPython, Cython, Rust and whatever else calls C. C99 and
   C++; nothing is linked. The installed package dlbridge does the reading, through a table of functions
   (dlbridge/c_api.h says more of each).

   Every function is called with the GIL held. One that fails returns -1 or NULL with a Python exception set. */
#ifndef DLBRIDGE_H
#define DLBRIDGE_H

#include <Python.h>
#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DLBRIDGE_C_MAJOR 1
#define DLBRIDGE_C_MINOR 3

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  DLTensor dl; /* shape and strides are never null, strides count elements; add byte_offset to data */
  uint64_t flags;
  int64_t size; /* number of elements */
  uintptr_t ready_handle;
  uint8_t ready_kind; /* 0: the data is ready */
  uint8_t protocol;
  PyObject* holder; /* a reference, which keeps the memory */
} dlbridge_record;

typedef struct {
  dlbridge_record record;
  int64_t dims[16]; /* where the record's extents and strides may be: an array stays where it was filled */
} dlbridge_array;

/* What an argument has to be. {.dtype = {kDLFloat, 32, 1}, .ndim = 2, .order = 'C'}: */
typedef struct {
  DLDataType dtype;    /* bits 0: any */
  int32_t device_type; /* 0: the CPU's memory, pinned or not; kDLCUDA: then wait, table->order, before it is used */
  int32_t ndim;        /* -1: any */
  char order;          /* 'C', 'F'; 0: any strides */
  uint8_t writable;
} dlbridge_need;

typedef struct {
  DLDataType dtype;
  int32_t device_type;
  char order;
} dlbridge_wanted;

/* The same as functions in C++ say it: dlbridge/c_api.h. */
typedef struct {
  const DLDataType* dtypes;
  int32_t dtype_count;
  uint32_t devices;
  const int64_t* extents;
  int32_t min_rank, max_rank;
  uint32_t alignment;
  uint8_t strides, writable, distinct, element_aligned, shape_first;
} dlbridge_rules;

typedef struct {
  DLTensor dl;
  uint64_t flags;
  uintptr_t ready_handle;
  uint8_t ready_kind;
  void* context;
  void (*release)(void* context);
} dlbridge_made;

typedef struct {
  uint32_t size, major, minor, reserved;
  int (*read)(PyObject* object, dlbridge_record* out, int64_t* dims, int32_t capacity);
  PyObject* (*adapt)(PyObject* object, const dlbridge_wanted* wanted);
  PyObject* (*wrap)(DLManagedTensorVersioned* managed, uint8_t ready_kind, uintptr_t ready_handle);
  PyObject* (*convert)(PyObject* tensor, const char* name);
  void (*release)(PyObject* object);
  int (*parse_stream)(PyObject* argument, intptr_t* out);
  int (*order)(DLDevice device, uint8_t ready_kind, uintptr_t ready_handle, uintptr_t stream, char* message,
               size_t capacity);
  uintptr_t (*current_stream)(int32_t device_id);
  void (*raise)(uint8_t code, const char* message);
  void (*type_name)(PyObject* object, char* out, size_t capacity);
  PyObject* (*convert_like)(PyObject* tensor, PyObject* example);
  int (*read_argument)(PyObject* object, const dlbridge_need* need, const char* function, const char* argument,
                       dlbridge_record* out, int64_t* dims, int32_t capacity);
  int (*examine)(PyObject* object, const dlbridge_record* record, const dlbridge_rules* rules, const char* argument,
                 PyObject** why, int32_t* distance);
  PyObject* (*result_like)(const dlbridge_made* made, PyObject* example);
} dlbridge_table;

/* The table of the installed package, imported by the first call; NULL with ImportError. Also good in a module's init
   function, so that it fails there. */
static inline const dlbridge_table* dlbridge_api(void) {
  static const dlbridge_table* known = NULL;
  const dlbridge_table* table;
  if (known != NULL) return known;
  table = (const dlbridge_table*)PyCapsule_Import("dlbridge._core._c_api", 0);
  if (table == NULL) return NULL;
  if (table->major != DLBRIDGE_C_MAJOR || table->size < sizeof(dlbridge_table)) {
    PyErr_Format(PyExc_ImportError,
                 "this extension module was compiled for version %d.%d of dlbridge's C ABI, and the installed dlbridge "
                 "has %u.%u. Build the module again, or install a matching dlbridge",
                 DLBRIDGE_C_MAJOR, DLBRIDGE_C_MINOR, (unsigned)table->major, (unsigned)table->minor);
    return NULL;
  }
  known = table;
  return known;
}

/* Reads any framework's array, without a copy. Errors begin with "function(): argument 'argument': ". After 0 it is to
   be dropped; after -1 not. A capsule counts as read even where it does not fit. */
static inline int dlbridge_get(PyObject* object, const char* function, const char* argument, const dlbridge_need* need,
                               dlbridge_array* out) {
  const dlbridge_table* table = dlbridge_api();
  out->record.holder = NULL;
  if (table == NULL) return -1;
  return table->read_argument(object, need, function, argument, &out->record, out->dims, 8);
}
static inline void dlbridge_drop(dlbridge_array* array) { Py_CLEAR(array->record.holder); }
static inline void* dlbridge_data(const dlbridge_array* array) {
  return (char*)array->record.dl.data + array->record.dl.byte_offset;
}

static inline void dlbridge_free_new(DLManagedTensorVersioned* self) { free(self); }
/* A dense array in new host memory, its elements not set: for dlbridge_like() and dlbridge_as(), which take it. NULL
   with MemoryError. ndim is at most 64. */
static inline DLManagedTensorVersioned* dlbridge_new(DLDataType dtype, int32_t ndim, const int64_t* shape) {
  const size_t head = sizeof(DLManagedTensorVersioned) + 2 * (size_t)ndim * sizeof(int64_t) + 63; /* and alignment */
  const size_t most = (size_t)PTRDIFF_MAX - head;
  size_t bytes = ((size_t)dtype.bits * dtype.lanes + 7) / 8;
  DLManagedTensorVersioned* out = NULL;
  int64_t* dims;
  int64_t stride = 1;
  int32_t i;
  for (i = 0; i < ndim && bytes != SIZE_MAX; ++i)
    bytes = shape[i] < 0 || (shape[i] > 0 && bytes > most / (size_t)shape[i]) ? SIZE_MAX : bytes * (size_t)shape[i];
  if (bytes != SIZE_MAX) out = (DLManagedTensorVersioned*)malloc(head + bytes);
  if (out == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  memset(out, 0, sizeof *out);
  out->version.major = DLPACK_MAJOR_VERSION;
  out->version.minor = DLPACK_MINOR_VERSION;
  out->deleter = dlbridge_free_new;
  out->dl_tensor.data = (char*)out + (head - ((uintptr_t)out + head) % 64);
  out->dl_tensor.device.device_type = kDLCPU;
  out->dl_tensor.ndim = ndim;
  out->dl_tensor.dtype = dtype;
  dims = (int64_t*)(out + 1);
  out->dl_tensor.shape = dims;
  out->dl_tensor.strides = dims + ndim;
  for (i = ndim; i-- > 0;) {
    dims[i] = shape[i];
    dims[ndim + i] = stride;
    stride *= shape[i] > 0 ? shape[i] : 1;
  }
  return out;
}

/* A result in the framework of `example`, an argument as it was given: torch for torch. Takes `managed`, always. */
static inline PyObject* dlbridge_like(DLManagedTensorVersioned* managed, PyObject* example) {
  const dlbridge_table* table = dlbridge_api(); /* known: an argument has been read */
  PyObject *tensor, *out;
  if (managed == NULL || table == NULL) return NULL;
  tensor = table->wrap(managed, 0, 0);
  if (tensor == NULL) return NULL;
  out = table->convert_like(tensor, example);
  Py_DECREF(tensor);
  return out;
}
/* The same in the framework that dlbridge.convert() knows by that name; "dlbridge" is a dlbridge.Tensor. */
static inline PyObject* dlbridge_as(DLManagedTensorVersioned* managed, const char* framework) {
  const dlbridge_table* table = dlbridge_api();
  PyObject *tensor, *out;
  if (managed == NULL || table == NULL) return NULL;
  tensor = table->wrap(managed, 0, 0);
  if (tensor == NULL) return NULL;
  out = table->convert(tensor, framework);
  Py_DECREF(tensor);
  return out;
}

#ifdef __cplusplus
}
#endif

#endif
