// Which functor serves a reduction, and on which dtype: the one decision of host and CUDA.
#pragma once

#include <cstdlib>

#include "ndarray/kernels/functors/reduce.h"

namespace dlbridge::nd::functors {

enum class ReduceFamily : std::uint8_t {
  kSum,
  kProd,
  kExtreme,
  kArgExtreme,
  kCount,
  kMoments,
  kSumSquares,
  kSumAbs,
  kMaxAbs
};

struct ReduceRoute {
  ReduceFamily family;
  DType load;    // the functor's input: in_dtype (or one with the same bits), else what each element is cast to first
  bool casts;    // elements have to be cast to `load`
  DType stored;  // what the functor stores: out_dtype (or one with the same bits), else a cast of the result follows
};

// The dtype that the functors accumulate in when asked for `t`; exact for every dtype that is not wider.
constexpr DType accumulator_of(DType t) noexcept {
  if (contains(kComplexSet, t) || t == DType::kFloat64) return t;
  return contains(kFloatSet, t) ? DType::kFloat32 : DType::kInt64;
}

namespace detail {
constexpr bool is_exact(DType t) noexcept { return contains(kBoolSet | kIntSet, t); }

constexpr ReduceFamily family_of(ReduceOp op, DType load) noexcept {
  const bool is_complex = contains(kComplexSet, load);
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean: return load == DType::kBool ? ReduceFamily::kCount : ReduceFamily::kSum;
    case ReduceOp::kProd: return load == DType::kBool ? ReduceFamily::kCount : ReduceFamily::kProd;
    case ReduceOp::kMax:
    case ReduceOp::kMin: return ReduceFamily::kExtreme;
    case ReduceOp::kAny:
    case ReduceOp::kAll:
    case ReduceOp::kCountNonzero: return ReduceFamily::kCount;
    case ReduceOp::kVar:
    case ReduceOp::kStd: return ReduceFamily::kMoments;
    case ReduceOp::kNorm1: return is_complex ? ReduceFamily::kSumAbs : ReduceFamily::kSum;
    case ReduceOp::kNorm2: return ReduceFamily::kSumSquares;
    case ReduceOp::kNormInf:
    case ReduceOp::kNormMinusInf: return is_complex ? ReduceFamily::kMaxAbs : ReduceFamily::kExtreme;
    default: return ReduceFamily::kArgExtreme;
  }
}

// True if `accumulate` asks for no more than what the functor over `in` does anyway.
constexpr bool accumulates_natively(const ReduceArgs& args) noexcept {
  const DType in = args.in_dtype, accumulate = args.accumulate;
  switch (args.op) {
    case ReduceOp::kSum:
    case ReduceOp::kProd:
      if (is_exact(in)) return is_exact(accumulate);
      break;
    case ReduceOp::kMean:
      // An exact 64-bit sum, where it cannot overflow.
      if (is_exact(in))
        return info(in).itemsize <= 4 && args.reduced_size < (std::int64_t{1} << 31) && contains(kFloatSet, accumulate);
      break;
    case ReduceOp::kVar:
    case ReduceOp::kStd:
    case ReduceOp::kNorm1:
    case ReduceOp::kNorm2:
    case ReduceOp::kNormInf:
    case ReduceOp::kNormMinusInf:
      if (is_exact(in)) return false;
      break;
    default: return true;  // compares elements; nothing accumulates
  }
  const bool same_kind = contains(kComplexSet, in) == contains(kComplexSet, accumulate) && !is_exact(accumulate);
  return same_kind && info(accumulator_of(accumulate)).itemsize <= info(accumulator_of(in)).itemsize;
}

constexpr DType real_result(DType out) noexcept { return contains(kFloatSet, out) ? out : DType::kFloat64; }

constexpr DType stored_dtype(const ReduceArgs& args, DType load) noexcept {
  switch (args.op) {
    case ReduceOp::kAny:
    case ReduceOp::kAll: return DType::kBool;
    case ReduceOp::kCountNonzero:
    case ReduceOp::kArgmax:
    case ReduceOp::kArgmin: return DType::kInt64;
    case ReduceOp::kMax:
    case ReduceOp::kMin: return contains(kFloatSet, load) ? real_result(args.out_dtype) : load;
    case ReduceOp::kSum:
    case ReduceOp::kProd:
      if (is_exact(load)) {
        if (args.out_dtype == DType::kInt64 || args.out_dtype == DType::kUInt64) return args.out_dtype;
        return load == DType::kUInt64 || load == DType::kUInt32 ? DType::kUInt64 : DType::kInt64;
      }
      [[fallthrough]];
    case ReduceOp::kMean:
      if (contains(kComplexSet, load)) return load;
      [[fallthrough]];
    default: return real_result(args.out_dtype);
  }
}

// Dtypes whose elements are alike to the functor share one.
constexpr DType functor_dtype(ReduceFamily family, DType load) noexcept {
  switch (family) {
    case ReduceFamily::kCount:
      switch (info(load).itemsize) {
        case 1: return DType::kUInt8;
        case 2: return DType::kUInt16;
        case 4: return DType::kUInt32;
        case 8: return DType::kUInt64;
        default: return DType::kComplex128;
      }
    case ReduceFamily::kSum:
    case ReduceFamily::kProd: return load == DType::kUInt64 ? DType::kInt64 : load;
    default: return load == DType::kBool ? DType::kUInt8 : load;
  }
}
}  // namespace detail

constexpr ReduceRoute route_of(const ReduceArgs& args) noexcept {
  const bool native = detail::accumulates_natively(args);
  DType load = native ? args.in_dtype : accumulator_of(args.accumulate);
  const bool needs_float = args.op >= ReduceOp::kMean && args.op <= ReduceOp::kNormMinusInf;
  if (!native && needs_float && load == DType::kInt64) load = DType::kFloat64;
  ReduceRoute route{};
  route.family = detail::family_of(args.op, load);
  route.load = detail::functor_dtype(route.family, load);
  route.casts = !native && args.in_dtype != load;
  route.stored = detail::stored_dtype(args, load);
  return route;
}

// The functors' share of the call. The bit preparation is that of the elements that are loaded.
constexpr Reduction reduction_of(const ReduceArgs& args, const ReduceRoute& route) noexcept {
  // Positions ascend along the walk if every dim's step leads past all positions of the dims inside it.
  bool ascending = true;
  std::int64_t inside = 0;
  for (int d = 0; d < args.reduced_ndim; ++d) {
    ascending = ascending && args.index_strides[d] > inside;
    inside += (args.reduced_shape[d] - 1) * args.index_strides[d];
  }
  const DType loaded = route.casts ? route.load : args.in_dtype;
  return Reduction{args.op, route.stored, ascending, bit_prep(args.op, loaded), args.reduced_size, args.correction};
}

// The result of a route is cast where out_dtype has other bits than what the functor stores.
constexpr bool casts_result(const ReduceArgs& args, const ReduceRoute& route) noexcept {
  return route.stored != args.out_dtype;
}

// Copies the dense results (in the order of the kept dims) to the output, cast to its dtype.
inline ElementwiseArgs result_cast(const ReduceArgs& args, DType stored, void* results) noexcept {
  ElementwiseArgs cast{};
  cast.op = Op::kPositive;
  cast.compute = args.out_dtype;
  cast.operands = 2;
  cast.dtype[0] = args.out_dtype;
  cast.dtype[1] = stored;
  cast.data[0] = args.out;
  cast.data[1] = results;
  cast.size = args.kept_size;
  cast.ndim = args.kept_ndim;
  cast.stream = args.stream;
  int order[kLoopDims]{};
  const auto step_of = [&](int d) { return std::abs(args.kept_out_strides[d]); };
  for (int d = 0; d < args.kept_ndim; ++d) {  // insertion by the output's stride
    int i = d;
    for (; i > 0 && step_of(order[i - 1]) > step_of(d); --i) order[i] = order[i - 1];
    order[i] = d;
  }
  std::int64_t dense[kLoopDims]{};
  std::int64_t step = info(stored).itemsize;
  for (int d = 0; d < args.kept_ndim; ++d) {
    dense[d] = step;
    step *= args.kept_shape[d];
  }
  bool contiguous = true;
  std::int64_t out_step = info(args.out_dtype).itemsize;
  for (int i = 0; i < args.kept_ndim; ++i) {
    const int d = order[i];
    cast.shape[i] = args.kept_shape[d];
    cast.strides[0][i] = args.kept_out_strides[d];
    cast.strides[1][i] = dense[d];
    if (cast.strides[0][i] < 0) {  // an output is walked upwards
      cast.data[0] = static_cast<char*>(cast.data[0]) + (cast.shape[i] - 1) * cast.strides[0][i];
      cast.data[1] = static_cast<char*>(cast.data[1]) + (cast.shape[i] - 1) * cast.strides[1][i];
      cast.strides[0][i] = -cast.strides[0][i];
      cast.strides[1][i] = -cast.strides[1][i];
    }
    contiguous = contiguous && d == i && cast.strides[0][i] == out_step && cast.strides[1][i] == dense[i];
    out_step *= cast.shape[i];
  }
  cast.contiguous = contiguous;
  return cast;
}

// Calls f.template operator()<Functor>() for a family's functor over a run-time dtype.
template <template <class> class Functor, DTypeSet Set, class F>
int visit_functor(DType load, F&& f) {
  return visit_dtype<Set>(load, [&]<class T>() { return f.template operator()<Functor<T>>(); }, kErrorUnsupported);
}

inline constexpr DTypeSet kSumSet = (kIntSet & ~bit(DType::kUInt64)) | kInexactSet;
inline constexpr DTypeSet kCastSet = bit(DType::kInt64) | bit(DType::kFloat32) | bit(DType::kFloat64) | kComplexSet;

template <template <class> class Functor, class F>
int visit_bits(DType load, F&& f) {
  if (load == DType::kComplex128) return f.template operator()<Functor<Bits128>>();
  return visit_functor<Functor, kUnsignedSet>(load, f);
}
template <class F>
int visit_count(DType load, F&& f) {
  return visit_bits<Count>(load, f);
}

}  // namespace dlbridge::nd::functors
