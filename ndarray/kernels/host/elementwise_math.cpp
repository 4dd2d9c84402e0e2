#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kMoved = 8 * kBlock;  // elements that are moved to where the function finds them, at a time

// All elements go the way of vectors, the last few, too, so that what an element becomes does not depend on its place.
template <Op op, DType compute>
void vector_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  constexpr DType arithmetic = compute == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  using A = type_of_t<arithmetic>;
  const VectorFunction<A>& function = *find_vector_function<A>(op);
  std::int64_t i = 0;
  if constexpr (compute == arithmetic) {  // where both lie side by side, nothing is moved
    const auto addresses = reinterpret_cast<std::uintptr_t>(data[0]) | reinterpret_cast<std::uintptr_t>(data[1]);
    if (strides[0] == sizeof(A) && strides[1] == sizeof(A) && addresses % alignof(A) == 0) {
      i = n / kBlock * kBlock;
      function(reinterpret_cast<const A*>(data[1]), reinterpret_cast<A*>(data[0]), i);
    }
  }
  const InnerLoop load = cast_loop(compute, arithmetic), store = cast_loop(arithmetic, compute);
  alignas(64) A block[kMoved];
  for (; i < n; i += kMoved) {
    const std::int64_t count = std::min(kMoved, n - i), blocks = (count + kBlock - 1) / kBlock * kBlock;
    char* const in[] = {reinterpret_cast<char*>(block), data[1] + i * strides[1]};
    const std::int64_t in_strides[] = {sizeof(A), strides[1]};
    load(in, in_strides, count);
    std::fill(block + count, block + blocks, block[0]);
    function(block, block, blocks);
    char* const out[] = {data[0] + i * strides[0], reinterpret_cast<char*>(block)};
    const std::int64_t out_strides[] = {strides[0], sizeof(A)};
    store(out, out_strides, count);
  }
}

struct VectorLoopMaker {
  template <Op op, DType compute>
  static constexpr InnerLoop entry() {
    if constexpr (info(op).operands == 1 && contains(kFloatSet, compute)) return &vector_loop<op, compute>;
    else return nullptr;
  }
};

template <class Group>
InnerLoop find_vector_loop(Op op, DType compute) noexcept {
  static constexpr OpTable<InnerLoop, Group, VectorLoopMaker> kTable;
  const InnerLoop* entry = kTable.find(op, compute);
  if (entry == nullptr || *entry == nullptr || !is_accurate_in_vectors(op, compute)) return nullptr;
  const bool found = compute == DType::kFloat64 ? find_vector_function<double>(op) != nullptr
                                                : find_vector_function<float>(op) != nullptr;
  return found ? *entry : nullptr;
}

template <class Group>
InnerLoop find_real_loop(Op op, DType compute) noexcept {
  if (const InnerLoop loop = find_vector_loop<Group>(op, compute)) return loop;
  return find_op_loop<Group, kFloatSet>(op, compute);
}

}  // namespace

InnerLoop find_math_loop(Op op, DType compute) noexcept {
  if (const InnerLoop loop = find_real_loop<MathOps>(op, compute)) return loop;
  return find_real_loop<TrigonometricOps>(op, compute);
}

}  // namespace dlbridge::nd::host_kernels
