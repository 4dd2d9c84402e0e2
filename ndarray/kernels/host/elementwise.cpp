// Elementwise operations on the host: picks the inner loop and walks the outer dims; operands whose dtype is not the
// loop's are cast through small buffers on the stack.
#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/loop.h"
#include "ndarray/kernels/host/copy.h"
#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kChunk = 512;         // elements that are cast at a time
constexpr std::int64_t kPackedRow = 128;     // elements of the longest row that shares a call
constexpr std::int64_t kTileSize = 64 * 64;  // of a transposed walk
constexpr std::int64_t kTiledFrom = 1 << 12;

// One call, resolved: which loop runs, and which casts go around it.
struct Plan {
  InnerLoop loop;
  bool copies;                    // the loop leaves the elements as they are
  bool casts_any, packs;          // packs: a call of the loop costs so much that short rows share one
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
  plan.casts_any = std::any_of(plan.casts, plan.casts + args.operands, [](InnerLoop cast) { return cast != nullptr; });
  const Family family = info(args.op).family;
  const bool of_vectors = family == Family::kMath || family == Family::kTrigonometric || args.op == Op::kPower;
  plan.packs = plan.casts_any || (of_vectors && contains(kFloatSet, args.compute));
  return true;
}

void run_inner(const Plan& plan, char* const* data, const std::int64_t* strides, std::int64_t n) noexcept {
  if (!plan.casts_any) return plan.loop(data, strides, n);
  const int operands = plan.args->operands;
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

// Calls run(data) with where each row along the dim `inner` begins.
template <class Run>
void for_each_row(const KernelLoop& loop, int inner, Run run) noexcept {
  char* data[kMaxOperands];
  std::copy_n(loop.data, loop.operands, data);
  const int second = inner == 0 ? 1 : 0;
  const std::int64_t rows = loop.ndim > 1 ? loop.shape[second] : 1;
  std::int64_t steps[kMaxOperands] = {};
  for (int k = 0; k < loop.operands && loop.ndim > 1; ++k) steps[k] = loop.strides[k][second];
  std::int64_t position[kTiledDims] = {};
  for (;;) {
    for (std::int64_t row = 0; row < rows; ++row) {
      run(data);
      for (int k = 0; k < loop.operands; ++k) data[k] += steps[k];
    }
    for (int k = 0; k < loop.operands; ++k) data[k] -= steps[k] * rows;
    int d = 1;
    for (; d < loop.ndim; ++d) {
      if (d == inner || d == second) continue;
      for (int k = 0; k < loop.operands; ++k) data[k] += loop.strides[k][d];
      if (++position[d] < loop.shape[d]) break;
      for (int k = 0; k < loop.operands; ++k) data[k] -= loop.strides[k][d] * loop.shape[d];
      position[d] = 0;
    }
    if (d >= loop.ndim) return;
  }
}

int walk(const Plan& plan, const KernelLoop& loop, int inner) noexcept {
  std::int64_t strides[kMaxOperands];
  for (int k = 0; k < loop.operands; ++k) strides[k] = loop.ndim > 0 ? loop.strides[k][inner] : 0;
  const std::int64_t n = loop.ndim > 0 ? loop.shape[inner] : 1;
  for_each_row(loop, inner, [&](char* const* data) { run_inner(plan, data, strides, n); });
  return 0;
}

// Rows of a loop along its first dim that are laid one behind the other, cast to what its inner loop takes, so that one
// call does many of them.
class PackedRows {
 public:
  PackedRows(const Plan& plan, const KernelLoop& loop) noexcept
      : plan_(plan), loop_(loop), n_(loop.shape[0]), most_(kChunk / n_) {
    for (int k = 0; k < loop.operands; ++k) {
      const std::int64_t* const steps = loop.strides[k];
      repeats_[k] = std::all_of(steps + 1, steps + loop.ndim, [](std::int64_t step) { return step == 0; });
      is_one_[k] = repeats_[k] && steps[0] == 0;
      const bool stays = plan.casts[k] == nullptr && (is_one_[k] || is_dense(k));
      moves_[k] = stays ? nullptr : plan.casts[k] != nullptr ? plan.casts[k] : copy_loop(plan.itemsizes[k]);
      steps_[k] = is_one_[k] ? 0 : plan.loop_itemsizes[k];
    }
  }

  void run() noexcept {
    for_each_row(loop_, 0, [this](char* const* data) {
      take(data);
      if (++filled_ == most_) flush();
    });
    if (filled_ > 0) flush();
  }

 private:
  bool is_dense(int k) const noexcept {
    std::int64_t step = plan_.itemsizes[k];
    for (int d = 0; d < loop_.ndim; step *= loop_.shape[d++])
      if (loop_.strides[k][d] != step) return false;
    return true;
  }

  void take(char* const* data) noexcept {
    starts_[filled_] = data[0];
    for (int k = 0; k < loop_.operands; ++k) {
      if (moves_[k] == nullptr) {
        if (filled_ == 0) at_[k] = data[k];
        continue;
      }
      at_[k] = buffers_[k];
      if (k == 0 || (again_ && repeats_[k]) || (filled_ > 0 && is_one_[k])) continue;
      char* const pair[] = {buffers_[k] + filled_ * n_ * steps_[k], data[k]};
      const std::int64_t strides[] = {plan_.loop_itemsizes[k], loop_.strides[k][0]};
      moves_[k](pair, strides, is_one_[k] ? 1 : n_);
    }
  }
  void flush() noexcept {
    plan_.loop(at_, steps_, filled_ * n_);
    for (std::int64_t row = 0; row < filled_ && moves_[0] != nullptr; ++row) {
      char* const pair[] = {starts_[row], buffers_[0] + row * n_ * steps_[0]};
      const std::int64_t strides[] = {loop_.strides[0][0], steps_[0]};
      moves_[0](pair, strides, n_);
    }
    filled_ = 0;
    again_ = true;
  }

  const Plan& plan_;
  const KernelLoop& loop_;
  const std::int64_t n_, most_;  // elements of a row; rows that a call does
  std::int64_t filled_ = 0;
  bool again_ = false;                                 // what repeats is there already
  bool repeats_[kMaxOperands], is_one_[kMaxOperands];  // whether all rows are one, and all elements
  InnerLoop moves_[kMaxOperands];  // into the buffer or, of the output, out of it; null: the operand lies so
  std::int64_t steps_[kMaxOperands];
  char* at_[kMaxOperands];
  char* starts_[kChunk];  // of the output's rows
  alignas(64) char buffers_[kMaxOperands][kChunk * 16];
};

int run_loop(const Plan& plan, const KernelLoop& loop) noexcept {
  const int inner = inner_dim(loop);
  if (plan.packs && inner == 0 && loop.ndim > 1 && loop.shape[0] > 0 && loop.shape[0] <= kPackedRow) {
    PackedRows(plan, loop).run();
    return 0;
  }
  if (inner == 0) return walk(plan, loop, inner);
  std::int64_t stride = 1;
  for (int k = 0; k < loop.operands; ++k) stride = std::max(stride, std::abs(loop.strides[k][inner]));
  const std::int64_t rows = loop.shape[inner], block = std::max(kBlockBytes / stride, kShortRow);
  for (std::int64_t done = 0; done < rows; done += block)
    walk(plan, slice_dim(loop, inner, done, std::min(done + block, rows)), inner);
  return 0;
}

// Whether the call is a cast, which `cast` becomes: isnan of integers that of a bool, the square of a bool, and the
// count of its bits, that of itself.
bool is_cast(const ElementwiseArgs& args, ElementwiseArgs& cast) noexcept {
  const Work work = canonical(args.op, args.compute).work;
  const bool constant = work == Work::kFalse || work == Work::kTrue;
  const bool keeps = args.op == Op::kSquare || args.op == Op::kBitwiseCount;
  if (!constant && !(keeps && args.dtype[1] == DType::kBool && args.scalar_mask == 0)) return false;
  cast = args;
  cast.op = Op::kPositive;
  cast.compute = constant ? DType::kBool : result_dtype(info(args.op).rule, args.compute);
  if (!constant) return true;
  cast.operands = 2;
  cast.scalar_mask = 2;
  cast.scalars[1].bytes[0] = work == Work::kTrue;
  return true;
}

}  // namespace

int elementwise(const ElementwiseArgs& args) {
  ElementwiseArgs cast;
  const ElementwiseArgs& call = is_cast(args, cast) ? cast : args;

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
