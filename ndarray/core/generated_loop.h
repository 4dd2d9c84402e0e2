// The loop of a generated elementwise kernel: which of its variants serves a call, and the block of words that the
// variant takes. The layout is that of dlbridge/nd/_kernels/codegen.py, which writes the kernels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ndarray/core/array.h"
#include "ndarray/kernels/api.h"

namespace dlbridge::nd {
// How an array is walked along the innermost dimension of the loop.
enum class Walk : char { kDense = 'd', kRepeated = 'r', kStrided = 's' };

// One parameter of the kernel in a call.
struct KernelOperand {
  const Tensor* array = nullptr;  // null: a scalar
  bool raw = false;               // not part of the loop: the kernel indexes it by itself
  ScalarValue scalar{};
};

// What of the source the plan has to know.
struct LoopTraits {
  bool uses_index = false;        // `i` or `_ind`: the loop must run in C order
  bool uses_multi_index = false;  // `_ind`
};

// One compiled variant: everything that the generated code depends on.
struct LoopVariant {
  int vector = 1;             // elements a thread takes at once
  int ndim = 1;               // of the loop, merged
  bool wide = false;          // 64-bit loop index
  int index_ndim = -1;        // of `_ind`; -1: not used
  std::string walks;          // one Walk an array of the loop
  std::vector<int> raw_ndim;  // one a raw array
  std::string raw_dense;      // 'd' or 's' each
};

struct GeneratedLoop {
  LoopVariant variant;
  std::int64_t size = 0;     // elements
  std::int64_t vectors = 0;  // whole ones
  std::vector<std::uint64_t> words;
  std::vector<std::size_t> addresses;  // the words that are an array's: the loop's, then the raw ones
};

// The arrays of the loop broadcast to `shape`; outputs have that shape. Size > 0.
void plan_generated_loop(std::span<const KernelOperand> operands, Dims shape, const LoopTraits& traits,
                         GeneratedLoop& plan);

}  // namespace dlbridge::nd
