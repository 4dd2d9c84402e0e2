#include "ndarray/kernels/host/vector_sort.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include "ndarray/kernels/host/vector_sort_lanes.h"

namespace dlbridge::nd::host_kernels {
namespace {

template <class T>
class Quicksort {
 public:
  static void sort(T* data, std::int64_t n) noexcept { sort_from(data, n, kLowest, depth_of(n)); }
  static void select(T* data, std::int64_t n, std::int64_t k) noexcept {
    T floor = kLowest;
    for (int depth = depth_of(n); n > kShort; --depth) {
      if (depth == 0) return std::nth_element(data, data + k, data + n);
      const Split found = split(data, n, floor);
      if (k >= found.count) {
        data += found.count, n -= found.count, k -= found.count;
        floor = found.floor;
      } else if (found.all_equal) {
        return;
      } else {
        n = found.count;
      }
    }
    sort_short(data, n);
  }

 private:
  using L = Lanes<T>;
  using V = typename L::V;
  static constexpr int kLanes = L::kCount;
  static constexpr std::int64_t kShort = kMaxColumn * kLanes;  // elements that are sorted in registers
  static constexpr int kVectors = 8;                           // that a partition takes at a time
  static constexpr std::int64_t kBatch = kVectors * kLanes;
  static constexpr T kLowest = std::numeric_limits<T>::min();

  // Twice the halvings that even parts need: behind it the C++ library's sorts take over, which no order slows down.
  static int depth_of(std::int64_t n) noexcept {
    return 2 * static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n)));
  }

  struct Split {
    std::int64_t count;  // of the first part
    T floor;             // nothing in the second part is smaller
    bool all_equal;      // the first part is done
  };
  // Nothing is smaller than `floor`. Where that is the pivot, the first part is what equals it: many equal elements
  // take one partition more than they would alone.
  static Split split(T* data, std::int64_t n, T floor) noexcept {
    const T pivot = pivot_of(data, n);
    if (pivot != floor) return {partition(data, n, pivot), pivot, false};
    if (pivot == std::numeric_limits<T>::max()) return {n, pivot, true};
    const T next = static_cast<T>(pivot + 1);
    return {partition(data, n, next), next, true};
  }

  static void sort_from(T* data, std::int64_t n, T floor, int depth) noexcept {
    for (; n > kShort; --depth) {
      if (depth == 0) return std::sort(data, data + n);
      const Split found = split(data, n, floor);
      if (!found.all_equal) sort_from(data, found.count, floor, depth - 1);
      data += found.count, n -= found.count;
      floor = found.floor;
    }
    sort_short(data, n);
  }

  // The median of a sample.
  static T pivot_of(const T* data, std::int64_t n) noexcept {
    T sample[4 * kLanes];
    const int count = n < 2048 ? kLanes : 4 * kLanes;
    const std::int64_t step = n / count;
    for (int i = 0; i < count; ++i) sample[i] = data[i * step + step / 2];
    sort_short(sample, count);
    return sample[count / 2];
  }

  struct Gap {  // what has been read and not been written again
    T *begin, *end;
  };
  DLBRIDGE_ND_AVX512 static void place(V v, V bound, Gap& gap) noexcept {
    const typename L::Mask is_below = L::less(v, bound);
    const int below = std::popcount(is_below);
    gap.end -= kLanes - below;
    L::store(gap.begin, L::compress(is_below, v));
    L::store_where(gap.end, L::first(kLanes - below), L::compress(static_cast<typename L::Mask>(~is_below), v));
    gap.begin += below;
  }
  DLBRIDGE_ND_AVX512 static void place_batch(const T* data, V bound, Gap& gap) noexcept {
    V v[kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) v[i] = L::load(data + i * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) place(v[i], bound, gap);
  }
  DLBRIDGE_ND_AVX512 static void place_rest(const T* data, int n, T bound, Gap& gap) noexcept {
    int i = 0;
    for (; i + kLanes <= n; i += kLanes) place(L::load(data + i), L::fill(bound), gap);
    for (; i < n; ++i) {
      const bool is_below = data[i] < bound;
      *gap.begin = gap.end[-1] = data[i];
      gap.begin += is_below ? 1 : 0;
      gap.end -= is_below ? 0 : 1;
    }
  }

  // Moves what is below `bound` to the front, and returns how many those are. In place: a batch is read from the side
  // with less room for what is written, so that there is always a batch of it on both. n >= 2 * kBatch.
  DLBRIDGE_ND_AVX512_FUNCTION static std::int64_t partition(T* data, std::int64_t n, T bound) noexcept {
    const int rest = static_cast<int>(n % kBatch);
    T first[kBatch], last[kBatch], behind[kBatch];
    const T *left = data + kBatch, *right = data + n - rest - kBatch;
    std::memcpy(first, data, sizeof first);
    std::memcpy(last, right, sizeof last);
    std::memcpy(behind, right + kBatch, static_cast<std::size_t>(rest) * sizeof(T));
    const V bounds = L::fill(bound);
    Gap gap{data, data + n};
    while (left < right) {
      const bool from_left = left - gap.begin <= gap.end - right;
      const T* const batch = from_left ? left : right - kBatch;
      left += from_left ? kBatch : 0;
      right -= from_left ? 0 : kBatch;
      place_batch(batch, bounds, gap);
    }
    place_rest(behind, rest, bound, gap);  // while there is room on both sides
    place_batch(first, bounds, gap);
    place_batch(last, bounds, gap);
    return gap.begin - data;
  }

  template <int kRows>
  DLBRIDGE_ND_AVX512_FUNCTION static void sort_rows(T* data, int n) noexcept {
    ShortSort<L, kRows>::run(data, n);
  }
  static void sort_short(T* data, std::int64_t n) noexcept {
    const int count = static_cast<int>(n), rows = (count + kLanes - 1) / kLanes;
    if (rows <= 1) return sort_rows<1>(data, count);
    if (rows == 2) return sort_rows<2>(data, count);
    if (rows == 3) return sort_rows<3>(data, count);
    if (rows == 4) return sort_rows<4>(data, count);
    if (rows <= 6) return sort_rows<6>(data, count);
    if (rows <= 8) return sort_rows<8>(data, count);
    if (rows <= 12) return sort_rows<12>(data, count);
    return sort_rows<kMaxColumn>(data, count);
  }
};

bool has_vectors() noexcept {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("bmi2");
}

}  // namespace

template <class T>
const VectorSort<T>* find_vector_sort() noexcept {
  static constexpr VectorSort<T> kSort{&Quicksort<T>::sort, &Quicksort<T>::select};
  static const bool found = has_vectors();
  return found ? &kSort : nullptr;
}

#else
namespace dlbridge::nd::host_kernels {

template <class T>
const VectorSort<T>* find_vector_sort() noexcept {
  return nullptr;
}
#endif

template const VectorSort<std::int32_t>* find_vector_sort<std::int32_t>() noexcept;
template const VectorSort<std::int64_t>* find_vector_sort<std::int64_t>() noexcept;
template const VectorSort<std::uint32_t>* find_vector_sort<std::uint32_t>() noexcept;
template const VectorSort<std::uint64_t>* find_vector_sort<std::uint64_t>() noexcept;

}  // namespace dlbridge::nd::host_kernels
