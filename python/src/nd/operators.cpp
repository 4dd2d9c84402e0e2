// The number protocol and comparisons of nd.ndarray.
#include "python/src/nd/array_type.h"
#include "python/src/nd/ufunc.h"

#include "ndarray/core/linear.h"

namespace dlbridge::py::nd {

namespace {

using core::Op;

template <Op kOp>
PyObject* binary(PyObject* a, PyObject* b) noexcept {
  return call_operator(kOp, a, b);
}
template <Op kOp>
PyObject* in_place(PyObject* a, PyObject* b) noexcept {
  return call_operator(kOp, a, b, a);
}
template <Op kOp>
PyObject* unary(PyObject* a) noexcept {
  return call_operator(kOp, a);
}

bool refuse_modulus(PyObject* modulus) {
  if (modulus == Py_None) return false;
  PyErr_SetString(PyExc_TypeError, "pow() of arrays takes no modulus. Use (a ** b) % m");
  return true;
}
PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  return refuse_modulus(modulus) ? nullptr : call_operator(Op::kPower, a, b);
}
PyObject* in_place_power(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  return refuse_modulus(modulus) ? nullptr : call_operator(Op::kPower, a, b, a);
}

PyObject* divmod(PyObject* a, PyObject* b) noexcept {
  const Ref quotient(call_operator(Op::kFloorDivide, a, b));
  if (!quotient || quotient.get() == Py_NotImplemented) return Ref::borrow(quotient.get()).release();
  const Ref rest(call_operator(Op::kRemainder, a, b));
  return rest ? PyTuple_Pack(2, quotient.get(), rest.get()) : nullptr;
}

PyObject* matrix_multiply(PyObject* a, PyObject* b) noexcept {
  try {
    core::Input left, right;
    const Parsed parsed_left = parse_operand(a, left);
    const Parsed parsed_right = parsed_left == Parsed::kYes ? parse_operand(b, right) : parsed_left;
    if (parsed_right == Parsed::kError) return nullptr;
    if (parsed_right == Parsed::kNo) Py_RETURN_NOTIMPLEMENTED;
    if (left.array == nullptr || right.array == nullptr) {
      raise("matmul", ErrorCode::kMalformed, "both operands must be arrays of at least one axis. Use * for scalars");
      return nullptr;
    }
    NewArray result;
    if (!result) return nullptr;
    return finish("matmul", core::matmul(*left.array, *right.array, result.tensor()), result);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* in_place_matrix_multiply(PyObject* a, PyObject* b) noexcept {
  const Ref product(matrix_multiply(a, b));
  if (!product || product.get() == Py_NotImplemented) return Ref::borrow(product.get()).release();
  const Status status = core::assign(tensor_of(a), core::Input{&tensor_of(product.get()), {}}, "matmul");
  return succeeded("matmul", status) ? Ref::borrow(a).release() : nullptr;
}

PyObject* compare(PyObject* a, PyObject* b, int op) noexcept {
  switch (op) {
    case Py_LT: return call_operator(Op::kLess, a, b);
    case Py_LE: return call_operator(Op::kLessEqual, a, b);
    case Py_GT: return call_operator(Op::kLess, b, a);
    case Py_GE: return call_operator(Op::kLessEqual, b, a);
    case Py_EQ: return call_operator(Op::kEqual, a, b);
    default: return call_operator(Op::kNotEqual, a, b);
  }
}

// --- to Python scalars ----------------------------------------------------------------------------------------------

PyObject* single_element(PyObject* self, const char* operation) noexcept {
  const Tensor& t = tensor_of(self);
  if (t.size == 1) return element_to_python(t);
  raise(operation, ErrorCode::kWrongType, "only arrays of one element can be converted to a Python scalar, this one has " +
                                              std::to_string(t.size) + ". Use any() or all() for truth, item(i) for one");
  return nullptr;
}

int truth(PyObject* self) noexcept {
  if (tensor_of(self).size == 1) {
    const Ref value(element_to_python(tensor_of(self)));
    return value ? PyObject_IsTrue(value.get()) : -1;
  }
  raise("bool()", ErrorCode::kMalformed, "the truth of an array with " + std::to_string(tensor_of(self).size) +
                                             " elements is ambiguous. Use a.any() or a.all()");
  return -1;
}

PyObject* to_int(PyObject* self) noexcept {
  const Ref value(single_element(self, "int()"));
  return value ? PyNumber_Long(value.get()) : nullptr;
}
PyObject* to_float(PyObject* self) noexcept {
  const Ref value(single_element(self, "float()"));
  return value ? PyNumber_Float(value.get()) : nullptr;
}
PyObject* to_index(PyObject* self) noexcept {
  const Tensor& t = tensor_of(self);
  if (!core::is_integer(core::dtype_of(t)) || t.dl.ndim != 0) {
    raise("operator.index()", ErrorCode::kWrongType,
          "only integer arrays of no axes can be an index, this one is " + core::describe(t));
    return nullptr;
  }
  return element_to_python(t);
}

}  // namespace

PyType_Slot number_slots[] = {
    {Py_nb_add, slot_pointer(binary<Op::kAdd>)},
    {Py_nb_subtract, slot_pointer(binary<Op::kSubtract>)},
    {Py_nb_multiply, slot_pointer(binary<Op::kMultiply>)},
    {Py_nb_true_divide, slot_pointer(binary<Op::kDivide>)},
    {Py_nb_floor_divide, slot_pointer(binary<Op::kFloorDivide>)},
    {Py_nb_remainder, slot_pointer(binary<Op::kRemainder>)},
    {Py_nb_divmod, slot_pointer(divmod)},
    {Py_nb_power, slot_pointer(power)},
    {Py_nb_lshift, slot_pointer(binary<Op::kLeftShift>)},
    {Py_nb_rshift, slot_pointer(binary<Op::kRightShift>)},
    {Py_nb_and, slot_pointer(binary<Op::kBitwiseAnd>)},
    {Py_nb_or, slot_pointer(binary<Op::kBitwiseOr>)},
    {Py_nb_xor, slot_pointer(binary<Op::kBitwiseXor>)},
    {Py_nb_matrix_multiply, slot_pointer(matrix_multiply)},
    {Py_nb_inplace_add, slot_pointer(in_place<Op::kAdd>)},
    {Py_nb_inplace_subtract, slot_pointer(in_place<Op::kSubtract>)},
    {Py_nb_inplace_multiply, slot_pointer(in_place<Op::kMultiply>)},
    {Py_nb_inplace_true_divide, slot_pointer(in_place<Op::kDivide>)},
    {Py_nb_inplace_floor_divide, slot_pointer(in_place<Op::kFloorDivide>)},
    {Py_nb_inplace_remainder, slot_pointer(in_place<Op::kRemainder>)},
    {Py_nb_inplace_power, slot_pointer(in_place_power)},
    {Py_nb_inplace_lshift, slot_pointer(in_place<Op::kLeftShift>)},
    {Py_nb_inplace_rshift, slot_pointer(in_place<Op::kRightShift>)},
    {Py_nb_inplace_and, slot_pointer(in_place<Op::kBitwiseAnd>)},
    {Py_nb_inplace_or, slot_pointer(in_place<Op::kBitwiseOr>)},
    {Py_nb_inplace_xor, slot_pointer(in_place<Op::kBitwiseXor>)},
    {Py_nb_inplace_matrix_multiply, slot_pointer(in_place_matrix_multiply)},
    {Py_nb_negative, slot_pointer(unary<Op::kNegative>)},
    {Py_nb_positive, slot_pointer(unary<Op::kPositive>)},
    {Py_nb_absolute, slot_pointer(unary<Op::kAbsolute>)},
    {Py_nb_invert, slot_pointer(unary<Op::kInvert>)},
    {Py_nb_bool, slot_pointer(truth)},
    {Py_nb_int, slot_pointer(to_int)},
    {Py_nb_float, slot_pointer(to_float)},
    {Py_nb_index, slot_pointer(to_index)},
    {Py_tp_richcompare, slot_pointer(compare)},
    {Py_tp_hash, slot_pointer(PyObject_HashNotImplemented)},
    {0, nullptr},
};

}  // namespace dlbridge::py::nd
