#include <dlbridge.h>

static PyObject* first(PyObject* self, PyObject* given) {
  const dlbridge_need need = {.dtype = {kDLFloat, 32, 1}, .ndim = 1, .writable = 1};
  dlbridge_array a;
  (void)self;
  if (dlbridge_get(given, "first", "a", &need, &a) != 0) return NULL;
  PyObject* out = PyFloat_FromDouble(*(float*)dlbridge_data(&a));
  dlbridge_drop(&a);
  return out;
}

static PyObject* row(PyObject* self, PyObject* args) {
  const dlbridge_need need = {.dtype = {kDLFloat, 64, 1}, .ndim = 2, .order = 'C'};
  dlbridge_array a;
  PyObject* given;
  int i;
  (void)self;
  if (!PyArg_ParseTuple(args, "Oi", &given, &i)) return NULL;
  if (dlbridge_get(given, "row", "a", &need, &a) != 0) return NULL;
  PyObject* out = PyFloat_FromDouble(((const double*)dlbridge_data(&a))[i * a.record.dl.strides[0]]);
  dlbridge_drop(&a);
  return out;
}

static PyObject* copy(PyObject* self, PyObject* args) {
  dlbridge_need need = {.dtype = {kDLFloat, 32, 1}, .ndim = 2};
  dlbridge_array a, b;
  PyObject *from, *to;
  (void)self;
  if (!PyArg_ParseTuple(args, "OO", &from, &to)) return NULL;
  if (dlbridge_get(from, "copy", "a", &need, &a) != 0) return NULL;
  need.writable = 1;
  if (dlbridge_get(to, "copy", "b", &need, &b) != 0) {
    dlbridge_drop(&a);
    return NULL;
  }
  *(float*)dlbridge_data(&b) = *(const float*)dlbridge_data(&a);
  dlbridge_drop(&b);
  dlbridge_drop(&a);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"first", first, METH_O, NULL},
                                  {"row", row, METH_VARARGS, NULL},
                                  {"copy", copy, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "three", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_three(void) { return dlbridge_api() != NULL ? PyModule_Create(&module) : NULL; }
