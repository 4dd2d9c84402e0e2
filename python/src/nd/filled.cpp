// New arrays of a shape, or of another array's: uninitialised, or filled with one value.
#include <algorithm>
#include <cstdlib>

#include "ndarray/core/copy.h"
#include "ndarray/core/elementwise.h"
#include "ndarray/core/fill.h"
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

// What all elements become, which may be an array that broadcasts.
struct Value {
  core::Input input;
  Ref array;  // keeps that of a sequence

  Value() = default;
  explicit Value(int number) { input.scalar = core::Scalar::of_int(number); }
  Value(PyObject* object, PyObject* like) {
    const Parsed parsed = parse_operand(object, input);
    if (parsed == Parsed::kError) throw PythonError();
    if (parsed == Parsed::kYes) return;
    array = as_array(object, like);
    input.array = &tensor_of(array.get());
  }
  DType dtype() const {
    const bool is_wide = input.array == nullptr && input.scalar.above_int64;
    return is_wide ? DType::kUInt64 : core::dtype_of_operand(input);
  }
  Status fill(const Tensor& out, const char* operation) const {
    const bool is_whole = input.array == nullptr && input.scalar.kind <= core::ScalarKind::kInt;
    if (is_whole && (input.scalar.re == 0 || core::is_bool(core::dtype_of(out))))
      return core::fill_bytes(out, input.scalar.re == 0 ? 0 : 1);
    if (is_whole) return core::assign(out, input, operation);
    return core::copy_into(out, input, core::Casting::kUnsafe);
  }
};

// --- of a shape ------------------------------------------------------------------------------------------------------

// The arguments: shape, …, and order and device from number `order_at` on. The device is that of a value which is an
// array, where none is given.
PyObject* make_filled(const Call& a, DType dtype, std::size_t order_at, const Value* value) {
  const Shape shape = a.shape(0);
  const core::Order order = a.order(order_at, 'C') == 'F' ? core::Order::kF : core::Order::kC;
  std::optional<DLDevice> given = a.device(order_at + 1);
  if (!given && value != nullptr && value->input.array != nullptr) given = value->input.array->dl.device;
  const DLDevice device = or_default(given);
  return make_result(a.operation(), [&](Tensor& out) -> Status {
    DLBRIDGE_TRY(core::make_array(out, dtype, shape.get(), device, order));
    return value == nullptr ? Status() : value->fill(out, a.operation());
  });
}

constexpr char kEmpty[] =
    "empty($module, shape, dtype=None, order='C', *, device=None)\n--\n\nAn array with uninitialised elements.\n\n"
    "shape: int or tuple. dtype: float64 where it is None. device: 'cpu', 'cuda', 'cuda:1', …; None: the current "
    "CUDA\n"
    "device, or the CPU where there is none. Raises MemoryError where there is no memory.";
PyObject* empty(PyObject*, const Call& a) {
  return make_filled(a, a.dtype(1).value_or(core::kDefaultFloat), 2, nullptr);
}

constexpr char kZeros[] = "zeros($module, shape, dtype=None, order='C', *, device=None)\n--\n\n"
                          "An array of zeros; float64 by default. order: \"C\" or \"F\". Source: Array API 2024.12.";
constexpr char kOnes[] = "ones($module, shape, dtype=None, order='C', *, device=None)\n--\n\n"
                         "An array of ones; float64 by default. order: \"C\" or \"F\". Source: Array API 2024.12.";
template <int number>
PyObject* filled(PyObject*, const Call& a) {
  const Value value(number);
  return make_filled(a, a.dtype(1).value_or(core::kDefaultFloat), 2, &value);
}

constexpr char kFull[] =
    "full($module, shape, fill_value, dtype=None, order='C', *, device=None)\n--\n\n"
    "An array filled with a scalar or with an array that broadcasts; of its dtype and on its device by default.\n\n"
    "Source: Array API 2024.12.";
PyObject* full(PyObject*, const Call& a) {
  const Value value(a.given(1), Py_None);
  return make_filled(a, a.dtype(2).value_or(value.dtype()), 3, &value);
}

// --- of another array ------------------------------------------------------------------------------------------------

// Whose axes lie in memory as those of a copy of x; in C order where x has another rank.
Status make_as(const Tensor& x, DType dtype, core::Dims shape, DLDevice device, Tensor& out) {
  std::int8_t axes[kMaxDims];
  const Tensor* const parts[] = {core::shape_of(x).size() == shape.size() ? &x : nullptr};
  core::copied_order(parts, shape, axes);
  return core::make_array_as(out, dtype, shape, {axes, shape.size()}, device);
}

// The arguments: an array, …, and dtype, order, subok, shape and device from number `first` on.
PyObject* make_like(const Call& a, PyObject* array, std::size_t first, const Value* value) {
  const Tensor& x = tensor_of(array);
  const DType dtype = a.dtype(first).value_or(core::dtype_of(x));
  const char order = a.order(first + 1, 'K');
  const bool has_shape = a[first + 3] != nullptr;
  const Shape given = has_shape ? a.shape(first + 3) : Shape();
  const core::Dims shape = has_shape ? given.get() : core::shape_of(x);
  const DLDevice device = a.device(first + 4).value_or(x.dl.device);
  return make_result(a.operation(), [&](Tensor& out) -> Status {
    if (order != 'K' || core::is_c_contiguous(x)) {
      const core::Order as_x = order == 'A' ? core::order_of(x) : core::Order::kC;
      DLBRIDGE_TRY(core::make_array(out, dtype, shape, device, order == 'F' ? core::Order::kF : as_x));
    } else {
      DLBRIDGE_TRY(make_as(x, dtype, shape, device, out));
    }
    return value == nullptr ? Status() : value->fill(out, a.operation());
  });
}

constexpr char kEmptyLike[] =
    "empty_like($module, a, dtype=None, order='K', subok=None, shape=None, *, device=None)\n--\n\n"
    "An uninitialised array of the shape, dtype, layout and device of `a`, except for what the arguments say.\n\n"
    "order: \"C\", \"F\", \"A\" (F where `a` is) or \"K\" (as `a` lies). subok has no effect. Source: Array API "
    "2024.12, NumPy.";
PyObject* empty_like(PyObject*, const Call& a) { return make_like(a, as_array(a.given(0)).get(), 1, nullptr); }

constexpr char kZerosLike[] =
    "zeros_like($module, a, dtype=None, order='K', subok=None, shape=None, *, device=None)\n--\n\n"
    "An array of zeros like `a`; arguments as for empty_like().";
constexpr char kOnesLike[] =
    "ones_like($module, a, dtype=None, order='K', subok=None, shape=None, *, device=None)\n--\n\n"
    "An array of ones like `a`; arguments as for empty_like().";
template <int number>
PyObject* filled_like(PyObject*, const Call& a) {
  const Value value(number);
  return make_like(a, as_array(a.given(0)).get(), 1, &value);
}

constexpr char kFullLike[] =
    "full_like($module, a, fill_value, dtype=None, order='K', subok=None, shape=None, *, device=None)\n--\n\n"
    "An array like `a`, filled with a scalar or an array that broadcasts; arguments as for empty_like().";
PyObject* full_like(PyObject*, const Call& a) {
  const Ref like = as_array(a.given(0));
  const Value value(a.given(1), like.get());
  return make_like(a, like.get(), 2, &value);
}

}  // namespace

void init_filled(PyObject* module) {
  add_functions(module, {method<kEmpty, empty>(), method<kZeros, filled<0>>(), method<kOnes, filled<1>>(),
                         method<kFull, full>(), method<kEmptyLike, empty_like>(), method<kZerosLike, filled_like<0>>(),
                         method<kOnesLike, filled_like<1>>(), method<kFullLike, full_like>()});
}

}  // namespace dlbridge::py::nd
