#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kMoved = 8 * kBlock;  // elements that are moved to where the function finds them, at a time

// All elements go the way of vectors, the last few, too, so that what an element becomes does not depend on its place.
template <Op op, DType compute>
void vector_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  constexpr DType arithmetic = compute == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  constexpr int inputs = info(op).operands;
  using A = type_of_t<arithmetic>;
  const VectorFunction<A>& function = *find_vector_function<A>(op);
  const auto call = [&function](const char* const* in, char* out, std::int64_t count) {
    const auto* first = reinterpret_cast<const A*>(in[0]);
    if constexpr (inputs == 2) function(first, reinterpret_cast<const A*>(in[1]), reinterpret_cast<A*>(out), count);
    else function(first, reinterpret_cast<A*>(out), count);
  };
  std::int64_t i = 0;
  if constexpr (compute == arithmetic) {  // where all lie side by side, nothing is moved
    bool dense = true;
    for (int k = 0; k <= inputs; ++k)
      dense = dense && strides[k] == sizeof(A) && reinterpret_cast<std::uintptr_t>(data[k]) % alignof(A) == 0;
    if (dense) {
      i = n / kBlock * kBlock;
      call(data + 1, data[0], i);
    }
  }
  const InnerLoop load = cast_loop(compute, arithmetic), store = cast_loop(arithmetic, compute);
  alignas(64) A block[inputs][kMoved];
  char* const blocks[] = {reinterpret_cast<char*>(block[0]), reinterpret_cast<char*>(block[inputs - 1])};
  for (; i < n; i += kMoved) {
    const std::int64_t count = std::min(kMoved, n - i), whole = (count + kBlock - 1) / kBlock * kBlock;
    for (int k = 0; k < inputs; ++k) {
      char* const in[] = {blocks[k], data[k + 1] + i * strides[k + 1]};
      const std::int64_t in_strides[] = {sizeof(A), strides[k + 1]};
      load(in, in_strides, count);
      std::fill(block[k] + count, block[k] + whole, block[k][0]);
    }
    call(blocks, blocks[0], whole);
    char* const out[] = {data[0] + i * strides[0], blocks[0]};
    const std::int64_t out_strides[] = {strides[0], sizeof(A)};
    store(out, out_strides, count);
  }
}

struct VectorLoopMaker {
  template <Op op, DType compute>
  static constexpr InnerLoop entry() {
    if constexpr (info(op).operands <= 2 && contains(kFloatSet, compute)) return &vector_loop<op, compute>;
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
