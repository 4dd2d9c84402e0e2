// Bits in bytes, in one call.
#include "ndarray/core/bits.h"

#include "python/src/nd/host_only.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

bool is_little(PyObject* order) noexcept {
  return PyUnicode_Check(order) && PyUnicode_CompareWithASCIIString(order, "little") == 0;
}
bool is_big(PyObject* order) noexcept {
  return PyUnicode_Check(order) && PyUnicode_CompareWithASCIIString(order, "big") == 0;
}

template <Status (*compute)(const Tensor&, bool, Tensor&, bool&)>
PyObject* convert_bits(PyObject*, const Call& a) {
  const bool little = is_little(a.given(1));
  if (!is_array(a.given(0)) || (!little && !is_big(a.given(1)))) Py_RETURN_NONE;
  const Tensor& x = tensor_of(a.given(0));
  return made_or_none(a, [&](Tensor& out, bool& done) { return compute(x, little, out, done); });
}

constexpr char kPackbits[] = "packbits()";
constexpr char kPackBits[] = "pack_bits($module, x, bitorder)\n--\n\npackbits() of all elements; None for no integers.";
constexpr char kUnpackbits[] = "unpackbits()";
constexpr char kUnpackBits[] = "unpack_bits($module, x, bitorder)\n--\n\nunpackbits() of all uint8; None for others.";

}  // namespace

void init_bits(PyObject* module) {
  add_functions(module, {method<kPackBits, convert_bits<core::pack_bits>, kPackbits>(),
                         method<kUnpackBits, convert_bits<core::unpack_bits>, kUnpackbits>()});
}

}  // namespace dlbridge::py::nd
