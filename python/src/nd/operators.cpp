// The number protocol and comparisons of nd.ndarray, and nd.matmul.
#include <algorithm>
#include <string_view>
#include <utility>

#include "python/src/nd/host_only.h"
#include "python/src/nd/module.h"
#include "python/src/nd/ufuncs.h"

#include "ndarray/core/dense.h"
#include "ndarray/core/linear.h"
#include "ndarray/core/views.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/threads.h"

namespace dlbridge::py::nd {

namespace {

using core::Op;

template <Op kOp>
PyObject* binary(PyObject* a, PyObject* b) {
  return call_operator(kOp, a, b);
}
template <Op kOp>
PyObject* in_place(PyObject* a, PyObject* b) {
  return call_operator(kOp, a, b, a);
}
template <Op kOp>
PyObject* unary(PyObject* a) {
  return call_operator(kOp, a);
}

void refuse_modulus(PyObject* modulus) {
  if (modulus != Py_None) throw_error(PyExc_TypeError, "pow() of arrays takes no modulus. Use (a ** b) %% m");
}
PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  refuse_modulus(modulus);
  return call_operator(Op::kPower, a, b);
}
PyObject* in_place_power(PyObject* a, PyObject* b, PyObject* modulus) {
  refuse_modulus(modulus);
  return call_operator(Op::kPower, a, b, a);
}

PyObject* divmod(PyObject* a, PyObject* b) {
  if (is_array(a) && is_array(b)) {
    Tensor parts[2];
    bool done = false;
    throw_if_bad(core::divide_with_rest(tensor_of(a), tensor_of(b), parts, done), "divmod()");
    if (done) return tuple_of(parts);
  }
  Ref quotient = owned(call_operator(Op::kFloorDivide, a, b));
  if (quotient.get() == Py_NotImplemented) return quotient.release();
  const Ref rest = owned(call_operator(Op::kRemainder, a, b));
  return PyTuple_Pack(2, quotient.get(), rest.get());
}

PyObject* matrix_multiply(PyObject* a, PyObject* b) {
  core::Input left, right;
  const Parsed parsed_left = parse_operand(a, left);
  const Parsed parsed_right = parsed_left == Parsed::kYes ? parse_operand(b, right) : parsed_left;
  checked(parsed_right != Parsed::kError);
  if (parsed_right == Parsed::kNo) Py_RETURN_NOTIMPLEMENTED;
  if (left.array == nullptr || right.array == nullptr)
    throw_issue("matmul", ErrorCode::kMalformed, "both operands must have at least one axis. Use * for scalars");
  return make_result("matmul", [&](Tensor& out) { return core::matmul(*left.array, *right.array, out); });
}

PyObject* in_place_matrix_multiply(PyObject* a, PyObject* b) {
  Ref product = owned(matrix_multiply(a, b));
  if (product.get() == Py_NotImplemented) return product.release();
  const CriticalSection of_target(a);
  throw_if_bad(core::store(tensor_of(product.get()), tensor_of(a), "matmul"), "matmul");
  return Ref::borrow(a).release();
}

// NumPy compares every element with what is no number, None for one: none of them equals it.
PyObject* compare_with_no_number(PyObject* a, bool answer) {
  const Tensor& t = tensor_of(a);
  return make_result("equal", [&](Tensor& out) -> Status {
    DLBRIDGE_TRY(core::make_array(out, DType::kBool, core::shape_of(t), t.dl.device));
    return core::assign(out, core::Input{nullptr, core::Scalar::of_bool(answer)}, "equal");
  });
}

// Objects that are no arrays and leave comparing to object, as Ellipsis does: none equals a number.
bool equals_no_number(PyObject* object) noexcept {
  return Py_TYPE(object)->tp_richcompare == PyBaseObject_Type.tp_richcompare &&
         PyObject_HasAttrString(object, "__dlpack__") == 0;
}

// a != b for an object that says only what it equals: Python would ask for the truth of an array.
PyObject* not_equal_by_equal(PyObject* a, PyObject* b) {
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(b));
  const Ref own = owned(PyObject_GetAttrString(type, "__ne__"));
  const Ref common = owned(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__ne__"));
  if (own.get() != common.get()) Py_RETURN_NOTIMPLEMENTED;
  const Ref equal = owned(Py_TYPE(b)->tp_richcompare(b, a, Py_EQ));
  if (!is_array(equal.get()) || !core::is_bool(core::dtype_of(tensor_of(equal.get())))) Py_RETURN_NOTIMPLEMENTED;
  return PyNumber_Invert(equal.get());
}

PyObject* compare_equal(PyObject* a, PyObject* b, bool negated) {
  if (b == Py_None || PyUnicode_Check(b) || PyBytes_Check(b)) return compare_with_no_number(a, negated);
  Ref found(call_operator(negated ? Op::kNotEqual : Op::kEqual, a, b));
  if (found.get() != Py_NotImplemented) return found.release();
  if (equals_no_number(b)) return compare_with_no_number(a, negated);
  return negated ? not_equal_by_equal(a, b) : found.release();
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_LT: return call_operator(Op::kLess, a, b);
    case Py_LE: return call_operator(Op::kLessEqual, a, b);
    case Py_GT: return call_operator(Op::kLess, b, a);
    case Py_GE: return call_operator(Op::kLessEqual, b, a);
    default: return compare_equal(a, b, op == Py_NE);
  }
}

// --- to Python scalars ----------------------------------------------------------------------------------------------

PyObject* single_element(PyObject* self, const char* operation) {
  const Tensor& t = tensor_of(self);
  if (t.size == 1) return element_to_python(t);
  throw_issue(operation, ErrorCode::kWrongType,
              "only arrays of one element can be converted to a Python scalar; this one has " + std::to_string(t.size) +
                  ". Use any() or all() for truth, item(i) for one");
}

int truth(PyObject* self) {
  const Tensor& t = tensor_of(self);
  if (t.size == 1) return PyObject_IsTrue(owned(element_to_python(t)).get());
  throw_issue(
      "bool()", ErrorCode::kMalformed,
      "the truth of an array with " + std::to_string(t.size) + " elements is ambiguous. Use a.any() or a.all()");
}

PyObject* to_int(PyObject* self) { return PyNumber_Long(owned(single_element(self, "int()")).get()); }
PyObject* to_float(PyObject* self) { return PyNumber_Float(owned(single_element(self, "float()")).get()); }
PyObject* to_index(PyObject* self) {
  const Tensor& t = tensor_of(self);
  if (!core::is_integer(core::dtype_of(t)) || t.dl.ndim != 0)
    throw_issue("operator.index()", ErrorCode::kWrongType,
                "only 0-d integer arrays can be an index; this one is " + core::describe(t));
  return element_to_python(t);
}

// --- nd.matmul -------------------------------------------------------------------------------------------------------

constexpr char kMatmul[] = "matmul($module, x1, x2, out=None)\n--\n\nThe matrix product x1 @ x2.";
PyObject* matmul(PyObject*, const Call& a) {
  const Tensor& x = a.array(0);
  const Tensor& y = a.array(1);
  const Tensor* target = a.optional_array(2);
  if (target == nullptr) return make_result(a.operation(), [&](Tensor& out) { return core::matmul(x, y, out); });
  Tensor product;
  throw_if_bad(core::matmul(x, y, product), a.operation());
  const CriticalSection of_target(a[2]);
  throw_if_bad(core::store(product, *target, "matmul"), a.operation());
  return Ref::borrow(a[2]).release();
}

constexpr char kMatmulName[] = "matmul()";
constexpr char kMatrixDot[] =
    "matrix_dot($module, a, b)\n--\n\n"
    "The product of two arrays of one or two axes each, which dot() has as matmul() does; None "
    "for others.";
PyObject* matrix_dot(PyObject*, const Call& a) {
  const auto is_matrix = [](PyObject* object) {
    return is_array(object) && tensor_of(object).dl.ndim >= 1 && tensor_of(object).dl.ndim <= 2;
  };
  if (!is_matrix(a.given(0)) || !is_matrix(a.given(1))) Py_RETURN_NONE;
  return make_result(a.operation(), [&](Tensor& out) { return core::matmul(a.array(0), a.array(1), out); });
}

constexpr char kVecdot[] = "vecdot($module, x1, x2, /, *, axis=-1)\n--\n\n"
                           "The summed products along an axis, the first argument conjugated; other axes broadcast. "
                           "Source: Array API 2024.12.";
PyObject* vecdot(PyObject*, const Call& a) {
  if (a.given(2) == nullptr && is_array(a.given(0)) && is_array(a.given(1)))
    return make_result(a.operation(), [&](Tensor& out) { return core::vecdot(a.array(0), a.array(1), out); });
  static PythonFunction along("dlbridge.nd._products", "_vecdot");
  const Ref last = owned(PyLong_FromLong(-1));
  return along(a.given(0), a.given(1), a.given(2) != nullptr ? a.given(2) : last.get()).release();
}

constexpr char kCorrelate[] = "correlate()";
constexpr char kCorrelateOnHost[] = "correlate_on_host($module, a, v, mode)\n--\n\n"
                                    "correlate() of two vectors of the host, one of which has few elements, of real "
                                    "numbers; None for others.";
PyObject* correlate_on_host(PyObject*, const Call& a) {
  using enum core::CorrelateMode;
  constexpr std::pair<std::string_view, core::CorrelateMode> kModes[] = {
      {"valid", kValid}, {"full", kFull}, {"same", kSame}};
  const Tensor *x = host_array(a.given(0)), *v = host_array(a.given(1));
  if (x == nullptr || v == nullptr || !PyUnicode_Check(a.given(2))) Py_RETURN_NONE;
  const auto* const mode =
      std::ranges::find(kModes, a.text(2), &std::pair<std::string_view, core::CorrelateMode>::first);
  if (mode == std::end(kModes)) Py_RETURN_NONE;
  return made_or_none(a, [&](Tensor& out, bool& done) { return core::correlate(*x, *v, mode->second, out, done); });
}

// Which axes an entry of axes= names, an int or a tuple of `count`, and all others in their order.
struct CoreAxes {
  std::int64_t core[2];
  std::int64_t others[kMaxDims];
};

bool parse_core_axes(PyObject* entry, int ndim, int count, CoreAxes& out) {
  const bool is_tuple = PyTuple_CheckExact(entry);
  if (is_tuple ? PyTuple_GET_SIZE(entry) != count : count != 1) return false;
  bool named[kMaxDims] = {};
  for (int k = 0; k < count; ++k) {
    std::int64_t axis = 0;
    if (!parse_place(is_tuple ? PyTuple_GET_ITEM(entry, k) : entry, ndim, false, axis) || named[axis]) return false;
    named[axis] = true;
    out.core[k] = axis;
  }
  std::int64_t* other = out.others;
  for (int axis = 0; axis < ndim; ++axis)
    if (!named[axis]) *other++ = axis;
  return true;
}

constexpr char kMatmulOnAxes[] =
    "matmul_on_axes($module, x1, x2, axes)\n--\n\n"
    "matmul() with axes= as a list of three tuples or ints that there are; None for others, whose error Python tells.";
PyObject* matmul_on_axes(PyObject*, const Call& a) {
  if (!PyList_CheckExact(a.given(2)) && !PyTuple_CheckExact(a.given(2))) Py_RETURN_NONE;
  const Ref entries = fixed_items(a.given(2));
  checked(entries.get());
  if (PyTuple_GET_SIZE(entries.get()) != 3) Py_RETURN_NONE;
  Tensor moved[2], product;
  CoreAxes found;
  int outer = 0;
  for (std::size_t k = 0; k < 2; ++k) {
    const Tensor& x = a.array(k);
    const int ndim = x.dl.ndim, count = std::min(ndim, 2);
    outer += count - 1;
    if (ndim == 0 || !parse_core_axes(PyTuple_GET_ITEM(entries.get(), static_cast<Py_ssize_t>(k)), ndim, count, found))
      Py_RETURN_NONE;
    std::copy_n(found.core, count, found.others + ndim - count);
    throw_if_bad(core::permute(x, {found.others, static_cast<std::size_t>(ndim)}, moved[k]), a.operation());
  }
  throw_if_bad(core::matmul(moved[0], moved[1], product), a.operation());
  const int ndim = product.dl.ndim;
  if (!parse_core_axes(PyTuple_GET_ITEM(entries.get(), 2), ndim, outer, found)) Py_RETURN_NONE;
  std::int64_t from[kMaxDims];  // which axis of the product each axis of the result is
  for (int k = 0; k < ndim - outer; ++k) from[found.others[k]] = k;
  for (int k = 0; k < outer; ++k) from[found.core[k]] = ndim - outer + k;
  return make_result(a.operation(),
                     [&](Tensor& out) { return core::permute(product, {from, static_cast<std::size_t>(ndim)}, out); });
}

}  // namespace

std::vector<PyType_Slot> number_slots() {
  return {
      slot<binary<Op::kAdd>>(Py_nb_add),
      slot<binary<Op::kSubtract>>(Py_nb_subtract),
      slot<binary<Op::kMultiply>>(Py_nb_multiply),
      slot<binary<Op::kDivide>>(Py_nb_true_divide),
      slot<binary<Op::kFloorDivide>>(Py_nb_floor_divide),
      slot<binary<Op::kRemainder>>(Py_nb_remainder),
      slot<divmod>(Py_nb_divmod),
      slot<power>(Py_nb_power),
      slot<binary<Op::kLeftShift>>(Py_nb_lshift),
      slot<binary<Op::kRightShift>>(Py_nb_rshift),
      slot<binary<Op::kBitwiseAnd>>(Py_nb_and),
      slot<binary<Op::kBitwiseOr>>(Py_nb_or),
      slot<binary<Op::kBitwiseXor>>(Py_nb_xor),
      slot<matrix_multiply>(Py_nb_matrix_multiply),
      slot<in_place<Op::kAdd>>(Py_nb_inplace_add),
      slot<in_place<Op::kSubtract>>(Py_nb_inplace_subtract),
      slot<in_place<Op::kMultiply>>(Py_nb_inplace_multiply),
      slot<in_place<Op::kDivide>>(Py_nb_inplace_true_divide),
      slot<in_place<Op::kFloorDivide>>(Py_nb_inplace_floor_divide),
      slot<in_place<Op::kRemainder>>(Py_nb_inplace_remainder),
      slot<in_place_power>(Py_nb_inplace_power),
      slot<in_place<Op::kLeftShift>>(Py_nb_inplace_lshift),
      slot<in_place<Op::kRightShift>>(Py_nb_inplace_rshift),
      slot<in_place<Op::kBitwiseAnd>>(Py_nb_inplace_and),
      slot<in_place<Op::kBitwiseOr>>(Py_nb_inplace_or),
      slot<in_place<Op::kBitwiseXor>>(Py_nb_inplace_xor),
      slot<in_place_matrix_multiply>(Py_nb_inplace_matrix_multiply),
      slot<unary<Op::kNegative>>(Py_nb_negative),
      slot<unary<Op::kPositive>>(Py_nb_positive),
      slot<unary<Op::kAbsolute>>(Py_nb_absolute),
      slot<unary<Op::kInvert>>(Py_nb_invert),
      slot<truth>(Py_nb_bool),
      slot<to_int>(Py_nb_int),
      slot<to_float>(Py_nb_float),
      slot<to_index>(Py_nb_index),
      slot<compare>(Py_tp_richcompare),
      slot<PyObject_HashNotImplemented>(Py_tp_hash),
  };
}

void init_matmul(PyObject* module) {
  add_functions(module, {method<kMatmul, matmul>(), method<kMatrixDot, matrix_dot, kMatmulName>(),
                         method<kVecdot, vecdot>(), method<kCorrelateOnHost, correlate_on_host, kCorrelate>(),
                         method<kMatmulOnAxes, matmul_on_axes, kMatmulName>()});
}

}  // namespace dlbridge::py::nd
