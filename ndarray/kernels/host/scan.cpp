// Scans on the host: chunks are cast to the accumulator's dtype, scanned with a carry, and cast to the output's.
#include <algorithm>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/reduce_route.h"
#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kChunk = 256;

struct ScanCall {
  const ScanArgs& args;
  InnerLoop load;   // in_dtype -> the accumulator's dtype
  InnerLoop store;  // the accumulator's dtype -> out_dtype
  std::int64_t in_size, out_size;

  const char* in(std::int64_t i) const { return static_cast<const char*>(args.in) + i * in_size; }
  char* out(std::int64_t i) const { return static_cast<char*>(args.out) + i * out_size; }
};

template <class T>
T identity(ScanOp op) {
  return T(op == ScanOp::kSum ? 0 : 1);
}

template <class T>
T merge(ScanOp op, T a, T b) {
  return op == ScanOp::kSum ? functors::Sum<T>::merge(a, b) : functors::Prod<T>::merge(a, b);
}

template <class T>
void load(const ScanCall& call, std::int64_t first, std::int64_t count, T* buffer) {
  char* const data[2] = {reinterpret_cast<char*>(buffer), const_cast<char*>(call.in(first))};
  const std::int64_t strides[2] = {sizeof(T), call.in_size};
  call.load(data, strides, count);
}
template <class T>
void store(const ScanCall& call, std::int64_t first, std::int64_t count, T* buffer) {
  char* const data[2] = {call.out(first), reinterpret_cast<char*>(buffer)};
  const std::int64_t strides[2] = {call.out_size, sizeof(T)};
  call.store(data, strides, count);
}

template <class T>
void scan_row(const ScanCall& call, std::int64_t first) {
  T carry = identity<T>(call.args.op);
  T buffer[kChunk];
  for (std::int64_t i = 0; i < call.args.n; i += kChunk) {
    const std::int64_t count = std::min(kChunk, call.args.n - i);
    load(call, first + i, count, buffer);
    for (std::int64_t k = 0; k < count; ++k) buffer[k] = carry = merge(call.args.op, carry, buffer[k]);
    store(call, first + i, count, buffer);
  }
}

// Columns side by side: each keeps a carry while the rows go by.
template <class T>
void scan_columns(const ScanCall& call, std::int64_t first) {
  const std::int64_t inner = call.args.inner;
  for (std::int64_t c = 0; c < inner; c += kChunk) {
    const std::int64_t count = std::min(kChunk, inner - c);
    T carry[kChunk], buffer[kChunk];
    std::fill_n(carry, count, identity<T>(call.args.op));
    for (std::int64_t i = 0; i < call.args.n; ++i) {
      load(call, first + i * inner + c, count, buffer);
      for (std::int64_t k = 0; k < count; ++k) carry[k] = merge(call.args.op, carry[k], buffer[k]);
      store(call, first + i * inner + c, count, carry);
    }
  }
}

template <class T>
int scan_as(const ScanCall& call) {
  const std::int64_t plane = call.args.n * call.args.inner;
  for (std::int64_t o = 0; o < call.args.outer; ++o)
    call.args.inner == 1 ? scan_row<T>(call, o * plane) : scan_columns<T>(call, o * plane);
  return 0;
}

}  // namespace

int scan(const ScanArgs& args) {
  if (args.outer == 0 || args.n == 0 || args.inner == 0) return 0;
  const DType accumulator = functors::accumulator_of(args.out_dtype);
  const ScanCall call{args, cast_loop(args.in_dtype, accumulator), cast_loop(accumulator, args.out_dtype),
                      info(args.in_dtype).itemsize, info(args.out_dtype).itemsize};
  if (call.load == nullptr || call.store == nullptr) return kErrorUnsupported;
  return visit_dtype<functors::kCastSet>(accumulator, [&]<class T>() { return scan_as<T>(call); }, kErrorUnsupported);
}

}  // namespace dlbridge::nd::host_kernels
