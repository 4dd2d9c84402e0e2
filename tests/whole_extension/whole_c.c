/* The same functions and class in C. */
#include <dlbridge.h>

#define INT32 {kDLInt, 32, 1}
#define FLOAT32 {kDLFloat, 32, 1}
#define FLOAT64 {kDLFloat, 64, 1}

/* The numbers of a vector of one of three dtypes: a read gets it, or the error of the last one. */
static int get_numbers(PyObject* given, const char* function, dlbridge_array* a) {
  const dlbridge_need needs[] = {
      {.dtype = INT32, .ndim = 1}, {.dtype = FLOAT64, .ndim = 1}, {.dtype = FLOAT32, .ndim = 1}};
  for (int i = 0; i < 3; ++i) {
    if (i > 0) PyErr_Clear();
    if (dlbridge_get(given, function, "a", &needs[i], a) == 0) return 0;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
  }
  return -1;
}
static double number(const dlbridge_array* a, int64_t i) {
  const void* data = dlbridge_data(a);
  const int64_t at = i * a->record.dl.strides[0];
  if (a->record.dl.dtype.code == kDLInt) return ((const int32_t*)data)[at];
  return a->record.dl.dtype.bits == 64 ? ((const double*)data)[at] : (double)((const float*)data)[at];
}

static PyObject* total(PyObject* self, PyObject* given) {
  dlbridge_array a;
  double sum = 0;
  (void)self;
  if (get_numbers(given, "total", &a) != 0) return NULL;
  for (int64_t i = 0; i < a.record.size; ++i) sum += number(&a, i);
  dlbridge_drop(&a);
  return PyFloat_FromDouble(sum);
}

static PyObject* scaled(PyObject* self, PyObject* args) {
  dlbridge_array a;
  PyObject* given;
  double by;
  (void)self;
  if (!PyArg_ParseTuple(args, "Od", &given, &by) || get_numbers(given, "scaled", &a) != 0) return NULL;
  const DLDataType dtype = a.record.dl.dtype;
  DLManagedTensorVersioned* out = dlbridge_new(dtype, 1, a.record.dl.shape);
  for (int64_t i = 0; out != NULL && i < a.record.size; ++i) {
    const double x = by * number(&a, i);
    if (dtype.code == kDLInt) ((int32_t*)out->dl_tensor.data)[i] = (int32_t)x;
    else if (dtype.bits == 64) ((double*)out->dl_tensor.data)[i] = x;
    else ((float*)out->dl_tensor.data)[i] = (float)x;
  }
  dlbridge_drop(&a);
  return dlbridge_like(out, given);
}

static PyObject* negate(PyObject* self, PyObject* given) {
  const dlbridge_need need = {.dtype = FLOAT32, .ndim = 1, .writable = 1};
  dlbridge_array a;
  (void)self;
  if (dlbridge_get(given, "negate", "a", &need, &a) != 0) return NULL;
  float* x = dlbridge_data(&a);
  for (int64_t i = 0; i < a.record.size; ++i) x[i * a.record.dl.strides[0]] *= -1;
  dlbridge_drop(&a);
  Py_INCREF(given);
  return given;
}

static PyObject* dot(PyObject* self, PyObject* args) {
  const dlbridge_need need = {.dtype = FLOAT64, .ndim = 1};
  dlbridge_array a, b;
  PyObject *x, *y;
  double sum = 0;
  (void)self;
  if (!PyArg_ParseTuple(args, "OO", &x, &y) || dlbridge_get(x, "dot", "a", &need, &a) != 0) return NULL;
  if (dlbridge_get(y, "dot", "b", &need, &b) != 0) {
    dlbridge_drop(&a);
    return NULL;
  }
  const int fits = b.record.size >= a.record.size;
  for (int64_t i = 0; fits && i < a.record.size; ++i) sum += number(&a, i) * number(&b, i);
  dlbridge_drop(&a);
  dlbridge_drop(&b);
  if (!fits) return PyErr_Format(PyExc_ValueError, "dot(): b is shorter than a");
  return PyFloat_FromDouble(sum);
}

static PyObject* copy_into(PyObject* self, PyObject* args) {
  const dlbridge_need need = {.dtype = FLOAT32, .ndim = 2}, written = {FLOAT32, 0, 2, 'C', 1};
  dlbridge_array a, out;
  PyObject *from, *to;
  (void)self;
  if (!PyArg_ParseTuple(args, "OO", &from, &to) || dlbridge_get(from, "copy_into", "a", &need, &a) != 0) return NULL;
  if (dlbridge_get(to, "copy_into", "out", &written, &out) != 0) {
    dlbridge_drop(&a);
    return NULL;
  }
  const DLTensor *x = &a.record.dl, *y = &out.record.dl;
  const int fits = x->shape[0] <= y->shape[0] && x->shape[1] == y->shape[1];
  for (int64_t i = 0; fits && i < x->shape[0]; ++i)
    for (int64_t j = 0; j < x->shape[1]; ++j)
      ((float*)dlbridge_data(&out))[i * y->strides[0] + j] =
          ((const float*)dlbridge_data(&a))[i * x->strides[0] + j * x->strides[1]];
  dlbridge_drop(&a);
  dlbridge_drop(&out);
  if (!fits) return PyErr_Format(PyExc_ValueError, "copy_into(): a and out differ in shape");
  Py_RETURN_NONE;
}

static PyObject* column_sums(PyObject* self, PyObject* given) {
  const dlbridge_need need = {.dtype = FLOAT32, .ndim = 2};
  dlbridge_array a;
  (void)self;
  if (dlbridge_get(given, "column_sums", "a", &need, &a) != 0) return NULL;
  const DLTensor* dl = &a.record.dl;
  DLManagedTensorVersioned* out = dlbridge_new((DLDataType)FLOAT64, 1, dl->shape + 1);
  for (int64_t j = 0; out != NULL && j < dl->shape[1]; ++j) {
    double* sum = (double*)out->dl_tensor.data + j;
    *sum = 0;
    for (int64_t i = 0; i < dl->shape[0]; ++i)
      *sum += (double)((const float*)dlbridge_data(&a))[i * dl->strides[0] + j * dl->strides[1]];
  }
  dlbridge_drop(&a);
  return dlbridge_as(out, "numpy");
}

static PyObject* filled(PyObject* self, PyObject* args) {
  long long n;
  double value;
  (void)self;
  if (!PyArg_ParseTuple(args, "Ld", &n, &value)) return NULL;
  const int64_t shape[] = {n};
  DLManagedTensorVersioned* out = dlbridge_new((DLDataType)FLOAT64, 1, shape);
  for (int64_t i = 0; out != NULL && i < n; ++i) ((double*)out->dl_tensor.data)[i] = value;
  return dlbridge_as(out, "dlbridge");
}

static PyObject* axes(PyObject* self, PyObject* given) {
  const dlbridge_need need = {.ndim = -1};
  dlbridge_array a;
  (void)self;
  if (dlbridge_get(given, "axes", "any", &need, &a) != 0) return NULL;
  const int ndim = a.record.dl.ndim;
  dlbridge_drop(&a);
  return PyLong_FromLong(ndim);
}

/* --- the class: its numbers are a tensor, which `values` gives away references to --- */
typedef struct {
  PyObject_HEAD PyObject* values; /* a dlbridge.Tensor */
} sum_object;

static PyObject* sum_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  const dlbridge_need need = {.dtype = FLOAT64, .ndim = 1};
  dlbridge_array a;
  PyObject* first;
  (void)keywords;
  if (!PyArg_ParseTuple(args, "O", &first) || dlbridge_get(first, "Sum", "first", &need, &a) != 0) return NULL;
  DLManagedTensorVersioned* own = dlbridge_new(need.dtype, 1, a.record.dl.shape);
  for (int64_t i = 0; own != NULL && i < a.record.size; ++i) ((double*)own->dl_tensor.data)[i] = number(&a, i);
  dlbridge_drop(&a);
  PyObject* values = dlbridge_as(own, "dlbridge");
  sum_object* self = values == NULL ? NULL : (sum_object*)type->tp_alloc(type, 0);
  if (self == NULL) Py_XDECREF(values);
  else self->values = values;
  return (PyObject*)self;
}
static void sum_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(((sum_object*)self)->values);
  type->tp_free(self);
  Py_DECREF(type);
}
static PyObject* sum_add(PyObject* self, PyObject* given) {
  const dlbridge_need need = {.dtype = FLOAT64, .ndim = 1};
  dlbridge_array own, a;
  if (dlbridge_get(((sum_object*)self)->values, "Sum.add", "self", &need, &own) != 0) return NULL;
  if (dlbridge_get(given, "Sum.add", "a", &need, &a) != 0) {
    dlbridge_drop(&own);
    return NULL;
  }
  double* sums = dlbridge_data(&own);
  for (int64_t i = 0; i < own.record.size && i < a.record.size; ++i) sums[i] += number(&a, i);
  dlbridge_drop(&a);
  dlbridge_drop(&own);
  Py_RETURN_NONE;
}
static PyObject* sum_values(PyObject* self, void* closure) {
  (void)closure;
  Py_INCREF(((sum_object*)self)->values);
  return ((sum_object*)self)->values;
}
static PyMethodDef sum_methods[] = {{"add", sum_add, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyGetSetDef sum_properties[] = {{"values", sum_values, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot sum_slots[] = {{Py_tp_new, (void*)sum_new},
                                  {Py_tp_dealloc, (void*)sum_dealloc},
                                  {Py_tp_methods, sum_methods},
                                  {Py_tp_getset, sum_properties},
                                  {0, NULL}};
static PyType_Spec sum_spec = {"whole_c.Sum", sizeof(sum_object), 0, Py_TPFLAGS_DEFAULT, sum_slots};

static PyMethodDef functions[] = {{"total", total, METH_O, NULL},
                                  {"scaled", scaled, METH_VARARGS, NULL},
                                  {"negate", negate, METH_O, NULL},
                                  {"dot", dot, METH_VARARGS, NULL},
                                  {"copy_into", copy_into, METH_VARARGS, NULL},
                                  {"column_sums", column_sums, METH_O, NULL},
                                  {"filled", filled, METH_VARARGS, NULL},
                                  {"axes", axes, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "whole_c", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_whole_c(void) {
  PyObject* self = dlbridge_api() != NULL ? PyModule_Create(&module) : NULL;
  PyObject* sum = self != NULL ? PyType_FromSpec(&sum_spec) : NULL;
  if (sum == NULL || PyModule_AddObject(self, "Sum", sum) != 0) {
    Py_XDECREF(sum);
    Py_CLEAR(self);
  }
  return self;
}
