// Triangles, and arrays rolled along axes.
#include "ndarray/core/rearrange.h"

#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

constexpr char kTriangle[] = "triangle($module, x, k, lower)\n--\n\n"
                             "The elements at and below (lower) or above the k-th diagonal of the last two axes, "
                             "others 0; of a vector a square.";
PyObject* triangle(PyObject*, const Call& call) {
  const bool lower = call.flag(2, true);
  const Call a = call.renamed(lower ? "tril()" : "triu()");
  const Tensor& x = a.array(0);
  if (x.dl.ndim == 0)
    throw_issue(a.operation(), ErrorCode::kMalformed,
                "the array is 0-d; a triangle needs two axes, or a vector that is each row");
  const std::int64_t diagonal = PyNumber_AsSsize_t(a.given(1), nullptr);  // clamped: it may be past 64 bits
  checked(PyErr_Occurred() == nullptr);
  return make_result(a.operation(), [&](Tensor& out) { return core::triangle(x, diagonal, lower, out); });
}

constexpr char kRoll[] = "roll($module, x, steps)\n--\n\n"
                         "A copy with each element moved along axes, by steps[axis] places from 0 to below the extent.";
PyObject* roll(PyObject*, const Call& a) {
  const Tensor& x = a.array(0);
  const Shape steps = a.shape(1);
  return make_result(a.operation(), [&](Tensor& out) { return core::roll(x, steps.get(), out); });
}

}  // namespace

void init_rearrange(PyObject* module) { add_functions(module, {method<kTriangle, triangle>(), method<kRoll, roll>()}); }

}  // namespace dlbridge::py::nd
