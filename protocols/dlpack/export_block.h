// The memory behind one shared export: the managed struct first, so that a deleter finds its block by the pointer.
#pragma once

#include "protocols/common/tensor_object.h"

namespace dlbridge::dlpack {

struct ExportBlock {
  union {
    DLManagedTensorVersioned versioned;
    DLManagedTensor legacy;
  };
  py::TensorObject* owner;  // one reference; its storage holds the shape and the strides
  bool* deleted;            // set when the deleter runs, where a giver watches for it; usually null
};

}  // namespace dlbridge::dlpack
