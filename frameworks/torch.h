// PyTorch's tensors as PyTorch's own table gives them: borrowed.
#pragma once

#include "dlbridge/owner.h"
#include "protocols/common/python.h"

namespace dlbridge::frameworks {

// What torch.utils.swap_tensors() respects. It gives a tensor object the memory of another one, and so would take
// away what a borrowed DLTensor points to. From PyTorch's own exports it refuses to, for they hold the C++ tensor;
// this one it cannot see, but it leaves alone what has weak references.
inline void release_swap_guard(void* weak_reference) noexcept { Py_DECREF(static_cast<PyObject*>(weak_reference)); }

// Empty with a Python error set where there is no memory for it.
inline Owner make_swap_guard(PyObject* torch_tensor) noexcept {
  PyObject* reference = PyWeakref_NewRef(torch_tensor, nullptr);
  return reference == nullptr ? Owner() : Owner(reference, release_swap_guard);
}

// Such an owner keeps no memory: the torch.Tensor does.
inline bool is_swap_guard(const Owner& owner) noexcept { return owner.release_function() == release_swap_guard; }

}  // namespace dlbridge::frameworks
