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
constexpr char kPackAlong[] = "pack_bits_along($module, x, axis, bitorder)\n--\n\n"
                              "packbits() along an axis, on the host; None for what is refused.";
PyObject* pack_along(PyObject*, const Call& a) {
  const Tensor* x = host_array(a.given(0));
  const bool little = is_little(a.given(2));
  if (x == nullptr || (!little && !is_big(a.given(2)))) Py_RETURN_NONE;
  const int axis = a.axis(1, x->dl.ndim);
  return made_or_none(a, [&](Tensor& out, bool& done) { return core::pack_bits_along(*x, axis, little, out, done); });
}

constexpr char kUnpackbits[] = "unpackbits()";
constexpr char kUnpackBits[] = "unpack_bits($module, x, bitorder)\n--\n\nunpackbits() of all uint8; None for others.";
constexpr char kUnpackAlong[] = "unpack_bits_along($module, x, axis, count, bitorder)\n--\n\n"
                                "unpackbits() along an axis, on the host; None for what is refused.";
PyObject* unpack_along(PyObject*, const Call& a) {
  const Tensor* x = host_array(a.given(0));
  const bool little = is_little(a.given(3));
  std::int64_t number = 0;
  const bool all = a.given(2) == Py_None;
  if (x == nullptr || (!all && !parse_integer(a.given(2), number)) || (!little && !is_big(a.given(3)))) Py_RETURN_NONE;
  const int axis = a.axis(1, x->dl.ndim);
  const std::optional<std::int64_t> count = all ? std::nullopt : std::optional(number);
  return made_or_none(
      a, [&](Tensor& out, bool& done) { return core::unpack_bits_along(*x, axis, count, little, out, done); });
}

}  // namespace

void init_bits(PyObject* module) {
  add_functions(module,
                {method<kPackBits, convert_bits<core::pack_bits>, kPackbits>(),
                 method<kUnpackBits, convert_bits<core::unpack_bits>, kUnpackbits>(),
                 method<kPackAlong, pack_along, kPackbits>(), method<kUnpackAlong, unpack_along, kUnpackbits>()});
}

}  // namespace dlbridge::py::nd
