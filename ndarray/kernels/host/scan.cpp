// Scans on the host: chunks are cast to the accumulator's dtype, scanned with a carry, and cast to the output's.
#include <algorithm>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/reduce_route.h"
#include "ndarray/kernels/host/elementwise_loops.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kChunk = 256;

struct ScanCall {
  const ScanArgs& args;
  InnerLoop load;   // in_dtype -> the accumulator's dtype
  InnerLoop store;  // the accumulator's dtype -> out_dtype
  std::int64_t out_size;
  bool is_plain;  // no dtype is another than the accumulator's

  const char* in(std::int64_t outer, std::int64_t i, std::int64_t inner) const {
    return static_cast<const char*>(args.in) + outer * args.in_steps[0] + i * args.in_steps[1] +
           inner * args.in_steps[2];
  }
  char* out(std::int64_t outer, std::int64_t i, std::int64_t inner) const {
    return static_cast<char*>(args.out) + ((outer * args.n + i) * args.inner + inner) * out_size;
  }
};

template <class T>
void load(const ScanCall& call, const char* in, std::int64_t step, std::int64_t count, T* buffer) {
  char* const data[2] = {reinterpret_cast<char*>(buffer), const_cast<char*>(in)};
  const std::int64_t strides[2] = {sizeof(T), step};
  call.load(data, strides, count);
}
template <class T>
void store(const ScanCall& call, char* out, std::int64_t count, T* buffer) {
  char* const data[2] = {out, reinterpret_cast<char*>(buffer)};
  const std::int64_t strides[2] = {call.out_size, sizeof(T)};
  call.store(data, strides, count);
}

// merge(a, b) of accumulators, which begin as `identity`.
template <class T, class Merge>
void scan_row(const ScanCall& call, std::int64_t outer, T identity, Merge merge) {
  const std::int64_t n = call.args.n, step = call.args.in_steps[1];
  T carry = identity;
  if (call.is_plain) {
    const char* in = call.in(outer, 0, 0);
    char* out = call.out(outer, 0, 0);
    for (std::int64_t i = 0; i < n; ++i, in += step, out += sizeof(T)) {
      carry = merge(carry, load_at<T>(in));
      store_at(out, carry);
    }
    return;
  }
  T buffer[kChunk];
  for (std::int64_t i = 0; i < n; i += kChunk) {
    const std::int64_t count = std::min(kChunk, n - i);
    load(call, call.in(outer, i, 0), step, count, buffer);
    for (std::int64_t k = 0; k < count; ++k) buffer[k] = carry = merge(carry, buffer[k]);
    store(call, call.out(outer, i, 0), count, buffer);
  }
}

// Columns side by side: each keeps a carry while the rows go by.
template <class T, class Merge>
void scan_columns(const ScanCall& call, std::int64_t outer, T identity, Merge merge) {
  const std::int64_t inner = call.args.inner;
  for (std::int64_t c = 0; c < inner; c += kChunk) {
    const std::int64_t count = std::min(kChunk, inner - c);
    T carry[kChunk], buffer[kChunk];
    std::fill_n(carry, count, identity);
    for (std::int64_t i = 0; i < call.args.n; ++i) {
      load(call, call.in(outer, i, c), call.args.in_steps[2], count, buffer);
      for (std::int64_t k = 0; k < count; ++k) carry[k] = merge(carry[k], buffer[k]);
      store(call, call.out(outer, i, c), count, carry);
    }
  }
}

template <class T, class Merge>
int scan_by(const ScanCall& call, T identity, Merge merge) {
  for (std::int64_t o = 0; o < call.args.outer; ++o)
    call.args.inner == 1 ? scan_row(call, o, identity, merge) : scan_columns(call, o, identity, merge);
  return 0;
}

template <class T>
int scan_as(const ScanCall& call) {
  if (call.args.op == ScanOp::kSum) return scan_by(call, T(0), [](T a, T b) { return functors::Sum<T>::merge(a, b); });
  return scan_by(call, T(1), [](T a, T b) { return functors::Prod<T>::merge(a, b); });
}

}  // namespace

int scan(const ScanArgs& args) {
  if (args.outer == 0 || args.n == 0 || args.inner == 0) return 0;
  const DType accumulator = functors::accumulator_of(args.out_dtype);
  const ScanCall call{args, cast_loop(args.in_dtype, accumulator), cast_loop(accumulator, args.out_dtype),
                      info(args.out_dtype).itemsize, args.in_dtype == accumulator && args.out_dtype == accumulator};
  if (call.load == nullptr || call.store == nullptr) return kErrorUnsupported;
  return visit_dtype<functors::kCastSet>(accumulator, [&]<class T>() { return scan_as<T>(call); }, kErrorUnsupported);
}

}  // namespace dlbridge::nd::host_kernels
