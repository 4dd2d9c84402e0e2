// The host's reduction engine: walks kept positions, and for each the reduced ones as a balanced tree over short runs,
// so that the rounding error of a sum grows with the logarithm of its length.
#pragma once

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/reduce_route.h"
#include "ndarray/kernels/host/reduce_runs.h"

namespace dlbridge::nd::host_kernels {

inline constexpr std::int64_t kRowsTogether = 128;
inline constexpr std::int64_t kFewRows = 4;  // below, a row is reduced for itself however short

// A call without the dims that repeat elements: no stride of `args` is 0 but of an outer kept dim.
struct HostReduction {
  ReduceArgs args;
  functors::ReduceRoute route;
  functors::Reduction functor;
  InnerLoop cast;              // null: elements are loaded as they are
  std::int64_t repeats;        // how often each element occurs that is reduced
  std::int64_t copies;         // how often each result is stored,
  std::int64_t copies_stride;  // that many bytes apart
};

template <class R>
class Reducer {
 public:
  using In = typename R::In;
  using Acc = typename R::Acc;

  explicit Reducer(const HostReduction& call) : call_(call), args_(call.args), runs_{R{{call.functor}}, call.cast} {}

  int run() const {
    const std::int64_t width = args_.kept_ndim > 0 ? args_.kept_shape[0] : 1;
    // Columns side by side share the cache lines of each row. Of rows that are shorter than a vector, too, many make
    // one: as columns.
    const bool columns =
        args_.kept_ndim > 0 &&
        (args_.reduced_ndim == 0 || std::abs(args_.kept_in_strides[0]) < std::abs(args_.reduced_in_strides[0]) ||
         (has_columns_v<R> && (!stops_early_v<R> || is_arg_extreme_v<R>) && width >= kFewRows &&
          args_.reduced_shape[0] < kReduceBatch));
    // Of short rows, too, several are reduced together: a call for each would take longer than the row.
    const std::int64_t most = columns ? kMostColumns<R> : args_.reduced_size <= leaf_of(false) ? kRowsTogether : 1;
    std::int64_t index[kLoopDims]{};
    const char* in = static_cast<const char*>(args_.in);
    char* out = static_cast<char*>(args_.out);
    for (std::int64_t done = 0; done < args_.kept_size; done += width) {
      for (std::int64_t c = 0; c < width; c += most)
        reduce_together(in + c * kept_stride(), out + c * out_stride(), {std::min(most, width - c), columns});
      for (int d = 1; d < args_.kept_ndim; ++d) {
        in += args_.kept_in_strides[d];
        out += args_.kept_out_strides[d];
        if (++index[d] < args_.kept_shape[d]) break;
        in -= args_.kept_in_strides[d] * args_.kept_shape[d];
        out -= args_.kept_out_strides[d] * args_.kept_shape[d];
        index[d] = 0;
      }
    }
    return 0;
  }

 private:
  // Kept positions along the innermost kept dim that are reduced together.
  struct Group {
    std::int64_t count;
    bool is_columns;
  };

  std::int64_t kept_stride() const { return args_.kept_ndim > 0 ? args_.kept_in_strides[0] : 0; }
  std::int64_t out_stride() const { return args_.kept_ndim > 0 ? args_.kept_out_strides[0] : 0; }

  static std::int64_t leaf_of(bool is_columns) noexcept {
    if (is_columns) return kColumnLeaf;
    if constexpr (is_arg_extreme_v<R> || is_extreme_v<R> || is_truth_v<R>) return kLongBytes / std::int64_t{sizeof(In)};
    else return is_exact_v<R> ? kExactLeaf : kReduceLeaf;
  }

  void reduce_together(const char* in, char* out, Group group) const {
    static_assert(kRowsTogether <= kMostColumns<R>);
    Acc acc[kMostColumns<R>];
    std::fill_n(acc, group.count, runs_.functor.identity());
    if (args_.reduced_size > 0) reduce_rows(in, group, 0, args_.reduced_size, acc);
    if (call_.repeats > 1)
      for (std::int64_t c = 0; c < group.count; ++c) acc[c] = repeated(acc[c], call_.repeats);
    for (std::int64_t copy = 0; copy < call_.copies; ++copy) store(acc, out + copy * call_.copies_stride, group.count);
  }

  // What `n` times the elements of `acc` make.
  Acc repeated(Acc acc, std::int64_t n) const {
    for (Acc result = runs_.functor.identity();;) {
      if (n & 1) runs_.functor.combine(result, acc);
      if ((n >>= 1) == 0) return result;
      const Acc other = acc;
      runs_.functor.combine(acc, other);
    }
  }

  void store(const Acc* acc, char* out, std::int64_t count) const {
    std::int64_t c = 0;
    if constexpr (is_truth_v<R> || (is_extreme_v<R> && sizeof(In) == sizeof(Acc))) {  // a vector at a time
      using Out = std::conditional_t<is_truth_v<R>, bool, In>;
      R functor = runs_.functor;
      if constexpr (is_float_v<In>) functor.out = dtype_of_native<In>::value;
      if (out_stride() == sizeof(Out) && runs_.functor.out == functor.out)
        for (; c + kReduceBatch <= count; c += kReduceBatch) {
          Out stored[kReduceBatch];
          for (std::int64_t k = 0; k < kReduceBatch; ++k) functor.store(acc[c + k], stored + k);
          std::memcpy(out + c * out_stride(), stored, sizeof(stored));
        }
    }
    for (; c < count; ++c) runs_.functor.store(acc[c], out + c * out_stride());
  }

  void reduce_rows(const char* in, Group group, std::int64_t first, std::int64_t last, Acc* acc) const {
    const std::int64_t leaf = leaf_of(group.is_columns);
    if (last - first <= leaf) return reduce_leaf(in, group, first, last, acc);
    const std::int64_t middle = first + ((last - first) / 2 + leaf - 1) / leaf * leaf;
    reduce_rows(in, group, first, middle, acc);
    if (is_all_decided(group, acc)) return;
    if constexpr (is_arg_extreme_v<R> || is_count_v<R>) return reduce_rows(in, group, middle, last, acc);
    Acc other[kMostColumns<R>];
    std::fill_n(other, group.count, runs_.functor.identity());
    reduce_rows(in, group, middle, last, other);
    for (std::int64_t c = 0; c < group.count; ++c) runs_.functor.combine(acc[c], other[c]);
  }
  bool is_all_decided(Group group, const Acc* acc) const {
    return std::all_of(acc, acc + group.count, [&](const Acc& one) { return is_decided(runs_.functor, one); });
  }

  // Splits [first, last) into runs along the innermost reduced dim.
  void reduce_leaf(const char* in, Group group, std::int64_t first, std::int64_t last, Acc* acc) const {
    std::int64_t index[kLoopDims]{};
    std::int64_t position = 0;
    for (std::int64_t d = 0, rest = first; rest > 0 && d < args_.reduced_ndim; ++d) {
      index[d] = rest % args_.reduced_shape[d];
      rest /= args_.reduced_shape[d];
      in += index[d] * args_.reduced_in_strides[d];
      position += index[d] * args_.index_strides[d];
    }
    if (args_.reduced_ndim == 0) return reduce_run({in, 0, 1, 0, 0, group.count, kept_stride(), group.is_columns}, acc);
    while (first < last) {
      const std::int64_t length = std::min(last - first, args_.reduced_shape[0] - index[0]);
      reduce_run({in, args_.reduced_in_strides[0], length, position, args_.index_strides[0], group.count, kept_stride(),
                  group.is_columns},
                 acc);
      first += length;
      if (first < last && is_all_decided(group, acc)) return;
      in -= index[0] * args_.reduced_in_strides[0];
      position -= index[0] * args_.index_strides[0];
      index[0] = 0;
      for (int d = 1; d < args_.reduced_ndim; ++d) {
        in += args_.reduced_in_strides[d];
        position += args_.index_strides[d];
        if (++index[d] < args_.reduced_shape[d]) break;
        in -= args_.reduced_in_strides[d] * args_.reduced_shape[d];
        position -= args_.index_strides[d] * args_.reduced_shape[d];
        index[d] = 0;
      }
    }
  }

  void reduce_run(const ReduceRun& run, Acc* acc) const {
    if constexpr (is_complex_v<In> && kLaneParts<R> == 1) reduce_complex_run(runs_, run, acc);
    else host_kernels::reduce_run(runs_, run, acc);
  }

  const HostReduction& call_;
  const ReduceArgs& args_;
  Runs<R> runs_;
};

// Each in the file of its name.
int reduce_sum(const HostReduction& call);
int reduce_prod(const HostReduction& call);
int reduce_extreme(const HostReduction& call);
int reduce_arg_extreme(const HostReduction& call);
int reduce_count(const HostReduction& call);
int reduce_truth(const HostReduction& call);
int reduce_moments(const HostReduction& call);
int reduce_sum_squares(const HostReduction& call);

template <template <class> class Functor, DTypeSet Set>
int reduce_family(const HostReduction& call) {
  constexpr DTypeSet kFetched = kHalfSet;  // as float32: see reduce.cpp
  return functors::visit_functor<Functor, Set & ~kFetched>(call.route.load,
                                                           [&]<class R>() { return Reducer<R>(call).run(); });
}

}  // namespace dlbridge::nd::host_kernels
