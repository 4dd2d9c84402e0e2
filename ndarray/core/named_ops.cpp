#include "ndarray/core/named_ops.h"

#include <utility>

#include "ndarray/core/promotion.h"
#include "ndarray/kernels/functors/canonical.h"

namespace dlbridge::nd {

namespace {

// "bool, integers and floats"; every set of the table is a union of these kinds.
std::string kinds_of(DTypeSet dtypes, const char* last) {
  constexpr std::pair<DTypeSet, const char*> kKinds[] = {
      {kBoolSet, "bool"}, {kIntSet, "integers"}, {kFloatSet, "floats"}, {kComplexSet, "complex numbers"}};
  std::string out;
  for (const auto& [set, name] : kKinds) {
    if ((dtypes & set) == 0) continue;
    dtypes &= ~set;
    out += (out.empty() ? "" : dtypes != 0 ? ", " : last) + std::string(name);
  }
  return out;
}

std::string returned_by(const OpInfo& row) {
  constexpr DTypeSet kExactSet = kBoolSet | kIntSet;
  const std::string operands = row.operands == 1 ? "the dtype of x" : "the dtype that the operands are promoted to";
  switch (row.rule) {
    case TypeRule::kCompare: return "bool";
    case TypeRule::kCount: return "uint8";
    case TypeRule::kReal: return operands + ", of that of the parts for complex numbers";
    case TypeRule::kTrueDivide: return operands + ", of float64 for integers and bool";
    case TypeRule::kFloat:
      return operands + "; integers and bool count as the smallest of float16, float32 and float64 that holds them";
    case TypeRule::kNumber: return operands;
    case TypeRule::kSame: break;
  }
  return operands + ((row.dtypes & kExactSet) == kIntSet ? "; bool counts as int8" : "");
}

constexpr const char* kFunctors[] = {
#define DLBRIDGE_ND_ROW(id, ...) #id,
    DLBRIDGE_ND_OPS(DLBRIDGE_ND_ROW)
#undef DLBRIDGE_ND_ROW
};

}  // namespace

NamedFunctor functor_of(Op op, DType promoted) noexcept {
  KernelTypes types;
  if (!resolve(info(op), promoted, types)) return {nullptr, promoted};
  const Canonical form = canonical(op, types.compute);
  switch (form.work) {
    case Work::kFalse: return {"false", types.compute};
    case Work::kTrue: return {"true", types.compute};
    default: return {kFunctors[static_cast<std::size_t>(form.op)], form.compute};
  }
}

std::string docstring_of(const NamedOp& function) {
  const OpInfo& row = info(function.op);
  DTypeSet taken = row.dtypes;
  if ((taken & kIntSet) != 0 && row.rule != TypeRule::kNumber) taken |= kBoolSet;
  if (row.rule == TypeRule::kFloat || row.rule == TypeRule::kTrueDivide) taken |= kBoolSet | kIntSet;
  const DTypeSet refused = kAllSet & ~taken;
  const char* operands[] = {"x: an array or scalar", "x1, x2: arrays or scalars", "x1, x2, x3: arrays or scalars"};
  std::string doc =
      std::string(function.doc) + "\n\n" + operands[row.operands - 1] + " of " + kinds_of(taken, " or ") +
      (row.operands == 1 ? ".\n" : ", whose shapes are broadcast.\n") +
      "out: an array of the result's shape to write to, and to return. dtype: what to compute in.\n"
      "casting: which casts of operands and of the result are allowed.\n\n"
      "Returns an array of " +
      returned_by(row) + ".\nRaises TypeError for " + (refused == 0 ? "" : kinds_of(refused, " and ") + ", ") +
      "arrays of other libraries and casts that `casting` forbids.\nRaises ValueError for " +
      (row.operands == 1 ? "" : "shapes that do not broadcast, operands on devices that cannot reach each other and ") +
      "an `out` of another shape.";
  for (const char* names = "\n\nOther names: "; const OpAlias& alias : kOpAliases) {
    if (alias.op != function.op || function.swapped) continue;
    doc += std::string(names) + alias.name;
    names = ", ";
  }
  return doc;
}

}  // namespace dlbridge::nd
