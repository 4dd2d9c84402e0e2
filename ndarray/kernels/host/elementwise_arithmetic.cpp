#include <algorithm>
#include <bit>
#include <cstring>

#include "ndarray/kernels/functors/divider.h"
#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kDividerPays = 16;  // elements: to make one takes a division of 128 bits

template <class C>
constexpr bool has_divider() noexcept {
  return is_integer_v<C> && !std::is_same_v<C, bool> && !std::is_same_v<C, std::uint64_t>;
}

// x // divisor or x % divisor for divisor > 0. A negative x is turned into ~x = -x - 1, which is not, and the quotient
// back: then it is rounded down.
template <Op op, class C>
DLBRIDGE_ND_CLONES void divide_by(char* const* data, const std::int64_t* strides, std::int64_t n, C divisor) {
  using Unsigned = std::conditional_t<sizeof(C) == 8 || std::is_same_v<C, std::uint32_t>, std::uint64_t, std::uint32_t>;
  const auto fast = BasicDivider<Unsigned>::of(static_cast<std::int64_t>(divisor));
  const auto divide = [fast](C x) noexcept {
    const auto turned = x < C(0) ? static_cast<C>(-1) : C(0);
    const auto quotient = static_cast<C>(fast.quotient(static_cast<Unsigned>(static_cast<C>(x ^ turned))));
    const auto floored = static_cast<C>(quotient ^ turned);
    if constexpr (op == Op::kFloorDivide) return floored;
    else return static_cast<C>(static_cast<Unsigned>(x) - static_cast<Unsigned>(floored) * fast.divisor);  // may wrap
  };
  map_loop<false, true, C, C>(data, strides, n, divide, std::make_index_sequence<1>{});
}

template <Op op, DType compute>
void divide_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  using C = type_of_t<compute>;
  if (strides[2] == 0 && n >= kDividerPays) {
    const C divisor = load_at<C>(data[2]);
    if (divisor > C(0)) return divide_by<op, C>(data, strides, n, divisor);
  }
  op_loop<op, compute>(data, strides, n);
}

// x ** e by squaring, for an e of 3 or more: its bits below the highest decide for all elements of a block at once.
template <class C>
[[gnu::always_inline]] inline void power_by(char* const* data, const std::int64_t* strides, std::int64_t n,
                                            C exponent) {
  constexpr std::int64_t kPowerBlock = 256;
  constexpr OpFn<Op::kMultiply, C> multiply;
  constexpr auto same = [](C x) noexcept { return x; };
  constexpr std::index_sequence<0> one_input;
  C base[kPowerBlock], power[kPowerBlock];
  const auto wide = static_cast<std::uint64_t>(exponent);
  for (std::int64_t done = 0; done < n; done += kPowerBlock) {
    const std::int64_t count = std::min(n - done, kPowerBlock);
    char* const in[] = {reinterpret_cast<char*>(base), data[1] + done * strides[1]};
    const std::int64_t in_strides[] = {sizeof(C), strides[1]};
    map_loop<false, true, C, C>(in, in_strides, count, same, one_input);
    std::memcpy(power, base, static_cast<std::size_t>(count) * sizeof(C));
    for (int bit = static_cast<int>(std::bit_width(wide)) - 2; bit >= 0; --bit) {
      for (std::int64_t i = 0; i < count; ++i) power[i] = multiply(power[i], power[i]);
      if (((wide >> bit) & 1) == 0) continue;
      for (std::int64_t i = 0; i < count; ++i) power[i] = multiply(power[i], base[i]);
    }
    char* const out[] = {data[0] + done * strides[0], reinterpret_cast<char*>(power)};
    const std::int64_t out_strides[] = {strides[0], sizeof(C)};
    map_loop<false, true, C, C>(out, out_strides, count, same, one_input);
  }
}

// A power wraps as the products that it is made of do.
template <DType compute>
DLBRIDGE_ND_CLONES void whole_power_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  using C = type_of_t<compute>;
  const C exponent = strides[2] == 0 ? load_at<C>(data[2]) : C(0);
  if (exponent < C(2)) return op_loop<Op::kPower, compute>(data, strides, n);
  if (exponent > C(2)) return power_by<C>(data, strides, n, exponent);
  const auto square = [](C x) noexcept { return OpFn<Op::kMultiply, C>{}(x, x); };
  map_loop<false, true, C, C>(data, strides, n, square, std::make_index_sequence<1>{});
}

// Powers of floats are those of elementwise_math.cpp.
struct DivisionLoopMaker {
  template <Op op, DType compute>
  static constexpr InnerLoop entry() {
    if constexpr (op == Op::kPower && contains(kFloatSet, compute)) return nullptr;
    else if constexpr (op == Op::kPower && is_integer_v<type_of_t<compute>>) return &whole_power_loop<compute>;
    else if constexpr (has_divider<type_of_t<compute>>() && (op == Op::kFloorDivide || op == Op::kRemainder))
      return &divide_loop<op, compute>;
    else return LoopMaker<kBoolSet | kRealSet>::entry<op, compute>();
  }
};

InnerLoop find_division_loop(Op op, DType compute) noexcept {
  static constexpr OpTable<InnerLoop, DivisionOps, DivisionLoopMaker> kTable;
  const InnerLoop* entry = kTable.find(op, compute);
  return entry != nullptr ? *entry : nullptr;
}

}  // namespace

InnerLoop find_arithmetic_loop(Op op, DType compute) noexcept {
  if (const InnerLoop loop = find_op_loop<ArithmeticOps, kAllSet>(op, compute)) return loop;
  return find_division_loop(op, compute);
}

}  // namespace dlbridge::nd::host_kernels
