// An ElementwiseKernel's state, and one call of it.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ndarray/core/generated_loop.h"
#include "ndarray/runtime/module.h"
#include "protocols/common/threads.h"

namespace dlbridge::py::nd {

namespace core = ::dlbridge::nd;

inline constexpr int kMaxKernelParameters = 64;

// A compiled kernel for some dtypes and some kind of layout.
struct ElementwiseVariant {
  core::Function function;
  int unroll = 1;  // vectors a thread takes in one tile
};

struct ElementwiseState {
  std::string name = "ElementwiseKernel";
  int inputs = 0;
  std::vector<bool> raw;  // one a parameter, inputs first
  core::LoopTraits traits;
  bool persistent = false;    // code before or after the loop: few blocks, each of which loops
  bool no_return = false;     // a call gives None
  bool return_tuple = false;  // a call gives a tuple also of one output
  // By the types of the arguments; by everything that the code depends on. Filled by the Python subclass. What is there
  // stays where it is for as long as the state lives.
  Mutex looking;
  std::unordered_map<std::string, std::vector<DType>> signatures;
  std::unordered_map<std::string, std::unique_ptr<ElementwiseVariant>> variants;
};

struct ElementwiseOptions {
  PyObject* size = nullptr;
  PyObject* stream = nullptr;
  PyObject* block_size = nullptr;
};

// Runs `self` (whose state is `state`) on the arguments. New reference; null with a Python error set.
PyObject* call_elementwise(PyObject* self, ElementwiseState& state, const ElementwiseOptions& options,
                           PyObject* const* args, Py_ssize_t nargs);

}  // namespace dlbridge::py::nd
