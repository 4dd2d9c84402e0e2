// The only file that includes NumPy's headers. The API is connected when an ndarray can first exist, that is when
// somebody else has imported NumPy.
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#include <string>

#include "protocols/common/python.h"
// NumPy's headers come after Python.h, and are not ours to warn about.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wcast-function-type"
#include <numpy/arrayobject.h>
#pragma GCC diagnostic pop

#include "dlbridge/validate.h"
#include "frameworks/numpy.h"
#include "protocols/common/byte_order.h"
#include "protocols/common/errors.h"

namespace dlbridge::frameworks {

constinit Atomic<PyTypeObject*> numpy_array_type;

namespace {

py::Mutex connecting;

static_assert(sizeof(npy_intp) == sizeof(std::int64_t));

// ml_dtypes and others register their types with NumPy: the type object has the name, the typestr does not.
const DTypeInfo* find_registered_dtype(PyArray_Descr* descr) {
  const std::string_view name = descr->typeobj->tp_name;
  const std::size_t dot = name.rfind('.');
  const DTypeInfo* dtype = find_dtype_by_name(dot == std::string_view::npos ? name : name.substr(dot + 1));
  const bool registered_only = dtype != nullptr && dtype->numpy_type < 0;
  return registered_only && PyDataType_ELSIZE(descr) == dtype->itemsize ? dtype : nullptr;
}

std::string descr_name(PyArray_Descr* descr) {
  const py::Ref held = py::Ref::borrow(reinterpret_cast<PyObject*>(descr));  // the array may get another meanwhile
  const py::Ref text(PyObject_Str(held.get()));
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  return utf8 != nullptr ? utf8 : "?";
}

[[gnu::cold]] Status refuse_dtype(PyArray_Descr* descr) {
  return refused("NumPy dtype '" + descr_name(descr) +
                 "' has no DLPack type (structured, object, string, datetime, long double and sub-byte integer types "
                 "have none). View one field or convert first, for example a.astype('float64')");
}

[[gnu::cold]] Status refuse_byte_order(PyArray_Descr* descr) {
  return refused("NumPy dtype '" + descr_name(descr) +
                 "' is in the opposite byte order; DLPack needs the native one. " + kSwapRemedy);
}

template <class Descriptor>
Status decode(PyArrayObject* array, bool* swapped, Descriptor& tensor) {
  PyArray_Descr* descr = PyArray_DESCR(array);
  const DTypeInfo* dtype = find_dtype_by_numpy_type(descr->type_num);
  if (dtype == nullptr) [[unlikely]] {
    if (descr->type_num >= NPY_USERDEF) dtype = find_registered_dtype(descr);
    if (dtype == nullptr) return refuse_dtype(descr);
    if (is_subbyte(to_dl(dtype->id))) tensor.flags |= kFlagPadded;  // NumPy gives each element a byte
  }
  if (!PyArray_ISNBO(descr->byteorder)) [[unlikely]] {
    if (swapped == nullptr) return refuse_byte_order(descr);
    *swapped = true;
  }
  tensor.dl.data = PyArray_DATA(array);
  tensor.set_dtype(*dtype);
  tensor.dl.device = {kDLCPU, 0};
  if (!PyArray_CHKFLAGS(array, NPY_ARRAY_WRITEABLE)) tensor.flags |= kFlagReadOnly;
  return build_layout<StrideUnit::kBytes>(tensor, PyArray_NDIM(array),
                                          reinterpret_cast<const std::int64_t*>(PyArray_DIMS(array)),
                                          reinterpret_cast<const std::int64_t*>(PyArray_STRIDES(array)));
}

// The descr for a dtype of NumPy's or ml_dtypes'. New reference; null with a Python error set.
PyArray_Descr* make_descr(const DTypeInfo& dtype, const char* operation) {
  if (dtype.numpy_type >= 0) return PyArray_DescrFromType(dtype.numpy_type);
  const std::string name(dtype.name);
  const py::Ref module(PyImport_ImportModule("ml_dtypes"));
  const py::Ref scalar(module ? PyObject_GetAttrString(module.get(), name.c_str()) : nullptr);
  PyArray_Descr* descr = nullptr;
  if (scalar && PyArray_DescrConverter(scalar.get(), &descr) == NPY_SUCCEED) return descr;
  PyErr_Clear();
  py::raise(operation, ErrorCode::kRefused,
            "NumPy has no dtype " + name +
                ", and the package ml_dtypes, which has it for most, gives none. Install "
                "ml_dtypes, or convert the data to float32 where it comes from");
  return nullptr;
}

bool is_numpy_array(PyTypeObject* type, const DLPackExchangeAPI*) noexcept {
  if (!connect_numpy()) PyErr_Clear();
  return numpy_array_type != nullptr && PyType_IsSubtype(type, numpy_array_type) != 0;
}

constexpr ArrayKind kNdarray{.recognises = is_numpy_array, .read = read_numpy, .check = check_mask};

}  // namespace

constinit const ArrayKind kNumpyArray = kNdarray;
namespace {

constexpr Consumer kTakes[] = {
    {.takes = {.dtypes = kNumpyDTypes | kBFloat16 | kFloat8 |
                         dtypes(DType::kFloat6E2M3FN, DType::kFloat6E3M2FN, DType::kFloat4E2M1FN),
               .devices = kOnHost,
               .strides = stride_rule::any,
               .read_only = true},
     .enter = "numpy",
     .note = "Install ml_dtypes, or take it through torch or jax."}};
constexpr const char* kNames[] = {"np"};

// numpy.float32(1) and its kin are numbers to their users, with memory that nobody else may see.
bool is_numpy_scalar(PyTypeObject* type, const DLPackExchangeAPI*) noexcept {
  return numpy_array_type != nullptr && PyType_IsSubtype(type, &PyGenericArrType_Type) != 0;
}
constexpr ArrayKind kArrays[] = {kNdarray, {.recognises = is_numpy_scalar, .foreign_bools = true, .only_alone = true}};

PyObject* give(py::TensorObject* tensor, const char* operation) {
  return numpy_array_type != nullptr ? make_numpy(tensor, operation) : nullptr;
}

}  // namespace

extern constinit const Framework kNumpy{.name = "numpy",
                                        .module = "numpy",
                                        .aliases = kNames,
                                        .arrays = kArrays,
                                        .consumers = kTakes,
                                        .give = give,
                                        .shares = takes_as_is<kTakes>};

bool connect_numpy() {
  if (numpy_array_type != nullptr) return true;
  // Without importing: an object of NumPy's can only be here if somebody imported it.
  if (!py::loaded_module("numpy")) return true;
  const py::MutexHold hold(connecting);
  if (numpy_array_type != nullptr) return true;
  if (PyArray_ImportNumPyAPI() < 0) return false;
  numpy_array_type.store(&PyArray_Type);
  return true;
}

const DTypeInfo* find_plain_dtype(PyObject* dtype) noexcept {
  if (numpy_array_type == nullptr || !PyArray_DescrCheck(dtype)) return nullptr;
  const auto* descr = reinterpret_cast<const PyArray_Descr*>(dtype);
  return PyArray_ISNBO(descr->byteorder) ? find_dtype_by_numpy_type(descr->type_num) : nullptr;
}

bool check_mask(PyObject* object, py::ReadCall& call) {
  const py::Ref type = py::loaded_global("numpy.ma", "MaskedArray"), nomask = py::loaded_global("numpy.ma", "nomask");
  if (!type || !nomask) return true;
  const int masked = PyObject_IsInstance(object, type.get());
  if (masked <= 0) return masked == 0;
  const py::Ref mask(PyObject_GetAttrString(object, "_mask"));
  if (!mask) return false;
  if (mask.get() == nomask.get()) return true;
  call.refuse(refused("the array is a numpy.ma.MaskedArray with a mask, which DLPack cannot express. Fill it first: "
                      "a.filled(0)"));
  return false;
}

py::Read read_numpy(PyObject* object, const DLPackExchangeAPI*, py::ReadCall& call, py::TensorObject* self) {
  self->protocol = py::Protocol::kArrayInterface;
  if (Py_TYPE(object) != numpy_array_type && !check_mask(object, call)) return py::Read::kFailed;
  if (Status status = decode(reinterpret_cast<PyArrayObject*>(object), call.swapped, self->tensor); !status.ok())
      [[unlikely]]
    return call.refuse(std::move(status));
  Py_INCREF(object);
  self->source = object;
  return py::Read::kDone;
}

namespace {
// What decode() says of a dense array in C order with more than one element along each axis: NumPy has multiplied its
// extents, and they follow from one another. False: it is another one, and decode() is to be asked.
bool decode_dense(PyArrayObject* array, py::RecordTensor& out) noexcept {
  const PyArray_Descr* descr = PyArray_DESCR(array);
  const DTypeInfo* dtype = find_dtype_by_numpy_type(descr->type_num);
  const int flags = PyArray_FLAGS(array);
  if (dtype == nullptr || !PyArray_ISNBO(descr->byteorder) || (flags & NPY_ARRAY_C_CONTIGUOUS) == 0) return false;
  const int ndim = PyArray_NDIM(array);
  const npy_intp* dims = PyArray_DIMS(array);
  out.reserve_dims(ndim);
  std::int64_t dense = 1;
  for (int i = ndim - 1; i >= 0; --i) {
    if (dims[i] <= 1) return false;
    out.dl.shape[i] = dims[i];
    out.dl.strides[i] = dense;
    dense *= dims[i];
  }
  out.size = dense;
  out.dl.data = PyArray_DATA(array);
  out.dl.device = {kDLCPU, 0};
  out.set_dtype(*dtype);
  if ((flags & NPY_ARRAY_WRITEABLE) == 0) out.flags |= kFlagReadOnly;
  return true;
}
}  // namespace

bool borrow_numpy(PyObject* array, py::RecordTensor& out) {
  auto* ndarray = reinterpret_cast<PyArrayObject*>(array);
  if (PyArray_NDIM(ndarray) > out.capacity()) return false;
  return (decode_dense(ndarray, out) || decode(ndarray, nullptr, out).ok()) && out.is_aligned();
}

PyObject* make_numpy(py::TensorObject* self, const char* operation) {
  const Tensor& tensor = self->tensor;
  if (numpy_array_type == nullptr) {
    const py::Ref numpy(PyImport_ImportModule("numpy"));
    if (!numpy || !connect_numpy()) return nullptr;
  }
  if (is_subbyte(tensor.dl.dtype) && !tensor.padded()) {
    py::raise(operation, ErrorCode::kRefused,
              "the " + std::string(tensor.dtype().name) +
                  " elements are packed into shared bytes, and NumPy gives "
                  "each element a byte. Unpack them where they come from");
    return nullptr;
  }
  PyArray_Descr* descr = make_descr(tensor.dtype(), operation);
  if (descr == nullptr) return nullptr;
  npy_intp strides[kMaxDims];
  for (int i = 0; i < tensor.dl.ndim; ++i) strides[i] = tensor.dl.strides[i] * tensor.itemsize();
  static char nowhere[16];
  void* data = tensor.dl.data != nullptr ? tensor.dl.data : nowhere;
  PyObject* array =
      PyArray_NewFromDescr(&PyArray_Type, descr, tensor.dl.ndim, reinterpret_cast<npy_intp*>(tensor.dl.shape), strides,
                           data, tensor.readonly() ? 0 : NPY_ARRAY_WRITEABLE, nullptr);
  if (array == nullptr) return nullptr;
  Py_INCREF(self);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), py::as_object(self)) != 0) {
    Py_DECREF(array);
    return nullptr;
  }
  return array;
}

}  // namespace dlbridge::frameworks
