// The inner loops of the host's elementwise operations: one function an operation and compute dtype.
#pragma once

#include <utility>

#include "ndarray/kernels/functors/op_functors.h"
#include "ndarray/kernels/functors/op_groups.h"
#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd::host_kernels {

inline constexpr std::int64_t kBlock = 64;  // elements of a dense run that are done in one go

template <class T>
T load_at(const char* p) noexcept {
  stored_t<T> value;
  __builtin_memcpy(&value, p, sizeof(T));
  return cast<T>(value);
}
template <class T>
void store_at(char* p, T value) noexcept {
  __builtin_memcpy(p, &value, sizeof(T));
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

// Blocks of a constant length are what the compiler vectorises at -O2. The output may be exactly an input, so that no
// element depends on another's.
template <bool raw, class R, class... In, class F, class... P>
void map_block(char* out, F f, P... in) noexcept {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
  for (std::size_t j = 0; j < kBlock; ++j)
    store_at<R>(out + j * sizeof(R), to_storage<R>(f(argument<raw>(load_at<In>(in + j * sizeof(In)))...)));
}

template <bool raw, class R, class... In, class F, std::size_t... k>
void map_loop(char* const* data, const std::int64_t* strides, std::int64_t n, F f, std::index_sequence<k...>) noexcept {
  const bool dense = strides[0] == sizeof(R) && ((strides[k + 1] == sizeof(In)) && ...);
  std::int64_t i = 0;
  for (; dense && i + kBlock <= n; i += kBlock)
    map_block<raw, R, In...>(data[0] + i * strides[0], f,
                             static_cast<const char*>(data[k + 1] + i * strides[k + 1])...);
  for (; i < n; ++i)
    store_at<R>(data[0] + i * strides[0],
                to_storage<R>(f(argument<raw>(load_at<In>(data[k + 1] + i * strides[k + 1]))...)));
}

template <Op op, DType compute>
void op_loop(char* const* data, const std::int64_t* strides, std::int64_t n) {
  using C = type_of_t<compute>;
  using R = op_result_t<op, C>;
  constexpr int inputs = info(op).operands;
  constexpr OpFn<op, C> f{};
  if constexpr (op == Op::kWhere) map_loop<true, R, bool, C, C>(data, strides, n, f, std::make_index_sequence<3>{});
  else if constexpr (inputs == 1) map_loop<false, R, C>(data, strides, n, f, std::make_index_sequence<1>{});
  else if constexpr (inputs == 2) map_loop<false, R, C, C>(data, strides, n, f, std::make_index_sequence<2>{});
  else map_loop<false, R, C, C, C>(data, strides, n, f, std::make_index_sequence<3>{});
}

template <DTypeSet within>
struct LoopMaker {
  template <Op op, DType compute>
  static constexpr InnerLoop entry() {
    if constexpr (contains(within, compute)) return &op_loop<op, compute>;
    else return nullptr;
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
