/* An extension module of version 1.0 of the C ABI: it knows nothing newer, and calls every function of its table. */
#include <stdlib.h>
#include <string.h>

#include "table_1_0.h"

static const table_1_0* table;

static PyObject* version(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  return Py_BuildValue("III", table->major, table->minor, table->size);
}

/* (protocol, read-only, shape, sum of the elements, type) of an array of float32. */
static PyObject* described(PyObject* self, PyObject* object) {
  record_1_0 record;
  int64_t dims[4];
  char type[64];
  (void)self;
  if (table->read(object, &record, dims, 2) != 0) return NULL;
  table->type_name(object, type, sizeof type);
  const DLTensor* dl = &record.dl;
  PyObject* out = NULL;
  if (dl->ndim != 2 || dl->dtype.code != kDLFloat || dl->dtype.bits != 32 || record.ready_kind != 0) {
    table->raise(1, "described(): a matrix of float32 is wanted"); /* kWrongType */
  } else {
    double sum = 0;
    for (int64_t i = 0; i < dl->shape[0]; ++i)
      for (int64_t j = 0; j < dl->shape[1]; ++j)
        sum += ((const float*)dl->data)[i * dl->strides[0] + j * dl->strides[1]];
    out = Py_BuildValue("iO(LL)ds", record.protocol, record.flags & 1 ? Py_True : Py_False, (long long)dl->shape[0],
                        (long long)dl->shape[1], record.size == dl->shape[0] * dl->shape[1] ? sum : -1, type);
  }
  table->release(record.holder);
  return out;
}

static PyObject* as_float64(PyObject* self, PyObject* object) {
  const wanted_1_0 wanted = {{kDLFloat, 64, 1}, kDLCPU, 'F'};
  (void)self;
  return table->adapt(object, &wanted);
}

typedef struct {
  DLManagedTensorVersioned managed;
  int64_t shape[1];
  float values[3];
} made;

static void delete_made(DLManagedTensorVersioned* self) { free(self); }

/* Three numbers of its own, in the framework of that name; "": a dlbridge.Tensor. */
static PyObject* three(PyObject* self, PyObject* name) {
  const char* framework = PyUnicode_AsUTF8(name);
  made* out = framework == NULL ? NULL : (made*)calloc(1, sizeof(made));
  (void)self;
  if (out == NULL) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
  out->managed.version.major = DLPACK_MAJOR_VERSION;
  out->managed.deleter = delete_made;
  out->managed.dl_tensor.data = out->values;
  out->managed.dl_tensor.device.device_type = kDLCPU;
  out->managed.dl_tensor.ndim = 1;
  out->managed.dl_tensor.dtype = (DLDataType){kDLFloat, 32, 1};
  out->managed.dl_tensor.shape = out->shape;
  out->shape[0] = 3;
  for (int i = 0; i < 3; ++i) out->values[i] = (float)i;
#if DLPACK_MAJOR_VERSION > 1 || DLPACK_MINOR_VERSION >= 2
  static int64_t stride = 1; /* since DLPACK 1.2 it must not be null */
  out->managed.dl_tensor.strides = &stride;
#endif
  PyObject* tensor = table->wrap(&out->managed, 0, 0);
  if (tensor == NULL || framework[0] == '\0') return tensor;
  PyObject* array = table->convert(tensor, framework);
  table->release(tensor);
  return array;
}

/* (the stream that was named, what order() says of ready host memory). */
static PyObject* stream(PyObject* self, PyObject* argument) {
  const DLDevice cpu = {kDLCPU, 0};
  char message[64] = "";
  intptr_t handle;
  (void)self;
  if (table->parse_stream(argument, &handle) != 0) return NULL;
  const int status = table->order(cpu, 0, 0, 0, message, sizeof message);
  return Py_BuildValue("nis", (Py_ssize_t)handle, status, message);
}

static PyObject* current_stream(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  return PyLong_FromSize_t(table->current_stream(0));
}

static PyMethodDef functions[] = {{"version", version, METH_NOARGS, NULL},
                                  {"described", described, METH_O, NULL},
                                  {"as_float64", as_float64, METH_O, NULL},
                                  {"three", three, METH_O, NULL},
                                  {"stream", stream, METH_O, NULL},
                                  {"current_stream", current_stream, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "built_for_1_0", .m_size = -1,
                                    .m_methods = functions};

PyMODINIT_FUNC PyInit_built_for_1_0(void) {
  table = (const table_1_0*)PyCapsule_Import("dlbridge._core._c_api", 0);
  if (table == NULL) return NULL;
  if (table->major != 1 || table->size < sizeof(table_1_0)) {
    PyErr_SetString(PyExc_ImportError, "compiled for version 1.0 of dlbridge's C ABI");
    return NULL;
  }
  return PyModule_Create(&module);
}
