// The quicksort and the sort of what fits into a few vectors. Included once for each kind of these, in its namespace:
// what is compiled for one generation of machines cannot be a template's argument. DLBRIDGE_ND_SORT_TARGET names it.
#define DLBRIDGE_ND_SORT [[DLBRIDGE_ND_SORT_TARGET, gnu::always_inline]] inline

// Sorts up to kRows vectors: each lane's column by a network; then columns are joined, two and two, by bitonic merges,
// until they are one, and written one behind the other.
template <class L, int kRows>
class ShortSort {
  using T = typename L::Element;
  using V = typename L::V;
  static constexpr int kLanes = L::kCount;
  static constexpr int kPadded = (kRows + kLanes - 1) / kLanes * kLanes;

 public:
  DLBRIDGE_ND_SORT static void run(T* data, int n) noexcept {
    V v[kPadded];
#pragma GCC unroll 16
    for (int i = 0; i < kPadded; ++i) v[i] = i < kRows ? L::load_first(data + i * kLanes, n - i * kLanes) : v[0];
    sort_column<kRows>(v);
    join_columns<1>(v);
    if constexpr (kRows == 1) L::store_first(data, n, v[0]);
    else store_columns(v, data, n);
  }

 private:
  static constexpr unsigned with_bit(int bit) noexcept {  // the lanes whose number has it
    unsigned mask = 0;
    for (int i = 0; i < kLanes; ++i) mask |= (i & bit) != 0 ? 1u << i : 0u;
    return mask;
  }

  DLBRIDGE_ND_SORT static void exchange(V& low, V& high) noexcept {
    const V less = L::min(low, high);
    high = L::template max_into<L::kAll>(high, low, high);
    low = less;
  }
  template <int n, int... k>
  DLBRIDGE_ND_SORT static void run_network(V* v, std::integer_sequence<int, k...>) noexcept {
    constexpr Network net = network_of(n);
    (exchange(v[net.exchanges[k].low], v[net.exchanges[k].high]), ...);
  }
  template <int n>
  DLBRIDGE_ND_SORT static void sort_column(V* v) noexcept {
    if constexpr (n > 1) run_network<n>(v, std::make_integer_sequence<int, network_of(n).count>{});
  }
  template <int n>
  DLBRIDGE_ND_SORT static void merge_column(V* v) noexcept {  // of a bitonic sequence
    if constexpr (n % 2 != 0) {
      sort_column<n>(v);
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < n / 2; ++i) exchange(v[i], v[i + n / 2]);
      merge_column<n / 2>(v);
      merge_column<n / 2>(v + n / 2);
    }
  }

  template <int bit>
  DLBRIDGE_ND_SORT static V larger_with(V v, V other) noexcept {  // the smaller ones in the other lanes
    return L::template max_into<with_bit(bit)>(L::min(v, other), v, other);
  }
  template <int distance>
  DLBRIDGE_ND_SORT static void merge_lanes(V* v) noexcept {
    if constexpr (distance > 0) {
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i)
        v[i] = larger_with<distance>(v[i], L::template swap_into<distance, L::kAll>(v[i], v[i]));
      merge_lanes<distance / 2>(v);
    }
  }
  template <int n>
  DLBRIDGE_ND_SORT static void join_columns(V* v) noexcept {  // each n lanes are sorted
    if constexpr (n < kLanes) {
#pragma GCC unroll 8
      for (int i = 0; i < (kRows + 1) / 2; ++i) {
        const V a = v[i], b = v[kRows - 1 - i];
        v[i] = larger_with<n>(a, L::template turn<2 * n>(b));
        v[kRows - 1 - i] = larger_with<n>(b, L::template turn<2 * n>(a));
      }
      merge_lanes<n / 2>(v);
      merge_column<kRows>(v);
      join_columns<2 * n>(v);
    }
  }

  template <int distance>
  DLBRIDGE_ND_SORT static void transpose(V* v) noexcept {
    if constexpr (distance < kLanes) {
      constexpr unsigned kUpper = with_bit(distance), kLower = L::kAll & ~kUpper;
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        if ((i & distance) != 0) continue;
        const V a = v[i], b = v[i + distance];
        v[i] = L::template swap_into<distance, kUpper>(a, b);
        v[i + distance] = L::template swap_into<distance, kLower>(b, a);
      }
      transpose<2 * distance>(v);
    }
  }
  DLBRIDGE_ND_SORT static void store_columns(V* v, T* data, int n) noexcept {
    T sorted[kRows * kLanes + kPadded];  // a column's padding is written over by the next one
#pragma GCC unroll 4
    for (int k = 0; k < kPadded; k += kLanes) transpose<1>(v + k);
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane)
#pragma GCC unroll 4
      for (int k = 0; k < kPadded; k += kLanes) L::store(sorted + lane * kRows + k, v[k + lane]);
    for (int i = 0; i < n; i += kLanes) L::store_first(data + i, n - i, L::load(sorted + i));
  }
};

template <class T>
class Quicksort {
 public:
  using Element = T;
  static void sort(T* data, std::int64_t n) noexcept { sort_from(data, n, kSmallest<T>, depth_of(n)); }
  static void select(T* data, std::int64_t n, std::int64_t k) noexcept {
    T floor = kSmallest<T>;
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
  static constexpr std::int64_t kShort = L::kMaxColumn * kLanes;  // elements that are sorted in registers
  static constexpr int kVectors = 8;                              // that a partition takes at a time
  static constexpr std::int64_t kBatch = kVectors * kLanes;

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
    if (pivot == kLargest<T>) return {n, pivot, true};
    const T next = after(pivot);
    return {partition(data, n, next), next, true};
  }

  static T after(T x) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      constexpr T kLeast = std::numeric_limits<T>::min();  // there are no subnormal numbers
      return x == 0 ? kLeast : x == -kLeast ? T(0) : std::nextafter(x, kLargest<T>);
    } else {
      return static_cast<T>(x + 1);
    }
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
    constexpr int kFew = std::max(kLanes, 8);
    T sample[4 * kFew];
    const int count = n < 2048 ? kFew : 4 * kFew;
    const std::int64_t step = n / count;
    for (int i = 0; i < count; ++i) sample[i] = data[i * step + step / 2];
    sort_short(sample, count);
    return sample[count / 2];
  }

  struct Gap {  // what has been read and not been written again
    T *begin, *end;
  };
  DLBRIDGE_ND_SORT static void place(V v, V bound, Gap& gap) noexcept {
    const int below = L::part(v, bound, gap.begin, gap.end);
    gap.begin += below;
    gap.end -= kLanes - below;
  }
  DLBRIDGE_ND_SORT static void place_batch(const T* data, V bound, Gap& gap) noexcept {
    V v[kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) v[i] = L::load(data + i * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) place(v[i], bound, gap);
  }
  DLBRIDGE_ND_SORT static void place_rest(const T* data, int n, T bound, Gap& gap) noexcept {
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
  [[DLBRIDGE_ND_SORT_TARGET, gnu::noinline]] static std::int64_t partition(T* data, std::int64_t n, T bound) noexcept {
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
  [[DLBRIDGE_ND_SORT_TARGET, gnu::noinline]] static void sort_rows(T* data, int n) noexcept {
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
    return sort_rows<L::kMaxColumn>(data, count);
  }
};

#undef DLBRIDGE_ND_SORT
