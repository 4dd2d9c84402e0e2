// The elementwise operations by the names of the functions that compute them, and what their docstrings say.
#pragma once

#include <string>

#include "ndarray/kernels/ops.h"

namespace dlbridge::nd {

struct NamedOp {
  const char* name;
  Op op;
  bool swapped;  // greater is less with the operands exchanged
  const char* doc;
};
inline constexpr NamedOp kNamedOps[] = {
#define DLBRIDGE_ND_ROW(id, name, operands, rule, dtypes, family, fusion, doc) {name, Op::id, false, doc},
    DLBRIDGE_ND_OPS(DLBRIDGE_ND_ROW)
#undef DLBRIDGE_ND_ROW
#define DLBRIDGE_ND_ROW(name, id, doc) {name, Op::id, true, doc},
        DLBRIDGE_ND_SWAPPED_OPS(DLBRIDGE_ND_ROW)
#undef DLBRIDGE_ND_ROW
};

struct OpAlias {
  const char* name;
  Op op;
};
inline constexpr OpAlias kOpAliases[] = {
#define DLBRIDGE_ND_ROW(name, id) {name, Op::id},
    DLBRIDGE_ND_OP_ALIASES(DLBRIDGE_ND_ROW)
#undef DLBRIDGE_ND_ROW
};

// The functor that does the operation for operands of a dtype, by its name in op_functors.h, and what it computes in.
// Where there is nothing to compute, the name is "true" or "false". Null: there is no such loop.
struct NamedFunctor {
  const char* name;
  DType compute;
};
NamedFunctor functor_of(Op op, DType promoted) noexcept;

// What it computes, takes, returns and raises.
std::string docstring_of(const NamedOp& function);

}  // namespace dlbridge::nd
