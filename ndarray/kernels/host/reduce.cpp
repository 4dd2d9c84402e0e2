// Reductions on the host: picks the functor, casts what it cannot load or store itself.
#include "ndarray/kernels/host/elementwise_loops.h"
#include "ndarray/kernels/host/reduce_loops.h"

#include <memory>
#include <new>
#include <optional>

namespace dlbridge::nd::host_kernels {
namespace {

int dispatch(const HostReduction& call) {
  using functors::ReduceFamily;
  switch (call.route.family) {
    case ReduceFamily::kSum: return reduce_sum(call);
    case ReduceFamily::kProd: return reduce_prod(call);
    case ReduceFamily::kExtreme: return reduce_extreme(call);
    case ReduceFamily::kArgExtreme: return reduce_arg_extreme(call);
    case ReduceFamily::kCount:
      return call.args.op == ReduceOp::kAny || call.args.op == ReduceOp::kAll ? reduce_truth(call) : reduce_count(call);
    case ReduceFamily::kMoments: return reduce_moments(call);
    case ReduceFamily::kSumSquares: return reduce_sum_squares(call);
    default: return kErrorUnsupported;  // of magnitudes: none is left
  }
}

// Lengths of what elements are cast to.
template <DType from, DType compute>
void cast_magnitudes(char* const* data, const std::int64_t* strides, std::int64_t n) {
  using Number = type_of_t<compute>;
  const InnerLoop cast = cast_loop(from, compute), magnitude = find_arithmetic_loop(Op::kAbsolute, compute);
  alignas(64) char numbers[kBlock * sizeof(Number)];
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = std::min(kBlock, n - i);
    char *const in[] = {numbers, data[1] + i * strides[1]}, *const out[] = {data[0] + i * strides[0], numbers};
    const std::int64_t in_strides[] = {sizeof(Number), strides[1]}, out_strides[] = {strides[0], sizeof(Number)};
    cast(in, in_strides, count);
    magnitude(out, out_strides, count);
  }
}

InnerLoop magnitude_loop(DType from, DType compute) noexcept {
  if (from == compute) return find_arithmetic_loop(Op::kAbsolute, compute);
  InnerLoop loop = nullptr;
  const auto find = [&]<class T>() {
    constexpr DType kFrom = dtype_of_native<T>::value;
    loop = compute == DType::kComplex64 ? &cast_magnitudes<kFrom, DType::kComplex64>
                                        : &cast_magnitudes<kFrom, DType::kComplex128>;
    return 0;
  };
  static_cast<void>(visit_dtype<kAllSet>(from, find, kErrorUnsupported));
  return loop;
}

// What the functors take in place of elements, and the loop that makes it of these: lengths of complex numbers, float32
// of 16-bit floats, or what the route casts to. Null: the elements are taken as they are.
struct Fetch {
  functors::ReduceRoute route;
  InnerLoop cast;
};
std::optional<Fetch> fetch_of(DType in, functors::ReduceRoute route) noexcept {
  using functors::ReduceFamily;
  InnerLoop cast = nullptr;
  if (route.family == ReduceFamily::kSumAbs || route.family == ReduceFamily::kMaxAbs) {
    cast = magnitude_loop(in, route.casts ? route.load : in);
    route.family = route.family == ReduceFamily::kSumAbs ? ReduceFamily::kSum : ReduceFamily::kExtreme;
    route.load = real_part(route.load);
    route.casts = true;
  } else if (contains(kHalfSet, route.load)) {  // what is counted has the bits of integers
    cast = cast_loop(in, DType::kFloat32);
    route.load = DType::kFloat32;
    route.casts = true;
  } else if (route.casts) {
    cast = cast_loop(in, route.load);
  }
  return route.casts && cast == nullptr ? std::nullopt : std::optional(Fetch{route, cast});
}

void drop_inner_dim(int& ndim, std::int64_t* shape, std::int64_t* in_strides, std::int64_t* other) noexcept {
  --ndim;
  for (std::int64_t* const row : {shape, in_strides, other}) std::copy_n(row + 1, ndim, row);
}

// Runs a call whose functor stores the results. Of elements that are repeated, dims of stride 0, which are the
// innermost, each is read once; of equal ones the first has the position 0 along such a dim.
int run(ReduceArgs args, const Fetch& fetch) {
  const std::int64_t n = args.reduced_size;
  std::int64_t repeats = 1, copies = 1, copies_stride = 0;
  while (n > 0 && args.reduced_ndim > 0 && args.reduced_in_strides[0] == 0) {
    repeats *= args.reduced_shape[0];
    args.reduced_size /= args.reduced_shape[0];
    drop_inner_dim(args.reduced_ndim, args.reduced_shape, args.reduced_in_strides, args.index_strides);
  }
  if (args.kept_ndim > 0 && args.kept_in_strides[0] == 0) {
    copies = args.kept_shape[0];
    copies_stride = args.kept_out_strides[0];
    args.kept_size /= copies;
    drop_inner_dim(args.kept_ndim, args.kept_shape, args.kept_in_strides, args.kept_out_strides);
  }
  functors::Reduction functor = functors::reduction_of(args, fetch.route);
  functor.n = n;
  return dispatch({args, fetch.route, functor, fetch.cast, repeats, copies, copies_stride});
}

}  // namespace

int reduce(const ReduceArgs& args) {
  if (args.kept_size == 0) return 0;
  const std::optional<Fetch> fetch = fetch_of(args.in_dtype, functors::route_of(args));
  if (!fetch) return kErrorUnsupported;
  const functors::ReduceRoute& route = fetch->route;
  if (!functors::casts_result(args, route)) return run(args, *fetch);

  const auto itemsize = static_cast<std::int64_t>(info(route.stored).itemsize);
  const std::unique_ptr<char[]> results(new (std::nothrow) char[static_cast<std::size_t>(args.kept_size * itemsize)]);
  if (results == nullptr) return kErrorMemory;
  ReduceArgs dense = args;
  dense.out = results.get();
  std::int64_t step = itemsize;
  for (int d = 0; d < args.kept_ndim; ++d) {
    dense.kept_out_strides[d] = step;
    step *= args.kept_shape[d];
  }
  const int status = run(dense, *fetch);
  return status != 0 ? status : elementwise(functors::result_cast(args, route.stored, results.get()));
}

}  // namespace dlbridge::nd::host_kernels
