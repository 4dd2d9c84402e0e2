// Short rows: each block sorts as many whole rows as it holds, by (row, key, position), in one launch.
#include <cub/block/block_merge_sort.cuh>

#include "ndarray/kernels/cuda/sort.cuh"

namespace dlbridge::nd::cuda_kernels {
namespace {

// Keys up to 32 bits: row, key and position in one word. Of many rows a thread has several items; what one block holds
// alone is sorted sooner by as many threads as there are items.
template <int threads, int per_thread>
struct NarrowItems {
  using Item = std::uint64_t;
  static constexpr int kThreads = threads;
  static constexpr int kPerThread = per_thread;
  static constexpr int kIndexBits = 11;

  static __device__ Item make(const WideKey& key, int row, int index) {
    return static_cast<Item>(row) << (32 + kIndexBits) | key.high << kIndexBits | static_cast<Item>(index);
  }
  static __device__ Item none() { return ~Item{0}; }
  static __device__ int row(Item item) { return static_cast<int>(item >> (32 + kIndexBits)); }
  static __device__ int index(Item item) { return static_cast<int>(item & ((1 << kIndexBits) - 1)); }
  struct Order {
    __device__ bool operator()(Item a, Item b) const { return a < b; }
  };
};

template <int threads, int per_thread>
struct WideItems {
  using Item = WideItem;
  static constexpr int kThreads = threads;
  static constexpr int kPerThread = per_thread;

  static __device__ Item make(const WideKey& key, int row, int index) {
    return {key.high, key.low, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(index)};
  }
  static __device__ Item none() { return {0, 0, 0xffffffffu, 0xffffffffu}; }
  static __device__ int row(const Item& item) { return static_cast<int>(item.row); }
  static __device__ int index(const Item& item) { return static_cast<int>(item.index); }
  struct Order {
    __device__ bool operator()(const Item& a, const Item& b) const {
      if (a.row != b.row) return a.row < b.row;
      if (a.high != b.high) return a.high < b.high;
      if (a.low != b.low) return a.low < b.low;
      return a.index < b.index;
    }
  };
};

struct BlockSortCall {
  DType dtype;
  int itemsize;
  functors::KeyCode code;
  int n;  // of a row
  int rows_per_block;
  std::int64_t total;  // elements of all rows
  Divider by_n;
  const void* keys_in;
  void* keys_out;
  std::int64_t* indices;
};

template <class Items>
__global__ void __launch_bounds__(Items::kThreads) sort_blocks(BlockSortCall call) {
  using Item = typename Items::Item;
  constexpr int kPerThread = Items::kPerThread;
  using Sort = cub::BlockMergeSort<Item, Items::kThreads, kPerThread>;
  __shared__ typename Sort::TempStorage storage;
  const int tile = call.n * call.rows_per_block;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * tile;
  const std::int64_t rest = call.total - first;
  const int count = rest < tile ? static_cast<int>(rest) : tile;
  Item items[kPerThread];
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    const int i = k * Items::kThreads + static_cast<int>(threadIdx.x);
    items[k] = Items::none();
    if (i < count) {
      const int row = static_cast<int>(call.by_n.quotient(static_cast<std::uint32_t>(i)));
      items[k] =
          Items::make(wide_key(call.dtype, call.itemsize, call.code, call.keys_in, first + i), row, i - row * call.n);
    }
  }
  Sort(storage).Sort(items, typename Items::Order{});
  // Sorted, the thread holds neighbours. In place: the block must have read all keys before one is written.
  const int base = static_cast<int>(threadIdx.x) * kPerThread;
  WideKey raw[kPerThread];
  if (call.keys_out != nullptr) {
#pragma unroll
    for (int k = 0; k < kPerThread; ++k)
      if (base + k < count)
        copy_item(raw + k, 0, call.keys_in, first + Items::row(items[k]) * call.n + Items::index(items[k]),
                  call.itemsize);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kPerThread; ++k)
      if (base + k < count) copy_item(call.keys_out, first + base + k, raw + k, 0, call.itemsize);
  }
  if (call.indices != nullptr)
#pragma unroll
    for (int k = 0; k < kPerThread; ++k)
      if (base + k < count) call.indices[first + base + k] = Items::index(items[k]);
}

template <class Items>
int launch_blocks(const SortArgs& args) {
  const auto n = static_cast<int>(args.n);
  const int rows_per_block = Items::kThreads * Items::kPerThread / n;
  const BlockSortCall call{args.dtype,
                           info(args.dtype).itemsize,
                           functors::key_code(args.dtype, args.descending),
                           n,
                           rows_per_block,
                           args.rows * args.n,
                           Divider::of(n),
                           args.keys_in,
                           args.keys_out,
                           args.indices};
  const std::int64_t blocks = (args.rows + rows_per_block - 1) / rows_per_block;
  return launch(sort_blocks<Items>, dim3(static_cast<unsigned>(blocks)), Items::kThreads, 0, args.stream, call);
}

constexpr int kAlone = 256;  // items of the smallest block

}  // namespace

int block_sort(const SortArgs& args) {
  const std::int64_t total = args.rows * args.n;
  if (info(args.dtype).itemsize <= 4) {
    if (total <= kAlone) return launch_blocks<NarrowItems<kAlone, 1>>(args);
    if (total <= kBlockSortItems) return launch_blocks<NarrowItems<kBlockSortItems / 2, 2>>(args);
    return launch_blocks<NarrowItems<kBlockSortItems / 8, 8>>(args);
  }
  if (total <= kAlone) return launch_blocks<WideItems<kAlone, 1>>(args);
  if (total <= kWideBlockSortItems) return launch_blocks<WideItems<kWideBlockSortItems / 2, 2>>(args);
  return launch_blocks<WideItems<kWideBlockSortItems / 8, 8>>(args);
}

}  // namespace dlbridge::nd::cuda_kernels
