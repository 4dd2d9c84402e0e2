#include <algorithm>
#include <bit>

#include "ndarray/kernels/functors/divider.h"
#include "ndarray/kernels/host/elementwise_loops.h"
#include "ndarray/kernels/host/whole_division.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kDividerPays = 16;  // elements: to make one takes a division of 128 bits

// f(inputs, count, output), of dense elements, for one block after the other. The output is apart from the inputs.
template <int inputs, class C, class F>
[[gnu::always_inline]] inline void by_blocks(char* const* data, const std::int64_t* strides, std::int64_t n, F f) {
  constexpr auto same = [](C x) noexcept { return x; };
  constexpr std::index_sequence<0> one_input;
  C in[inputs][kDenseBlock], out[kDenseBlock];
  const C* from[inputs];
  for (std::int64_t done = 0; done < n; done += kDenseBlock) {
    const std::int64_t count = std::min(n - done, kDenseBlock);
    for (int k = 0; k < inputs; ++k) {
      char* const source = data[k + 1] + done * strides[k + 1];
      if (strides[k + 1] == sizeof(C) && std::bit_cast<std::uintptr_t>(source) % alignof(C) == 0) {
        from[k] = reinterpret_cast<const C*>(source);
      } else if (from[k] = in[k]; done == 0 || strides[k + 1] != 0) {
        char* const load[] = {reinterpret_cast<char*>(in[k]), source};
        const std::int64_t load_strides[] = {sizeof(C), strides[k + 1]};
        map_loop<false, true, C, C>(load, load_strides, count, same, one_input);
      }
    }
    f(from, count, out);
    char* const store[] = {data[0] + done * strides[0], reinterpret_cast<char*>(out)};
    const std::int64_t store_strides[] = {strides[0], sizeof(C)};
    map_loop<false, true, C, C>(store, store_strides, count, same, one_input);
  }
}

template <class C>
constexpr bool has_divider() noexcept {
  return !std::is_same_v<C, std::uint64_t>;
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

// Functions of blocks have names: of lambdas nothing says that they become part of what calls them.
template <Op op, class C>
struct DivideBlock {
  [[gnu::always_inline]] static C wanted(WholeDivision<C> parts) noexcept {
    return op == Op::kFloorDivide ? parts.quotient : parts.rest;
  }
  [[gnu::always_inline]] void operator()(const C* const* in, std::int64_t count, C* out) const noexcept {
    divide_wholes(in[0], in[1], count, [out](std::int64_t i, WholeDivision<C> parts) { out[i] = wanted(parts); });
  }
};

template <Op op, class C>
DLBRIDGE_ND_CLONES void divide_each(char* const* data, const std::int64_t* strides, std::int64_t n) {
  const auto divide = [](C a, C b) noexcept { return DivideBlock<op, C>::wanted(divide_whole<true>(a, b)); };
  if constexpr (sizeof(C) == 8) by_blocks<2, C>(data, strides, n, DivideBlock<op, C>{});
  else map_loop<true, false, C, C, C>(data, strides, n, divide, std::make_index_sequence<2>{});
}

template <Op op, DType compute>
void divide_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  using C = type_of_t<compute>;
  if constexpr (has_divider<C>()) {
    const C divisor = strides[2] == 0 && n >= kDividerPays ? load_at<C>(data[2]) : C(0);
    if (divisor > C(0)) return divide_by<op, C>(data, strides, n, divisor);
  }
  divide_each<op, C>(data, strides, n);
}

// x ** e by squaring, for an e of 3 or more: its bits below the highest decide for all elements of a block at once.
template <class C>
struct PowerBlock {
  std::uint64_t exponent;
  [[gnu::always_inline]] void operator()(const C* const* in, std::int64_t count, C* power) const noexcept {
    constexpr OpFn<Op::kMultiply, C> multiply;
    const C* const base = in[0];
    std::copy_n(base, count, power);
    for (int bit = static_cast<int>(std::bit_width(exponent)) - 2; bit >= 0; --bit) {
      for (std::int64_t i = 0; i < count; ++i) power[i] = multiply(power[i], power[i]);
      if (((exponent >> bit) & 1) == 0) continue;
      for (std::int64_t i = 0; i < count; ++i) power[i] = multiply(power[i], base[i]);
    }
  }
};

// x ** e by squaring, of as many e as x: the bits that any of them has, each of which multiplies where it is set.
template <class C>
struct PowersBlock {
  [[gnu::always_inline]] void operator()(const C* const* in, std::int64_t count, C* power) const noexcept {
    using U = std::make_unsigned_t<C>;
    constexpr OpFn<Op::kMultiply, C> multiply;
    const C* const exponents = in[1];
    U bits = 0;
    for (std::int64_t i = 0; i < count; ++i) bits = static_cast<U>(bits | static_cast<U>(exponents[i]));
    if (std::is_signed_v<C> && static_cast<C>(bits) < 0) {  // one is negative
      for (std::int64_t i = 0; i < count; ++i) power[i] = OpFn<Op::kPower, C>{}(in[0][i], exponents[i]);
      return;
    }
    C square[kDenseBlock];
    std::copy_n(in[0], count, square);
    std::fill_n(power, count, C(1));
    for (int bit = 0; bit < static_cast<int>(std::bit_width(bits)); ++bit) {
      for (std::int64_t i = 0; i < count; ++i) {
        const C product = multiply(power[i], square[i]);
        power[i] = (static_cast<U>(exponents[i]) >> bit & 1) != 0 ? product : power[i];
      }
      for (std::int64_t i = 0; i < count; ++i) square[i] = multiply(square[i], square[i]);
    }
  }
};

// A power wraps as the products that it is made of do.
template <DType compute>
DLBRIDGE_ND_CLONES void whole_power_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  using C = type_of_t<compute>;
  if (strides[2] != 0) return by_blocks<2, C>(data, strides, n, PowersBlock<C>{});
  const C exponent = load_at<C>(data[2]);
  if (exponent < C(2)) return op_loop<Op::kPower, compute>(data, strides, n);
  if (exponent > C(2)) return by_blocks<1, C>(data, strides, n, PowerBlock<C>{static_cast<std::uint64_t>(exponent)});
  const auto square = [](C x) noexcept { return OpFn<Op::kMultiply, C>{}(x, x); };
  map_loop<false, true, C, C>(data, strides, n, square, std::make_index_sequence<1>{});
}

// Powers of floats are those of elementwise_math.cpp.
struct DivisionLoopMaker {
  template <Op op, DType compute>
  static constexpr InnerLoop entry() {
    if constexpr (op == Op::kPower && contains(kFloatSet, compute)) return nullptr;
    else if constexpr (op == Op::kPower && is_integer_v<type_of_t<compute>>) return &whole_power_loop<compute>;
    else if constexpr (is_integer_v<type_of_t<compute>> && compute != DType::kBool &&
                       (op == Op::kFloorDivide || op == Op::kRemainder))
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
