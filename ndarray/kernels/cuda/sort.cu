// Sorts on CUDA: which algorithm takes a call, and the passes that make keys and put the results where they belong.
//
//   rows that fit into a block            sort_block.cu, one launch
//   float32, int32 ascending, values      a radix sort straight from keys_in to keys_out
//   other real values                     keys that can be turned back, a radix sort, and back
//   positions, complex numbers            keys with positions, sorted stably; the values are gathered
//   many rows                             the row above the key, all rows at once
//   what does not fit 64 bits             a merge sort
#include <bit>

#include "ndarray/kernels/cuda/sort.cuh"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;
constexpr std::int64_t kRowAlone = std::int64_t{1} << 17;  // rows from here on are sorted one by one
constexpr std::int64_t kMostPositions = std::int64_t{1} << 32;

// Calls f(i) for this thread's elements below n, neighbouring threads side by side.
template <class F>
__device__ void for_each_element(std::int64_t n, F f) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (kThreads * kPerThread) + threadIdx.x;
#pragma unroll
  for (int k = 0; k < kPerThread; ++k)
    if (first + k * kThreads < n) f(first + k * kThreads);
}
dim3 grid_of(std::int64_t n) {
  return dim3(static_cast<unsigned>((n + kThreads * kPerThread - 1) / (kThreads * kPerThread)));
}

// Where an element lies: its row goes above the key, its position in the row is the payload.
struct RowShape {
  std::int64_t total, n;
  Divider64 by_n;
  int row_shift;  // bits of the key below the row; 0: one row

  DLBRIDGE_ND_HD std::int64_t row_of(std::int64_t i) const {
    return static_cast<std::int64_t>(by_n.quotient(static_cast<std::uint64_t>(i)));
  }
};
RowShape one_row(std::int64_t n) { return {n, n, Divider64::of(n), 0}; }

// What radix sorts take as signed has its top bit flipped.
template <class Key>
constexpr Key kSignFlip = std::is_signed_v<Key> ? std::numeric_limits<Key>::min() : Key{0};

template <class Bits, class Key>
__global__ void encode_keys(const Bits* in, Key* keys, std::uint32_t* positions, functors::KeyCode code, bool ranks,
                            RowShape shape) {
  for_each_element(shape.total, [&](std::int64_t i) {
    const std::int64_t row = shape.row_shift == 0 ? 0 : shape.row_of(i);
    const auto key = static_cast<Key>(encode(in[i], code, ranks)) ^ kSignFlip<Key>;
    keys[i] = static_cast<Key>(static_cast<Key>(row) << shape.row_shift | key);
    if (positions != nullptr) positions[i] = static_cast<std::uint32_t>(i - row * shape.n);
  });
}

__global__ void encode_complex64(const void* in, std::uint64_t* keys, std::uint32_t* positions, functors::KeyCode code,
                                 std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) {
    keys[i] = wide_key(DType::kComplex64, 8, code, in, i).high;
    positions[i] = static_cast<std::uint32_t>(i);
  });
}

__global__ void encode_wide(const void* in, WideItem* items, DType dtype, int itemsize, functors::KeyCode code,
                            RowShape shape) {
  for_each_element(shape.total, [&](std::int64_t i) {
    const std::int64_t row = shape.row_of(i);
    const WideKey key = wide_key(dtype, itemsize, code, in, i);
    items[i] = {key.high, key.low, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(i - row * shape.n)};
  });
}

template <class Key, class Bits>
__global__ void decode_keys(const Key* keys, Bits* out, functors::KeyCode code, std::int64_t n) {
  for_each_element(
      n, [&](std::int64_t i) { out[i] = functors::from_value_key(static_cast<Bits>(keys[i] ^ kSignFlip<Key>), code); });
}

// Sorted positions to the outputs; `stride` words of 32 bits from one position to the next.
__global__ void write_results(const std::uint32_t* positions, int stride, std::int64_t* indices, const void* keys_in,
                              void* keys_out, int itemsize, RowShape shape) {
  for_each_element(shape.total, [&](std::int64_t i) {
    const std::int64_t position = positions[i * stride];
    if (indices != nullptr) indices[i] = position;
    if (keys_out != nullptr) {
      const std::int64_t row = shape.n == shape.total ? 0 : shape.row_of(i);
      copy_item(keys_out, i, keys_in, row * shape.n + position, itemsize);
    }
  });
}

// One call's rows, in part or all.
struct Rows {
  const SortArgs& args;
  RowShape shape;
  const char* in;
  char* out;              // null: positions alone
  std::int64_t* indices;  // null: values alone

  DType dtype() const { return args.dtype; }
  int itemsize() const { return info(args.dtype).itemsize; }
  functors::KeyCode code() const { return functors::key_code(args.dtype, args.descending); }

  int write(const std::uint32_t* positions, int stride) const {
    const void* source = in;
    if (out == in) {  // gathering in place: from a copy
      const auto bytes = static_cast<std::size_t>(shape.total) * static_cast<std::size_t>(itemsize());
      void* const copy = args.workspace.get(bytes);
      if (copy == nullptr) return kErrorMemory;
      if (const cudaError_t error = cudaMemcpyAsync(copy, in, bytes, cudaMemcpyDeviceToDevice, stream_of(args.stream)))
        return static_cast<int>(error);
      source = copy;
    }
    return launch(write_results, grid_of(shape.total), kThreads, 0, args.stream, positions, stride, indices, source,
                  static_cast<void*>(out), itemsize(), shape);
  }
};

int bits_for(std::int64_t values) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(values - 1))); }

// Keys of Bits, held in Key: turned back after the sort.
template <class Bits, class Key>
int sort_values(const Rows& rows, int row_bits) {
  const std::int64_t total = rows.shape.total;
  Scratch scratch(rows.args);
  KeyBuffers<Key> keys{scratch.get<Key>(total), nullptr};
  // The output serves as the second buffer where its elements are as wide: it is written last in any case.
  keys.spare =
      sizeof(Bits) == sizeof(Key) && rows.out != rows.in ? reinterpret_cast<Key*>(rows.out) : scratch.get<Key>(total);
  if (scratch.failed()) return kErrorMemory;
  int status = launch(encode_keys<Bits, Key>, grid_of(total), kThreads, 0, rows.args.stream,
                      reinterpret_cast<const Bits*>(rows.in), keys.current, static_cast<std::uint32_t*>(nullptr),
                      rows.code(), false, rows.shape);
  if (status == 0) status = radix_sort(keys, total, static_cast<int>(sizeof(Bits)) * 8 + row_bits, rows.args);
  if (status != 0) return status;
  return launch(decode_keys<Key, Bits>, grid_of(total), kThreads, 0, rows.args.stream,
                static_cast<const Key*>(keys.current), reinterpret_cast<Bits*>(rows.out), rows.code(), total);
}

// Keys with positions; complex64's Bits are those of its key.
template <class Bits, class Key>
int sort_positions(const Rows& rows, int row_bits) {
  const std::int64_t total = rows.shape.total;
  Scratch scratch(rows.args);
  KeyBuffers<Key> keys = scratch.pair<Key>(total);
  KeyBuffers<std::uint32_t> positions = scratch.pair<std::uint32_t>(total);
  if (scratch.failed()) return kErrorMemory;
  int status = 0;
  if constexpr (sizeof(Key) == 8) {
    if (rows.dtype() == DType::kComplex64)
      status = launch(encode_complex64, grid_of(total), kThreads, 0, rows.args.stream,
                      static_cast<const void*>(rows.in), keys.current, positions.current, rows.code(), total);
  }
  if (rows.dtype() != DType::kComplex64)
    status =
        launch(encode_keys<Bits, Key>, grid_of(total), kThreads, 0, rows.args.stream,
               reinterpret_cast<const Bits*>(rows.in), keys.current, positions.current, rows.code(), true, rows.shape);
  if (status == 0)
    status = radix_sort(keys, positions, total, static_cast<int>(sizeof(Bits)) * 8 + row_bits, rows.args);
  return status != 0 ? status : rows.write(positions.current, 1);
}

int sort_wide(const Rows& rows) {
  WideItem* const items =
      static_cast<WideItem*>(rows.args.workspace.get(static_cast<std::size_t>(rows.shape.total) * sizeof(WideItem)));
  if (items == nullptr) return kErrorMemory;
  int status = launch(encode_wide, grid_of(rows.shape.total), kThreads, 0, rows.args.stream,
                      static_cast<const void*>(rows.in), items, rows.dtype(), rows.itemsize(), rows.code(), rows.shape);
  if (status == 0) status = merge_sort(items, rows.shape.total, rows.args);
  if (status != 0) return status;
  static_assert(offsetof(WideItem, index) % 4 == 0 && sizeof(WideItem) % 4 == 0);
  return rows.write(&items->index, sizeof(WideItem) / 4);
}

// One row.
int sort_row(const Rows& rows) {
  if (rows.dtype() == DType::kComplex128) return sort_wide(rows);
  if (rows.indices != nullptr || rows.dtype() == DType::kComplex64) {
    switch (rows.itemsize()) {
      case 1: return sort_positions<std::uint8_t, std::uint32_t>(rows, 0);
      case 2: return sort_positions<std::uint16_t, std::uint32_t>(rows, 0);
      case 4: return sort_positions<std::uint32_t, std::uint32_t>(rows, 0);
      default: return sort_positions<std::uint64_t, std::uint64_t>(rows, 0);
    }
  }
  if (!rows.args.descending && rows.dtype() == DType::kFloat32)
    return radix_sort(reinterpret_cast<const float*>(rows.in), reinterpret_cast<float*>(rows.out), rows.shape.n,
                      rows.args);
  if (!rows.args.descending && rows.dtype() == DType::kInt32)
    return radix_sort(reinterpret_cast<const std::int32_t*>(rows.in), reinterpret_cast<std::int32_t*>(rows.out),
                      rows.shape.n, rows.args);
  switch (rows.itemsize()) {
    case 1: return sort_values<std::uint8_t, std::uint16_t>(rows, 0);
    case 2: return sort_values<std::uint16_t, std::uint16_t>(rows, 0);
    case 4: return sort_values<std::uint32_t, std::int32_t>(rows, 0);
    default: return sort_values<std::uint64_t, std::uint64_t>(rows, 0);
  }
}

// Many rows at once, each too long for a block and too short for launches of its own.
int sort_together(Rows rows) {
  if (rows.itemsize() > 4) return sort_wide(rows);
  rows.shape.row_shift = rows.itemsize() * 8;
  const int row_bits = bits_for(rows.args.rows);
  const bool positions = rows.indices != nullptr;
  switch (rows.itemsize()) {
    case 1:
      return positions ? sort_positions<std::uint8_t, std::uint64_t>(rows, row_bits)
                       : sort_values<std::uint8_t, std::uint64_t>(rows, row_bits);
    case 2:
      return positions ? sort_positions<std::uint16_t, std::uint64_t>(rows, row_bits)
                       : sort_values<std::uint16_t, std::uint64_t>(rows, row_bits);
    default:
      return positions ? sort_positions<std::uint32_t, std::uint64_t>(rows, row_bits)
                       : sort_values<std::uint32_t, std::uint64_t>(rows, row_bits);
  }
}

}  // namespace

int sort(const SortArgs& args) {
  if (!contains(kAllSet, args.dtype)) return kErrorUnsupported;
  if (args.rows == 0 || args.n == 0 || (args.keys_out == nullptr && args.indices == nullptr)) return 0;
  const int itemsize = info(args.dtype).itemsize;
  if (args.n <= (itemsize <= 4 ? kBlockSortItems : kWideBlockSortItems)) return block_sort(args);
  if (args.n > kMostPositions && (args.indices != nullptr || contains(kComplexSet, args.dtype))) return kErrorMemory;

  ReusedWorkspace workspace(args.workspace);
  SortArgs reusing = args;
  reusing.workspace = workspace.view();
  Rows rows{reusing, one_row(args.n), static_cast<const char*>(args.keys_in), static_cast<char*>(args.keys_out),
            args.indices};
  if (args.rows > 1 && args.n < kRowAlone) {
    rows.shape.total = args.rows * args.n;
    return sort_together(rows);
  }
  for (std::int64_t row = 0; row < args.rows; ++row) {
    workspace.rewind();
    if (const int status = sort_row(rows)) return status;
    rows.in += args.n * itemsize;
    if (rows.out != nullptr) rows.out += args.n * itemsize;
    if (rows.indices != nullptr) rows.indices += args.n;
  }
  return 0;
}

}  // namespace dlbridge::nd::cuda_kernels
