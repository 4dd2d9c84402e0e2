// Views and copies between arrays, and whether two share memory.
#include "ndarray/core/views.h"

#include "ndarray/core/copy.h"
#include "ndarray/core/overlap.h"
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

constexpr char kAsStrided[] = "as_strided($module, x, shape, strides, offset=0, dtype=None)\n--\n\n"
                              "A view with strides and an offset in bytes.";
PyObject* as_strided(PyObject*, const Call& a) {
  const Tensor& x = a.array(0);
  const Shape shape = a.shape(1);
  const Shape strides = a.shape(2);
  const std::optional<DType> dtype = a.dtype(4);
  const Py_ssize_t offset = a[3] == nullptr ? 0 : checked_number(PyNumber_AsSsize_t(a[3], PyExc_OverflowError));
  return make_result(a.operation(), [&](Tensor& out) {
    return core::strided_view(x, offset, dtype.value_or(core::dtype_of(x)), shape.get(), strides.get(), out);
  });
}

constexpr char kBroadcastTo[] = "broadcast_to($module, x, shape)\n--\n\nA read-only view.";
PyObject* broadcast_to(PyObject*, const Call& a) {
  const Tensor& x = a.array(0);
  const Shape shape = a.shape(1);
  return make_result(a.operation(), [&](Tensor& out) {
    Status status = core::broadcast_view(x, shape.get(), out);
    out.flags |= kFlagReadOnly;  // also where nothing is repeated: not for some shapes only
    return status;
  });
}

constexpr char kCopyto[] = "copyto($module, dst, src, casting='same_kind')\n--\n\ndst[...] = src, across devices, too.";
PyObject* copyto(PyObject*, const Call& a) {
  const Tensor& target = a.array(0);
  const core::Input source = a.operand(1);
  throw_if_bad(core::copy_into(target, source, a.casting(2, core::Casting::kSameKind)), a.operation());
  Py_RETURN_NONE;
}

constexpr char kSharesMemory[] =
    "shares_memory($module, a, b, max_work=0)\n--\n\n"
    "Whether two arrays have a byte in common; None where max_work trials cannot tell. 0: whether the ranges of their "
    "addresses overlap.";
PyObject* shares_memory(PyObject*, const Call& a) {
  const Tensor& x = a.array(0);
  const Tensor& y = a.array(1);
  const std::int64_t most_work = a.integer(2, 0);
  if (!same_device(x.dl.device, y.dl.device)) Py_RETURN_FALSE;
  switch (core::find_overlap(x, y, most_work)) {
    case core::Overlap::kNone: Py_RETURN_FALSE;
    case core::Overlap::kSome: Py_RETURN_TRUE;
    default: break;
  }
  if (most_work == 0) Py_RETURN_TRUE;
  Py_RETURN_NONE;
}

}  // namespace

void init_views(PyObject* module) {
  add_functions(module, {method<kAsStrided, as_strided>(), method<kBroadcastTo, broadcast_to>(),
                         method<kCopyto, copyto>(), method<kSharesMemory, shares_memory>()});
}

}  // namespace dlbridge::py::nd
