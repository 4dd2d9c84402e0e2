// The ndarray of dlbridge, a consumer like any other.
#pragma once

#include "dlbridge/atomic.h"
#include "frameworks/framework.h"
#include "protocols/common/python.h"
#include "protocols/common/streams.h"

namespace dlbridge::frameworks {

inline constexpr Consumer kNdTakes[] = {
    {.takes = {.dtypes = kNumpyDTypes | kBFloat16,
               .devices = kOnHost | kOnCuda,
               .strides = stride_rule::any,
               .read_only = true},
     .enter = "from_dlpack"},
};
// It lies above this folder, and sets its ways in here: of an object, and of a tensor that is none yet, whose owner is
// taken, with std::bad_alloc or a Python error where that fails.
inline PyObject* (*adopt_as_ndarray)(PyObject* tensor) noexcept = nullptr;
inline PyObject* (*make_ndarray)(Tensor& tensor) = nullptr;

inline bool is_nd_imported() noexcept {
  static Atomic<bool> is_imported(false);
  if (!is_imported.load()) [[unlikely]] {
    if (!py::loaded_module("dlbridge.nd")) return false;
    is_imported.store(true);
  }
  return true;
}
inline PyObject* give_to_nd(py::TensorObject* tensor, const char* operation) {
  if (!is_nd_imported()) return nullptr;
  const py::Ref kept(py::settled(py::as_tensor(py::Ref::borrow(py::as_object(tensor)).release()), operation));
  return kept ? adopt_as_ndarray(kept.get()) : nullptr;
}
inline constexpr const char* kNdNames[] = {"dlbridge.nd"};
inline constexpr Framework kNd{.name = "nd",
                               .module = "dlbridge.nd",
                               .aliases = kNdNames,
                               .consumers = kNdTakes,
                               .give = give_to_nd,
                               .shares = takes_as_is<kNdTakes>};

}  // namespace dlbridge::frameworks
