// The launch of a user kernel whose arguments are packed, ordered among all other uses of its arrays.
#pragma once

#include <memory>
#include <vector>

#include "ndarray/runtime/module.h"
#include "python/src/nd/array.h"

namespace dlbridge::py::nd {

// The type of a kernel's argument in keys that Python reads: an array's dtype, a NumPy scalar's, or the kind of a
// Python scalar (dlbridge/nd/_kernels/types.py).
inline char type_letter(const Tensor* array, const core::Scalar& scalar) noexcept {
  if (array != nullptr) return static_cast<char>('A' + static_cast<int>(array->dtype().id));
  return static_cast<char>(scalar.strong ? 'a' + static_cast<int>(scalar.dtype) : '0' + static_cast<int>(scalar.kind));
}

// The arrays that a launch uses: ours, and those of other frameworks. Lives on the stack of one call.
class ArrayUses {
 public:
  ArrayUses() noexcept = default;
  ArrayUses(const ArrayUses&) = delete;
  ArrayUses& operator=(const ArrayUses&) = delete;
  ~ArrayUses();

  // `held` (may be null) is a reference that this object takes over: dropped after the launch.
  void add(const Tensor& tensor, PyObject* held);
  // Memory that a MemoryPointer points to; the reference is taken over.
  void add(core::Storage* storage);
  // Makes `stream` wait for whoever uses the arrays now; from here on they are used on `stream`.
  Status acquire(StreamHandle stream) const;
  // Makes the streams that foreign arrays belong to wait for the launch on `stream`.
  Status hand_back(StreamHandle stream) const;

 private:
  struct Use {
    const Tensor* tensor;
    PyObject* held;
  };
  static constexpr int kInline = 24;
  int count_ = 0;
  Use inline_[kInline];
  std::vector<Use> more_;
  std::vector<core::Storage*> storages_;
};

struct LaunchRequest {
  const core::Function& function;
  core::Dim3 grid;
  core::Dim3 block;
  unsigned shared = 0;
  StreamHandle stream = 0;
  bool cooperative = false;
};

// Checks the limits, orders the launch and queues it. Between the ordering and the launch nobody else uses the arrays.
Status launch_ordered(const LaunchRequest& request, void** parameters, const ArrayUses& uses);

// The stream of a launch: what the user gave, else the calling thread's. Throws as `operation`.
StreamHandle resolve_launch_stream(PyObject* argument, int device, const char* operation);

// Reads an object of another framework; null where it is no array.
TensorObject* read_foreign(PyObject* object);

}  // namespace dlbridge::py::nd
