#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kMoved = 8 * kBlock;  // elements that are moved to where the function finds them, at a time

// All elements go the way of vectors, the last few, too, so that what an element becomes does not depend on its place.
template <Op op, DType compute>
void vector_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  constexpr DType arithmetic = compute == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  constexpr std::size_t inputs = info(op).operands;
  using A = type_of_t<arithmetic>;
  const VectorFunction<A>& function = *find_vector_function<A>(op);
  const InnerLoop load = cast_loop(compute, arithmetic), store = cast_loop(arithmetic, compute);
  alignas(64) A moved[1 + inputs][kMoved];  // the output first
  // Elements from number i on, and the first of them once more up to a whole number of grains.
  const auto move_in = [&](std::size_t k, std::int64_t i, std::int64_t count, std::int64_t whole) {
    char* const pair[] = {reinterpret_cast<char*>(moved[k]), data[k] + i * strides[k]};
    const std::int64_t pair_strides[] = {sizeof(A), strides[k]};
    load(pair, pair_strides, count);
    std::fill(moved[k] + count, moved[k] + whole, moved[k][0]);
  };
  const auto in_grains = [](std::int64_t count) { return (count + kGrain - 1) / kGrain * kGrain; };
  bool lies_so[1 + inputs];  // as the function takes it
  for (std::size_t k = 0; k <= inputs; ++k) {
    lies_so[k] =
        compute == arithmetic && strides[k] == sizeof(A) && reinterpret_cast<std::uintptr_t>(data[k]) % alignof(A) == 0;
    if (k > 0 && strides[k] == 0) move_in(k, 0, 1, std::min(kMoved, in_grains(n)));
  }
  for (std::int64_t i = 0; i < n; i += kMoved) {
    const std::int64_t count = std::min(kMoved, n - i), whole = in_grains(count);
    const auto place = [&](std::size_t k) {
      return lies_so[k] && count == whole ? reinterpret_cast<A*>(data[k] + i * strides[k]) : moved[k];
    };
    for (std::size_t k = 1; k <= inputs; ++k)
      if (strides[k] != 0 && place(k) == moved[k]) move_in(k, i, count, whole);
    if constexpr (inputs == 2) function(place(1), place(2), place(0), whole);
    else function(place(1), place(0), whole);
    if (place(0) != moved[0]) continue;
    char* const out[] = {data[0] + i * strides[0], reinterpret_cast<char*>(moved[0])};
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

// x to one power: its square, root or inverse, which one instruction gives, right to half a unit.
template <class C, class F>
DLBRIDGE_ND_CLONES void map_one(char* const* data, const std::int64_t* strides, std::int64_t n, F f) {
  map_loop<false, false, C, C>(data, strides, n, f, std::make_index_sequence<1>{});
}

template <DType compute>
void power_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  using C = type_of_t<compute>;
  using A = arith_t<C>;
  const A exponent = argument<false>(load_at<C>(data[2]));
  if (strides[2] == 0 && exponent == A(2)) return map_one<C>(data, strides, n, [](A x) noexcept { return x * x; });
  if (strides[2] == 0 && exponent == A(-1)) return map_one<C>(data, strides, n, [](A x) noexcept { return A(1) / x; });
  if (strides[2] == 0 && exponent == A(0.5)) {
    constexpr A kInfinity = std::numeric_limits<A>::infinity();
    return map_one<C>(data, strides, n, [](A x) noexcept {
      const A root = std::sqrt(x) + A(0);  // of -0 it is 0
      return x == -kInfinity ? kInfinity : root;
    });
  }
  const bool in_vectors = compute == DType::kFloat64 ? find_vector_function<double>(Op::kPower) != nullptr
                                                     : find_vector_function<float>(Op::kPower) != nullptr;
  return in_vectors ? vector_loop<Op::kPower, compute>(data, strides, n)
                    : op_loop<Op::kPower, compute>(data, strides, n);
}

struct PowerLoopMaker {
  template <Op op, DType compute>
  static constexpr InnerLoop entry() {
    if constexpr (op == Op::kPower && contains(kFloatSet, compute)) return &power_loop<compute>;
    else return nullptr;
  }
};

InnerLoop find_power_loop(Op op, DType compute) noexcept {
  static constexpr OpTable<InnerLoop, DivisionOps, PowerLoopMaker> kTable;
  const InnerLoop* entry = kTable.find(op, compute);
  return entry != nullptr ? *entry : nullptr;
}

// What calls the C library for each element gains nothing by the machine's vectors.
constexpr bool calls_library(Op op) noexcept {
  constexpr Op kInline[] = {Op::kRsqrt, Op::kHypot, Op::kCopysign, Op::kNextafter, Op::kHeaviside};
  return std::find(std::begin(kInline), std::end(kInline), op) == std::end(kInline);
}

struct RealLoopMaker {
  template <Op op, DType compute>
  static constexpr InnerLoop entry() {
    if constexpr (calls_library(op) && contains(kFloatSet, compute)) return &any_op_loop<op, compute>;
    else return LoopMaker<kFloatSet>::entry<op, compute>();
  }
};

template <class Group>
InnerLoop find_real_loop(Op op, DType compute) noexcept {
  if (const InnerLoop loop = find_vector_loop<Group>(op, compute)) return loop;
  static constexpr OpTable<InnerLoop, Group, RealLoopMaker> kTable;
  const InnerLoop* entry = kTable.find(op, compute);
  return entry != nullptr ? *entry : nullptr;
}

}  // namespace

InnerLoop find_math_loop(Op op, DType compute) noexcept {
  if (const InnerLoop loop = find_power_loop(op, compute)) return loop;
  if (const InnerLoop loop = find_real_loop<MathOps>(op, compute)) return loop;
  return find_real_loop<TrigonometricOps>(op, compute);
}

}  // namespace dlbridge::nd::host_kernels
