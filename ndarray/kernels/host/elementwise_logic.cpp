#include <bit>

#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {
namespace {

// All by one count within the width. Machines shift no vectors of bytes: these are multiplied.
template <Op op, class C>
DLBRIDGE_ND_CLONES void shift_by(char* const* data, const std::int64_t* strides, std::int64_t n, int count) {
  const auto shift = [count](C x) noexcept {
    constexpr bool left = op == Op::kLeftShift;
    if constexpr (sizeof(C) > 1 && left) return static_cast<C>(static_cast<std::make_unsigned_t<C>>(x) << count);
    else if constexpr (sizeof(C) > 1) return static_cast<C>(x >> count);
    else if constexpr (left)
      return static_cast<C>(static_cast<std::uint8_t>(x) * static_cast<std::uint8_t>(1 << count));
    else {
      using Wide = std::conditional_t<std::is_signed_v<C>, std::int16_t, std::uint16_t>;
      return static_cast<C>(static_cast<Wide>(static_cast<Wide>(x) * static_cast<Wide>(256 >> count)) >> 8);
    }
  };
  map_loop<true, true, C, C>(data, strides, n, shift, std::make_index_sequence<1>{});
}

// All of the bits.
template <class C>
DLBRIDGE_ND_CLONES void shift_out(char* const* data, const std::int64_t* strides, std::int64_t n) {
  map_loop<true, true, C, C>(data, strides, n, [](C) noexcept { return C(0); }, std::make_index_sequence<1>{});
}

template <Op op, DType compute>
void shift_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  using C = type_of_t<compute>;
  if (strides[2] != 0 || n == 0) return op_loop<op, compute>(data, strides, n);
  constexpr std::uint64_t kLast = sizeof(C) * 8 - 1;
  const std::uint64_t count = static_cast<std::make_unsigned_t<C>>(load_at<C>(data[2]));
  if (count <= kLast || (op == Op::kRightShift && std::is_signed_v<C>))
    return shift_by<op, C>(data, strides, n, static_cast<int>(std::min(count, kLast)));
  shift_out<C>(data, strides, n);
}

struct ShiftLoopMaker {
  template <Op op, DType compute>
  static constexpr InnerLoop entry() {
    if constexpr (is_integer_v<type_of_t<compute>> && compute != DType::kBool) return &shift_loop<op, compute>;
    else return nullptr;
  }
};

InnerLoop find_shift_loop(Op op, DType compute) noexcept {
  static constexpr OpTable<InnerLoop, OpGroup<Op::kLeftShift, Op::kRightShift>, ShiftLoopMaker> kTable;
  const InnerLoop* entry = kTable.find(op, compute);
  return entry != nullptr ? *entry : nullptr;
}

// Bits are counted by the instruction that counts those of a vector, where the machine has it.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
template <DType compute>
[[gnu::flatten, gnu::target("arch=x86-64-v4,avx512vpopcntdq")]] void count_loop(char* const* data,
                                                                                const std::int64_t* strides,
                                                                                std::int64_t n) {
  using C = type_of_t<compute>;
  using Counted = std::conditional_t<sizeof(C) == 8, std::uint64_t, std::uint32_t>;
  const auto count = [](C x) noexcept {
    return static_cast<std::uint8_t>(std::popcount(static_cast<Counted>(fn::magnitude(x))));
  };
  map_loop<true, false, std::uint8_t, C>(data, strides, n, count, std::make_index_sequence<1>{});
}

struct CountLoopMaker {
  template <Op, DType compute>
  static constexpr InnerLoop entry() {
    if constexpr (contains(kIntSet, compute) && info(compute).itemsize > 1) return &count_loop<compute>;
    else return nullptr;
  }
};

InnerLoop find_count_loop(Op op, DType compute) noexcept {
  static const bool is_there = __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vpopcntdq");
  static constexpr OpTable<InnerLoop, OpGroup<Op::kBitwiseCount>, CountLoopMaker> kTable;
  const InnerLoop* entry = is_there ? kTable.find(op, compute) : nullptr;
  return entry != nullptr ? *entry : nullptr;
}
#else
InnerLoop find_count_loop(Op, DType) noexcept { return nullptr; }
#endif

}  // namespace

InnerLoop find_logic_loop(Op op, DType compute) noexcept {
  if (op == Op::kWhere) compute = carrier_of(compute);  // chooses bits
  if (const InnerLoop loop = find_shift_loop(op, compute)) return loop;
  if (const InnerLoop loop = find_count_loop(op, compute)) return loop;
  if (const InnerLoop loop = find_op_loop<LogicOps, kAllSet>(op, compute)) return loop;
  if (const InnerLoop loop = find_op_loop<OpGroup<Op::kWhere>, kUnsignedSet | bit(DType::kComplex128)>(op, compute))
    return loop;
  return find_op_loop<OpGroup<Op::kMaximum, Op::kMinimum, Op::kFmax, Op::kFmin, Op::kClip>, kAllSet>(op, compute);
}

}  // namespace dlbridge::nd::host_kernels
