// Elementwise operations on the host: picks the inner loop and walks the outer dims; operands whose dtype is not the
// loop's are cast through small buffers on the stack.
#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/loop.h"
#include "ndarray/kernels/host/copy.h"
#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kChunk = 512;         // elements that are cast at a time
constexpr std::int64_t kTileSize = 64 * 64;  // of a transposed walk
constexpr std::int64_t kTiledFrom = 1 << 12;

// One call, resolved: which loop runs, and which casts go around it.
struct Plan {
  InnerLoop loop;
  bool copies;                    // the loop leaves the elements as they are
  InnerLoop casts[kMaxOperands];  // null: the operand is walked where it lies
  int itemsizes[kMaxOperands];    // in memory
  int loop_itemsizes[kMaxOperands];
  const ElementwiseArgs* args;
};

InnerLoop find_loop(const Canonical& canonical) noexcept {
  for (auto* find : {find_arithmetic_loop, find_logic_loop, find_math_loop, find_complex_loop})
    if (const InnerLoop loop = find(canonical.op, canonical.compute)) return loop;
  return nullptr;
}

// The dtype in which the loop takes an operand.
DType loop_dtype(const ElementwiseArgs& args, int operand) noexcept {
  if (operand == 0) return result_dtype(info(args.op).rule, args.compute);
  return args.op == Op::kWhere && operand == 1 ? DType::kBool : args.compute;
}

bool make_plan(const ElementwiseArgs& args, Plan& plan) noexcept {
  plan.args = &args;
  if (!contains(info(args.op).dtypes, args.compute)) return false;
  const Canonical form = canonical(args.op, args.compute);
  plan.loop = form.work == Work::kCopy ? cast_loop(args.compute, args.compute) : find_loop(form);
  if (plan.loop == nullptr) return false;
  for (int k = 0; k < args.operands; ++k) {
    const DType wanted = loop_dtype(args, k);
    const DType given = (args.scalar_mask >> k & 1) != 0 ? wanted : args.dtype[k];
    plan.itemsizes[k] = info(given).itemsize;
    plan.loop_itemsizes[k] = info(wanted).itemsize;
    plan.casts[k] = nullptr;
    if (given == wanted) continue;
    plan.casts[k] = k == 0 ? cast_loop(wanted, given) : cast_loop(given, wanted);
    if (plan.casts[k] == nullptr) return false;
  }
  plan.copies = form.work == Work::kCopy && plan.casts[0] == nullptr && plan.casts[1] == nullptr;
  // A copy with one cast is that cast.
  if (form.work == Work::kCopy && (plan.casts[0] == nullptr) != (plan.casts[1] == nullptr)) {
    plan.loop = plan.casts[0] != nullptr ? plan.casts[0] : plan.casts[1];
    plan.casts[0] = plan.casts[1] = nullptr;
  }
  return true;
}

void run_inner(const Plan& plan, char* const* data, const std::int64_t* strides, std::int64_t n) noexcept {
  const int operands = plan.args->operands;
  bool casts = false;
  for (int k = 0; k < operands; ++k) casts = casts || plan.casts[k] != nullptr;
  if (!casts) return plan.loop(data, strides, n);

  alignas(16) char buffers[kMaxOperands][kChunk * 16];
  for (std::int64_t done = 0; done < n; done += kChunk) {
    const std::int64_t count = std::min(kChunk, n - done);
    char* at[kMaxOperands];
    std::int64_t steps[kMaxOperands];
    for (int k = 0; k < operands; ++k) {
      char* const memory = data[k] + done * strides[k];
      at[k] = memory;
      steps[k] = strides[k];
      if (plan.casts[k] == nullptr) continue;
      at[k] = buffers[k];
      steps[k] = strides[k] == 0 ? 0 : plan.loop_itemsizes[k];
      if (k == 0) continue;
      char* const pair[] = {buffers[k], memory};
      const std::int64_t pair_strides[] = {plan.loop_itemsizes[k], strides[k]};
      plan.casts[k](pair, pair_strides, strides[k] == 0 ? 1 : count);
    }
    plan.loop(at, steps, count);
    if (plan.casts[0] == nullptr) continue;
    char* const pair[] = {data[0] + done * strides[0], buffers[0]};
    const std::int64_t pair_strides[] = {strides[0], plan.loop_itemsizes[0]};
    plan.casts[0](pair, pair_strides, count);
  }
}

// Short rows cost more in calls than in work: then the longest dim runs inside, in blocks that stay in the first cache
// while the short dims pass over them.
constexpr std::int64_t kShortRow = 8;
constexpr std::int64_t kBlockBytes = 16384;
int inner_dim(const KernelLoop& loop) noexcept {
  if (loop.ndim < 2 || loop.shape[0] >= kShortRow) return 0;
  const auto* longest = std::max_element(loop.shape, loop.shape + loop.ndim);
  return *longest > 4 * loop.shape[0] ? static_cast<int>(longest - loop.shape) : 0;
}

int walk(const Plan& plan, const KernelLoop& loop, int inner) noexcept {
  std::int64_t strides[kMaxOperands];
  char* data[kMaxOperands];
  for (int k = 0; k < loop.operands; ++k) {
    strides[k] = loop.ndim > 0 ? loop.strides[k][inner] : 0;
    data[k] = loop.data[k];
  }
  const std::int64_t n = loop.ndim > 0 ? loop.shape[inner] : 1;
  std::int64_t position[kTiledDims] = {};
  for (;;) {
    run_inner(plan, data, strides, n);
    int d = 0;
    for (; d < loop.ndim; ++d) {
      if (d == inner) continue;
      for (int k = 0; k < loop.operands; ++k) data[k] += loop.strides[k][d];
      if (++position[d] < loop.shape[d]) break;
      for (int k = 0; k < loop.operands; ++k) data[k] -= loop.strides[k][d] * loop.shape[d];
      position[d] = 0;
    }
    if (d == loop.ndim) return 0;
  }
}

int run_loop(const Plan& plan, const KernelLoop& loop) noexcept {
  const int inner = inner_dim(loop);
  if (inner == 0) return walk(plan, loop, inner);
  std::int64_t stride = 1;
  for (int k = 0; k < loop.operands; ++k) stride = std::max(stride, std::abs(loop.strides[k][inner]));
  const std::int64_t rows = loop.shape[inner], block = std::max(kBlockBytes / stride, kShortRow);
  for (std::int64_t done = 0; done < rows; done += block)
    walk(plan, slice_dim(loop, inner, done, std::min(done + block, rows)), inner);
  return 0;
}

}  // namespace

int elementwise(const ElementwiseArgs& args) {
  ElementwiseArgs constant;
  const Canonical form = canonical(args.op, args.compute);
  if (form.work == Work::kFalse || form.work == Work::kTrue) {  // isnan of integers: the cast of a bool scalar
    constant = args;
    constant.op = Op::kPositive;
    constant.compute = DType::kBool;
    constant.operands = 2;
    constant.scalar_mask = 2;
    constant.scalars[1].bytes[0] = form.work == Work::kTrue;
  }
  const ElementwiseArgs& call = form.work == Work::kFalse || form.work == Work::kTrue ? constant : args;

  Plan plan;
  if (!make_plan(call, plan)) return kErrorUnsupported;
  KernelLoop loop = make_loop(call, plan.itemsizes);
  for (int k = 1; k < loop.operands; ++k)
    if (loop.data[k] == nullptr) loop.data[k] = const_cast<char*>(reinterpret_cast<const char*>(call.scalars[k].bytes));
  if (plan.copies && copy_planes(loop, plan.itemsizes[0])) return 0;
  const TilePair pair = loop.size() >= kTiledFrom ? transposed_dims(loop, plan.itemsizes) : TilePair{0, 0};
  if (pair.across == 0) return run_loop(plan, loop);
  return for_each_tiled_part(loop, pair, kTileSize, [&plan](const KernelLoop& part) { return run_loop(plan, part); });
}

}  // namespace dlbridge::nd::host_kernels
