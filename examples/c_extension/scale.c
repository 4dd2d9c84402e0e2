/* scale.scaled(a, by): the rows of any framework's array, multiplied; a new array of the same framework. */
#include <dlbridge.h>

static PyObject* scaled(PyObject* self, PyObject* args) {
  const dlbridge_need need = {.dtype = {kDLFloat, 32, 1}, .ndim = 1};
  dlbridge_array a;
  PyObject* given;
  double by;
  (void)self;
  if (!PyArg_ParseTuple(args, "Od", &given, &by)) return NULL;
  if (dlbridge_get(given, "scaled", "a", &need, &a) != 0) return NULL;
  DLManagedTensorVersioned* out = dlbridge_new(need.dtype, 1, a.record.dl.shape);
  if (out != NULL) {
    const float* from = dlbridge_data(&a);
    float* to = out->dl_tensor.data;
    for (int64_t i = 0; i < a.record.size; ++i) to[i] = (float)(by * from[i * a.record.dl.strides[0]]);
  }
  dlbridge_drop(&a);
  return dlbridge_like(out, given);
}

static PyMethodDef functions[] = {{"scaled", scaled, METH_VARARGS, "scaled(a, by)"}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "scale", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_scale(void) { return dlbridge_api() != NULL ? PyModule_Create(&module) : NULL; }
