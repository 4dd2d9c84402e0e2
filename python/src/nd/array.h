// nd.ndarray as a Python object: a Tensor whose owner is a counted storage. Making them, and reading arguments.
// All functions need the GIL.
#pragma once

#include <optional>
#include <span>

#include "ndarray/core/array.h"
#include "ndarray/core/backend.h"
#include "ndarray/core/elementwise.h"
#include "protocols/common/boundary.h"
#include "protocols/common/tensor_object.h"

namespace dlbridge::py::nd {

namespace core = ::dlbridge::nd;

struct ArrayTypes {
  PyTypeObject* base;  // nd.ndarray
  PyTypeObject* host;  // HostArray(ndarray, HostTensor)
  PyTypeObject* cuda;  // CudaArray(ndarray, CudaTensor)
};
extern ArrayTypes array_types;

inline bool is_array(PyObject* object) noexcept {
  PyTypeObject* type = Py_TYPE(object);
  return type == array_types.host || type == array_types.cuda || PyType_IsSubtype(type, array_types.base);
}
inline Tensor& tensor_of(PyObject* array) noexcept { return as_tensor(array)->tensor; }

// An array while it is computed: dropped unless it is committed.
class NewArray {
 public:
  NewArray();  // throws with MemoryError set
  NewArray(const NewArray&) = delete;
  NewArray& operator=(const NewArray&) = delete;
  ~NewArray();
  Tensor& tensor() noexcept { return self_->tensor; }
  void set_source(PyObject* object) noexcept;  // ndarray.owner: whose memory it is
  PyObject* commit() noexcept;                 // takes the type that the device asks for

 private:
  TensorObject* self_;
};

// --- arguments -------------------------------------------------------------------------------------------------------

enum class Parsed : std::uint8_t { kYes, kNo, kError };  // kNo: not an operand, no error is set

// An array of ours, a Python or a NumPy scalar. numpy.ndarray: TypeError "Unsupported type <class 'numpy.ndarray'>".
Parsed parse_operand(PyObject* object, core::Input& out);
// After its kError: true, and the error is cleared, where `object` is such an array. Any other error is the user's.
bool pardon_numpy(PyObject* object);
// The others throw with a Python error set, which names `operation`.
core::Input need_operand(PyObject* object, const char* operation);
const Tensor& need_array(PyObject* object, const char* operation);

// A dtype in any spelling; None gives nullopt.
std::optional<DType> parse_dtype(PyObject* object, const char* operation);
// An int or a sequence of ints.
struct Shape {
  std::int64_t dims[kMaxDims];
  int ndim = 0;
  core::Dims get() const noexcept { return {dims, static_cast<std::size_t>(ndim)}; }
  std::span<std::int64_t> get() noexcept { return {dims, static_cast<std::size_t>(ndim)}; }
};
Shape parse_shape(PyObject* object, const char* operation);
Shape parse_shape(PyObject* const* items, Py_ssize_t count, const char* operation);
// A mask. None: every axis; an int or a tuple. Negative ones count from the end; duplicates and others are refused.
std::uint64_t parse_axes(PyObject* object, int ndim, const char* operation);
int parse_axis(PyObject* object, int ndim, const char* operation);
// None gives nullopt.
std::optional<DLDevice> parse_device(PyObject* object, const char* operation);
using core::default_device;
// For the default one the driver may be asked, so it is not looked for where one is given.
inline DLDevice or_default(const std::optional<DLDevice>& device) { return device ? *device : default_device(); }
// "C", "F", "K" or "A", in either case; None and absent give `otherwise`.
char parse_order(PyObject* object, const char* operation, char otherwise);
// "no", "equiv", "safe", "same_kind" or "unsafe".
core::Casting parse_casting(PyObject* object, const char* operation, core::Casting otherwise);
// "raise", "wrap" or "clip"; absent: "raise".
core::Bounds parse_bounds(PyObject* mode, const char* operation);
bool is_numpy_array(PyObject* object);

// Any object of any protocol, a nested sequence or a scalar as an array of ours; shares memory where it can.
// New reference.
PyObject* to_array(PyObject* object, std::optional<DType> dtype, std::optional<DLDevice> device,
                   std::optional<bool> copy);
// `object` as an array: itself, or a scalar or nested sequence on the device of `like` (None: the current one).
// TypeError for anything else, arrays of other frameworks included.
Ref as_array(PyObject* object, PyObject* like = Py_None);
// The result, or `out`, where one is given, after it was written there. operation: "take", without parentheses.
Ref into(PyObject* out, Ref result, const char* operation);
// The tensor of a bridge object as an array, without a copy; `source` is kept alive.
PyObject* adopt(TensorObject* source);
// The same of a tensor that is no object: `owner`, which is taken, keeps its memory. `source`: ndarray.owner, or null.
PyObject* adopt(const Tensor& tensor, Owner&& owner, PyObject* source);
// A Python scalar from the element at the array's start (waits for the device).
PyObject* element_to_python(const Tensor& scalar);
inline PyObject* scalar_to_python(const core::Scalar& s) {
  switch (s.kind) {
    case core::ScalarKind::kBool: return PyBool_FromLong(s.i != 0);
    case core::ScalarKind::kInt:
      return s.above_int64 ? PyLong_FromUnsignedLongLong(static_cast<unsigned long long>(s.i))
                           : PyLong_FromLongLong(s.i);
    case core::ScalarKind::kFloat: return PyFloat_FromDouble(s.re);
    default: return PyComplex_FromDoubles(s.re, s.im);
  }
}

// Calls dlbridge.nd.<module>.<function>: for what is colder than C++ is worth.
PyObject* call_python(const char* module, const char* function, PyObject* args);

}  // namespace dlbridge::py::nd
