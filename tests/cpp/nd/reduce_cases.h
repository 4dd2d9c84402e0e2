// Reductions over strided views for the tests of the kernels, of the host and of CUDA: the views, the arguments as the
// front end would make them, and a plain oracle.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ndarray/kernels/api.h"
#include "tests/cpp/nd/values.h"

namespace dlbridge::nd::testing_cases {

using Dims = std::vector<std::int64_t>;

// A view into a buffer of its own; strides and offset in elements.
struct View {
  std::string id;
  Dims shape;
  Dims strides;
  std::int64_t offset = 0;

  std::int64_t size() const {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  std::int64_t span() const {  // elements of the buffer
    std::int64_t last = offset;
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (strides[d] > 0) last += std::max<std::int64_t>(shape[d] - 1, 0) * strides[d];
    return last + 1;
  }
};

inline View dense(const Dims& shape, std::int64_t offset = 0) {
  View view{"dense", shape, Dims(shape.size()), offset};
  std::int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    view.strides[d] = step;
    step *= shape[d];
  }
  for (const std::int64_t n : shape) view.id += "_" + std::to_string(n);
  if (offset != 0) view.id += "_at_" + std::to_string(offset);
  return view;
}

// The axes last to first: what x.transpose() is.
inline View transposed(View view) {
  view.id += "_transposed";
  std::reverse(view.shape.begin(), view.shape.end());
  std::reverse(view.strides.begin(), view.strides.end());
  return view;
}
// Every second element of an axis; from the end with a negative step.
inline View stepped(View view, std::size_t axis, std::int64_t step) {
  view.id += "_step" + std::to_string(axis) + "_" + std::to_string(step);
  const std::int64_t n = (view.shape[axis] + std::abs(step) - 1) / std::abs(step);
  if (step < 0 && view.shape[axis] > 0) view.offset += (view.shape[axis] - 1) * view.strides[axis];
  view.shape[axis] = n;
  view.strides[axis] *= step;
  return view;
}

struct Call {
  ReduceArgs args{};
  std::vector<unsigned char> out;
};

namespace detail {
struct Dim {
  std::int64_t n, in, out;  // strides in bytes; out: of the output or of the position
};
// Innermost first, extents of 1 dropped, neighbours merged that both operands walk as one.
inline std::vector<Dim> merged(std::vector<Dim> dims) {
  std::erase_if(dims, [](const Dim& d) { return d.n == 1; });
  std::stable_sort(dims.begin(), dims.end(),
                   [](const Dim& a, const Dim& b) { return std::abs(a.in) < std::abs(b.in); });
  std::vector<Dim> result;
  for (const Dim& d : dims) {
    if (!result.empty() && d.in == result.back().in * result.back().n && d.out == result.back().out * result.back().n)
      result.back().n *= d.n;
    else result.push_back(d);
  }
  return result;
}
}  // namespace detail

// `reduced`: bit d for axis d. The output is dense in C order.
inline ReduceArgs make_args(ReduceOp op, DType in, DType accumulate, DType out_dtype, const View& view,
                            unsigned reduced) {
  ReduceArgs args{};
  args.op = op;
  args.in_dtype = in;
  args.accumulate = accumulate;
  args.out_dtype = out_dtype;
  const std::int64_t itemsize = info(in).itemsize;
  std::vector<detail::Dim> kept, inner;
  std::int64_t out_step = info(out_dtype).itemsize, position = 1;
  for (std::size_t d = view.shape.size(); d-- > 0;) {
    const bool is_reduced = (reduced >> d & 1) != 0;
    std::int64_t& step = is_reduced ? position : out_step;
    (is_reduced ? inner : kept).push_back({view.shape[d], view.strides[d] * itemsize, step});
    step *= view.shape[d];
  }
  const auto fill = [](const std::vector<detail::Dim>& dims, int& ndim, std::int64_t& size, std::int64_t* shape,
                       std::int64_t* in_strides, std::int64_t* other) {
    size = 1;
    ndim = 0;
    for (const detail::Dim& d : detail::merged(dims)) {
      shape[ndim] = d.n;
      in_strides[ndim] = d.in;
      other[ndim++] = d.out;
      size *= d.n;
    }
  };
  fill(kept, args.kept_ndim, args.kept_size, args.kept_shape, args.kept_in_strides, args.kept_out_strides);
  fill(inner, args.reduced_ndim, args.reduced_size, args.reduced_shape, args.reduced_in_strides, args.index_strides);
  return args;
}

inline DType real_dtype(DType t) {
  if (t == DType::kComplex64) return DType::kFloat32;
  return t == DType::kComplex128 ? DType::kFloat64 : t;
}

// The dtypes that the front end gives an operation without a dtype argument.
inline DType default_accumulate(ReduceOp op, DType in) {
  const bool sums = op == ReduceOp::kSum || op == ReduceOp::kProd;
  if (sums && contains(kBoolSet | kSignedSet, in)) return DType::kInt64;
  if (sums && contains(kUnsignedSet, in)) return DType::kUInt64;
  if (op >= ReduceOp::kMean && op <= ReduceOp::kNormMinusInf && !contains(kInexactSet, in)) return DType::kFloat64;
  return in;
}
inline DType default_out(ReduceOp op, DType in) {
  switch (op) {
    case ReduceOp::kAny:
    case ReduceOp::kAll: return DType::kBool;
    case ReduceOp::kCountNonzero:
    case ReduceOp::kArgmax:
    case ReduceOp::kArgmin: return DType::kInt64;
    case ReduceOp::kVar:
    case ReduceOp::kStd:
    case ReduceOp::kNorm1:
    case ReduceOp::kNorm2:
    case ReduceOp::kNormInf:
    case ReduceOp::kNormMinusInf: return real_dtype(default_accumulate(op, in));
    default: return default_accumulate(op, in);
  }
}

// Small values that every dtype holds exactly (quarters for floats), with ties and zeros; NaN and infinities on demand.
inline std::vector<unsigned char> random_buffer(DType dtype, std::int64_t n, std::uint32_t seed,
                                                bool specials = false) {
  const std::size_t itemsize = info(dtype).itemsize;
  std::vector<unsigned char> bytes(static_cast<std::size_t>(n) * itemsize);
  std::mt19937 random(seed);
  const bool inexact = contains(kInexactSet, dtype);
  const double low = contains(kSignedSet | kInexactSet, dtype) ? -9 : 0;
  const auto draw = [&] {
    if (specials && inexact && random() % 61 == 0) return std::numeric_limits<double>::quiet_NaN();
    if (specials && inexact && random() % 31 == 0)
      return (random() & 1 ? 1 : -1) * std::numeric_limits<double>::infinity();
    if (dtype == DType::kBool) return static_cast<double>(random() & 1);
    const double scale = inexact ? 4 : 1;
    return low + static_cast<double>(random() % static_cast<unsigned>(18 * scale + 1)) / scale;
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    const double real = draw();
    const double imaginary = contains(kComplexSet, dtype) ? draw() : 0;
    put_value(dtype, bytes.data() + i * itemsize, {real, imaginary});
  }
  return bytes;
}

inline bool is_nan(Value v) { return std::isnan(v.real()) || std::isnan(v.imag()); }

namespace detail {
// One row's answer, in float64: values are small, so that sums are exact where the functors' are.
struct Oracle {
  ReduceOp op;
  double correction;

  static bool greater(Value a, Value b) { return a.real() > b.real() || (a.real() == b.real() && a.imag() > b.imag()); }
  Value operator()(const std::vector<Value>& x) const {
    const double n = static_cast<double>(x.size());
    Value sum = 0, product = 1;
    double squares = 0, magnitudes = 0, largest = -INFINITY, smallest = INFINITY, count = 0;
    bool nan = false;
    for (const Value v : x) {
      sum += v;
      product = Value(product.real() * v.real() - product.imag() * v.imag(),
                      product.real() * v.imag() + product.imag() * v.real());
      squares += std::norm(v);
      magnitudes += std::abs(v);
      largest = std::max(largest, std::abs(v));
      smallest = std::min(smallest, std::abs(v));
      count += v != Value(0) ? 1 : 0;
      nan = nan || std::isnan(std::abs(v));  // |inf + nan j| is inf
    }
    const double not_a_number = std::numeric_limits<double>::quiet_NaN();
    switch (op) {
      case ReduceOp::kSum: return sum;
      case ReduceOp::kProd: return product;
      case ReduceOp::kAny: return count > 0;
      case ReduceOp::kAll: return count == n;
      case ReduceOp::kCountNonzero: return count;
      case ReduceOp::kMean: return sum / n;
      case ReduceOp::kNorm1: return magnitudes;
      case ReduceOp::kNorm2: return std::sqrt(squares);
      case ReduceOp::kNormInf: return nan ? not_a_number : largest;
      case ReduceOp::kNormMinusInf: return nan ? not_a_number : smallest;
      case ReduceOp::kVar:
      case ReduceOp::kStd: {
        double m2 = 0;
        for (const Value v : x) m2 += std::norm(v - sum / n);
        const double variance = m2 / std::max(n - correction, 0.0);
        return op == ReduceOp::kStd ? std::sqrt(variance) : variance;
      }
      default: break;
    }
    std::size_t best = 0;
    const bool lowest = op == ReduceOp::kMin || op == ReduceOp::kArgmin;
    for (std::size_t i = 1; i < x.size() && !is_nan(x[best]); ++i)
      if (is_nan(x[i]) || (lowest ? greater(x[best], x[i]) : greater(x[i], x[best]))) best = i;
    if (op == ReduceOp::kArgmax || op == ReduceOp::kArgmin) return static_cast<double>(best);
    return x[best];
  }
};
}  // namespace detail

// Every kept element's answer, in C order.
inline std::vector<Value> expected(ReduceOp op, DType in, const unsigned char* buffer, const View& view,
                                   unsigned reduced, double correction = 0) {
  const detail::Oracle oracle{op, correction};
  const std::size_t ndim = view.shape.size();
  Dims kept, inner;
  for (std::size_t d = 0; d < ndim; ++d)
    ((reduced >> d & 1) != 0 ? inner : kept).push_back(static_cast<std::int64_t>(d));
  const auto next = [&](Dims& index, const Dims& axes) {
    for (std::size_t k = axes.size(); k-- > 0;) {
      const auto d = static_cast<std::size_t>(axes[k]);
      if (++index[d] < view.shape[d]) return true;
      index[d] = 0;
    }
    return false;
  };
  std::vector<Value> result;
  for (const std::int64_t n : view.shape)
    if (n == 0) return result;
  Dims index(ndim, 0);
  do {
    std::vector<Value> row;
    do {
      std::int64_t at = view.offset;
      for (std::size_t d = 0; d < ndim; ++d) at += index[d] * view.strides[d];
      row.push_back(value_at(in, buffer + at * info(in).itemsize));
    } while (next(index, inner));
    result.push_back(oracle(row));
  } while (next(index, kept));
  return result;
}

// A relative error that the rounding of both explains; infinities must be the same. Which of several complex NaN a
// maximum returns is left open.
inline bool close(Value got, Value want, DType out, std::int64_t n) {
  if (contains(kComplexSet, out) && is_nan(want)) return is_nan(got);
  unsigned char rounded[16];
  put_value(out, rounded, want);
  want = value_at(out, rounded);
  const auto part = [&](double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    if (a == b) return true;
    double epsilon = 0;
    switch (out) {
      case DType::kFloat16: epsilon = 0x1p-10; break;
      case DType::kBFloat16: epsilon = 0x1p-7; break;
      case DType::kFloat32:
      case DType::kComplex64: epsilon = 0x1p-23; break;
      case DType::kFloat64:
      case DType::kComplex128: epsilon = 0x1p-50; break;
      default: return false;
    }
    return std::abs(a - b) <= epsilon * (8 + std::log2(static_cast<double>(n) + 1)) * (1 + std::abs(want));
  };
  return part(got.real(), want.real()) && part(got.imag(), want.imag());
}

// A scan of dense elements.
inline ScanArgs dense_scan(ScanOp op, DType in, DType out, std::int64_t outer, std::int64_t n, std::int64_t inner,
                           const void* x, void* y) {
  const std::int64_t size = info(in).itemsize;
  return {op, in, out, outer, n, inner, x, y, {}, 0, {n * inner * size, inner * size, size}};
}

}  // namespace dlbridge::nd::testing_cases
