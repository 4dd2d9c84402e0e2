// The inner loops of the host's elementwise operations: one function an operation and compute dtype.
#pragma once

#include <algorithm>
#include <utility>

#include "ndarray/kernels/functors/half_bits.h"
#include "ndarray/kernels/functors/op_functors.h"
#include "ndarray/kernels/functors/op_groups.h"
#include "ndarray/kernels/host/inner_loop.h"
#include "ndarray/kernels/host/vector_math.h"

namespace dlbridge::nd::host_kernels {

// Part by part, where a vector of complex numbers is one of their parts.
template <class T>
T load_at(const char* p) noexcept {
  if constexpr (is_complex_v<T>) {
    return T(load_at<real_t<T>>(p), load_at<real_t<T>>(p + sizeof(real_t<T>)));
  } else {
    stored_t<T> value;
    __builtin_memcpy(&value, p, sizeof(T));
    return cast<T>(value);
  }
}
template <class T>
void store_at(char* p, T value) noexcept {
  if constexpr (is_complex_v<T>) {
    store_at(p, value.real());
    store_at(p + sizeof(real_t<T>), value.imag());
  } else {
    __builtin_memcpy(p, &value, sizeof(T));
  }
}

// A result in the storage type R; 16-bit floats are rounded here.
template <class R, class V>
R to_storage(V value) noexcept {
  if constexpr (is_half_v<R> && !std::is_same_v<R, V>) return cast<R>(value);
  else return static_cast<R>(value);
}

// What a functor gets for an element of storage type T: where() moves elements as they are.
template <bool raw, class T>
auto argument(T value) noexcept {
  if constexpr (is_half_v<T> && !raw) return to_float(value);
  else return value;
}

constexpr std::int64_t kShortBlock = 8;  // elements of the blocks that short rows and the ends of long ones are made of

// The elements of an input that a block takes, side by side: where they lie so; one, repeated; or fetched.
template <class T>
class BlockInput {
 public:
  BlockInput(const char* data, std::int64_t stride, std::int64_t n) noexcept : data_(data), stride_(stride) {
    if (stride_ == 0 && n < kBlock) fetch<2 * kShortBlock>(data_);
    else if (stride_ == 0) fetch<kBlock>(data_);
  }
  template <std::int64_t length>
  const char* at(std::int64_t i) noexcept {
    const char* const first = data_ + i * stride_;
    if (stride_ == sizeof(T)) return first;
    if (stride_ != 0) fetch<length>(first);
    return block_;
  }

 private:
  template <std::int64_t length>
  void fetch(const char* from) noexcept {
    if (length == kBlock && stride_ == 2 * sizeof(T))
      return fetch<length>(from, 2 * sizeof(T));  // a constant, for which there are shuffles
    fetch<length>(from, stride_);
  }
  template <std::int64_t length>
  void fetch(const char* from, std::int64_t stride) noexcept {
    for (std::int64_t j = 0; j < length; ++j)
      __builtin_memcpy(block_ + j * static_cast<std::int64_t>(sizeof(T)), from + j * stride, sizeof(T));
  }

  const char* data_;
  std::int64_t stride_;
  alignas(64) char block_[kBlock * sizeof(T)];
};

// Blocks of a constant length are what the compiler vectorises at -O2. The output may be exactly an input, so that no
// element depends on another's.
template <std::int64_t length, bool raw, class R, class... In, class F, class... P>
void map_block(char* out, F f, P... in) noexcept {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
  for (std::size_t j = 0; j < length; ++j)
    store_at<R>(out + j * sizeof(R), to_storage<R>(f(argument<raw>(load_at<In>(in + j * sizeof(In)))...)));
}

// again: elements behind the last block are part of one more, which begins in the block before. For those that cost
// little, and not where it would be written over one that is read again.
template <bool again, bool raw, class R, class... In, class F, std::size_t... k>
void map_loop(char* const* data, const std::int64_t* strides, std::int64_t n, F f, std::index_sequence<k...>) noexcept {
  std::int64_t i = 0;
  // To fetch elements that lie apart takes longer than what costs little, unless they are as many as a block.
  const bool fetches = ((strides[k + 1] != 0 && strides[k + 1] != sizeof(In)) || ...);
  if (n >= (again && fetches ? kBlock : kShortBlock) && strides[0] == sizeof(R)) {
    const bool goes_back = again && ((data[k + 1] != data[0]) && ...);
    [&](BlockInput<In>&&... in) {
      const auto map = [&]<std::int64_t length>(std::int64_t least) {
        for (; n >= length; i = n - length) {
          for (; i + length <= n; i += length)
            map_block<length, raw, R, In...>(data[0] + i * strides[0], f, in.template at<length>(i)...);
          if (!goes_back || n - i < least) return;
        }
      };
      map.template operator()<kBlock>(kBlock / 8);
      if constexpr (sizeof(R) == 1 || ((sizeof(In) == 1) || ...)) map.template operator()<2 * kShortBlock>(kShortBlock);
      map.template operator()<kShortBlock>(1);
    }(BlockInput<In>(data[k + 1], strides[k + 1], n)...);
  }
  char* out = data[0] + i * strides[0];  // of this function, for what is stored could be another's pointers
  const char* in[] = {data[k + 1] + i * strides[k + 1]...};
  const std::int64_t out_step = strides[0], in_steps[] = {strides[k + 1]...};
  for (; i < n; ++i) {
    store_at<R>(out, to_storage<R>(f(argument<raw>(load_at<In>(in[k]))...)));
    out += out_step;
    ((in[k] += in_steps[k]), ...);
    __asm__("" : "+r"(out));  // as it stands: made of vectors it would be twice as long, and no faster
  }
}

// What the kernels compute, written so that it becomes vectors: without a choice of what is evaluated.
template <Op op, class C>
constexpr auto functor() noexcept {
  constexpr bool shifts = op == Op::kLeftShift || op == Op::kRightShift;
  if constexpr (op == Op::kLogicalAnd)
    return [](auto a, auto b) noexcept { return (int{fn::truth(a)} & int{fn::truth(b)}) != 0; };
  else if constexpr (op == Op::kLogicalOr)
    return [](auto a, auto b) noexcept { return (int{fn::truth(a)} | int{fn::truth(b)}) != 0; };
  else if constexpr (op == Op::kClip && std::is_same_v<C, bool>)
    return [](bool x, bool low, bool high) noexcept { return ((int{x} | int{low}) & int{high}) != 0; };
  else if constexpr (shifts)
    return [](C a, C count) noexcept {
      using U = std::make_unsigned_t<C>;
      constexpr U kLast = sizeof(C) * 8 - 1;
      const U given = static_cast<U>(count), within = std::min(given, kLast);
      if constexpr (op == Op::kRightShift && std::is_signed_v<C>) return static_cast<C>(a >> within);
      else if constexpr (op == Op::kRightShift) return given > kLast ? C(0) : static_cast<C>(a >> within);
      else return given > kLast ? C(0) : static_cast<C>(static_cast<U>(a) << within);
    };
  else return OpFn<op, C>{};
}

template <Op op, DType compute>
void any_op_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  using C = type_of_t<compute>;
  using R = op_result_t<op, C>;
  constexpr int inputs = info(op).operands;
  constexpr auto f = functor<op, C>();
  constexpr Family family = info(op).family;
  constexpr bool again = family == Family::kLogic || family == Family::kExtrema || family == Family::kArithmetic ||
                         op == Op::kCopysign || op == Op::kNextafter || op == Op::kHypot || op == Op::kReciprocal;
  if constexpr (is_of_half_bits<op, C> && inputs == 1)
    map_loop<again, true, R, C>(data, strides, n, HalfBitsFn<op, C>{}, std::make_index_sequence<1>{});
  else if constexpr (is_of_half_bits<op, C>)
    map_loop<again, true, R, C, C>(data, strides, n, HalfBitsFn<op, C>{}, std::make_index_sequence<2>{});
  else if constexpr (op == Op::kWhere)
    map_loop<again, true, R, bool, C, C>(data, strides, n, f, std::make_index_sequence<3>{});
  else if constexpr (inputs == 1) map_loop<again, false, R, C>(data, strides, n, f, std::make_index_sequence<1>{});
  else if constexpr (inputs == 2) map_loop<again, false, R, C, C>(data, strides, n, f, std::make_index_sequence<2>{});
  else map_loop<again, false, R, C, C, C>(data, strides, n, f, std::make_index_sequence<3>{});
}

template <Op op, DType compute>
DLBRIDGE_ND_CLONES void op_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  any_op_loop<op, compute>(data, strides, n);
}
template <Op op, DType compute>
DLBRIDGE_ND_CLONES_WITHOUT_FMA void complex_op_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  any_op_loop<op, compute>(data, strides, n);
}

// |z|: neither a product nor a sum of complex numbers.
template <DType compute>
DLBRIDGE_ND_CLONES void length_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  any_op_loop<Op::kAbsolute, compute>(data, strides, n);
}

template <DTypeSet within>
struct LoopMaker {
  template <Op op, DType compute>
  static constexpr InnerLoop entry() {
    if constexpr (!contains(within, compute)) return nullptr;
    else if constexpr (op == Op::kAbsolute && contains(kComplexSet, compute)) return &length_loop<compute>;
    else if constexpr (contains(kComplexSet, compute)) return &complex_op_loop<op, compute>;
    else return &op_loop<op, compute>;
  }
};

// A group's loop for the compute dtypes in `within`; null for what it lacks.
template <class Group, DTypeSet within>
InnerLoop find_op_loop(Op op, DType compute) noexcept {
  static constexpr OpTable<InnerLoop, Group, LoopMaker<within>> kTable;
  const InnerLoop* entry = kTable.find(op, compute);
  return entry != nullptr ? *entry : nullptr;
}

// Each in the file of its name; null for an operation or dtype of another.
InnerLoop find_arithmetic_loop(Op op, DType compute) noexcept;
InnerLoop find_logic_loop(Op op, DType compute) noexcept;
InnerLoop find_math_loop(Op op, DType compute) noexcept;
InnerLoop find_complex_loop(Op op, DType compute) noexcept;

}  // namespace dlbridge::nd::host_kernels
