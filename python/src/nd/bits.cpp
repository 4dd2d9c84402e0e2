// Bits in bytes on the host, in one call: see host_only.h.
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
PyObject* bits_on_host(PyObject*, const Call& a) {
  const Tensor* x = host_array(a.given(0));
  const bool little = is_little(a.given(1));
  if (x == nullptr || (!little && !is_big(a.given(1)))) Py_RETURN_NONE;
  return made_or_none(a, [&](Tensor& out, bool& done) { return compute(*x, little, out, done); });
}

constexpr char kPackbits[] = "packbits()";
constexpr char kPackbitsOnHost[] =
    "packbits_on_host($module, x, bitorder)\n--\n\npackbits() of all elements of a host array; None for others.";
constexpr char kUnpackbits[] = "unpackbits()";
constexpr char kUnpackbitsOnHost[] =
    "unpackbits_on_host($module, x, bitorder)\n--\n\nunpackbits() of all of a dense host array; None for others.";

}  // namespace

void init_bits(PyObject* module) {
  add_functions(module, {method<kPackbitsOnHost, bits_on_host<core::pack_bits>, kPackbits>(),
                         method<kUnpackbitsOnHost, bits_on_host<core::unpack_bits>, kUnpackbits>()});
}

}  // namespace dlbridge::py::nd
