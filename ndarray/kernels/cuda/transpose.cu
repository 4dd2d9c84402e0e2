// Copies between two dense dims that are not the same one: tiles go through shared memory, so that both sides are read
// and written in whole lines. Any further dims are a batch.
//
// A tile is read with its rows along the input's unit stride and written with its rows along the output's. Elements in
// shared memory are rotated within their row, so that a column lies in as many banks as a row does.
#include "ndarray/kernels/cuda/elementwise_launch.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr std::int64_t kLeastExtent = 16;  // of both dims; below, most of a tile would be empty
constexpr int kWarps = kBlockThreads / 32;

struct TransposeParams {
  const char* in;
  char* out;
  std::int64_t in_row;    // bytes from one row of the input to the next: along the output's unit dim
  std::int64_t out_row;   // along the input's unit dim
  std::uint32_t columns;  // extent of the input's unit dim: the rows of the output
  std::uint32_t rows;     // of the output's unit dim
  Divider column_tiles;
  Divider row_tiles;
  std::int32_t ndim;  // of the batch
  Divider dims[kTiledDims];
  std::int64_t in_strides[kTiledDims];
  std::int64_t out_strides[kTiledDims];
};

// The tile that a block does.
struct Tile {
  const char* in;
  char* out;
  std::uint32_t row, column;  // of the tile's first element
};

template <int tile_rows, int tile_columns>
DLBRIDGE_ND_HD inline Tile find_tile(const TransposeParams& p, std::uint32_t block, int itemsize) noexcept {
  std::uint32_t rest = p.column_tiles.quotient(block);
  Tile tile;
  tile.column = (block - rest * p.column_tiles.divisor) * tile_columns;
  std::uint32_t batch = p.row_tiles.quotient(rest);
  tile.row = (rest - batch * p.row_tiles.divisor) * tile_rows;
  tile.in = p.in + std::int64_t{tile.row} * p.in_row + std::int64_t{tile.column} * itemsize;
  tile.out = p.out + std::int64_t{tile.column} * p.out_row + std::int64_t{tile.row} * itemsize;
#pragma unroll 1
  for (int d = 0; d < p.ndim; ++d) {
    const std::uint32_t quotient = p.dims[d].quotient(batch);
    const std::int64_t index = batch - quotient * p.dims[d].divisor;
    tile.in += index * p.in_strides[d];
    tile.out += index * p.out_strides[d];
    batch = quotient;
  }
  return tile;
}

// --- one element at a time ------------------------------------------------------------------------------------------

// Square tiles of `side` elements of type T, which take a slot of at least four bytes each.
template <class T, int side_>
struct ElementTiles {
  static constexpr int rows = side_, columns = side_;
  static constexpr int side = side_;
  using Slot = std::conditional_t<(sizeof(T) < 4), std::uint32_t, T>;
  using Shared = Slot[side * side];

  DLBRIDGE_ND_HD static std::uint32_t slot(std::uint32_t row, std::uint32_t column) noexcept {
    return row * side + ((column + row) & (side - 1));
  }

  DLBRIDGE_ND_HD static void load(const TransposeParams& p, const Tile& tile, Slot* shared, std::uint32_t warp,
                                  std::uint32_t lane) noexcept {
    constexpr int kRows = side / kWarps, kGroups = side / 32;
    T loaded[kRows][kGroups];
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const std::uint32_t row = warp + i * kWarps, column = lane + g * 32;
        if (tile.row + row < p.rows && tile.column + column < p.columns)
          loaded[i][g] = reinterpret_cast<const T*>(tile.in + row * p.in_row)[column];
      }
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int g = 0; g < kGroups; ++g) shared[slot(warp + i * kWarps, lane + g * 32)] = loaded[i][g];
  }

  DLBRIDGE_ND_HD static void store(const TransposeParams& p, const Tile& tile, const Slot* shared, std::uint32_t warp,
                                   std::uint32_t lane) noexcept {
#pragma unroll
    for (int i = 0; i < side / kWarps; ++i)
#pragma unroll
      for (int g = 0; g < side / 32; ++g) {
        const std::uint32_t column = warp + i * kWarps, row = lane + g * 32;
        if (tile.row + row < p.rows && tile.column + column < p.columns)
          reinterpret_cast<T*>(tile.out + column * p.out_row)[row] = static_cast<T>(shared[slot(row, column)]);
      }
  }
};

// --- small elements, four bytes at a time ---------------------------------------------------------------------------

// Exchanges rows and columns of a square of `per_word` x `per_word` elements that lie in as many words.
template <int per_word>
DLBRIDGE_ND_HD inline void transpose_words(std::uint32_t (&w)[per_word]) noexcept {
#if defined(__CUDA_ARCH__)
  const auto pick = [](std::uint32_t a, std::uint32_t b, std::uint32_t how) { return __byte_perm(a, b, how); };
#else
  const auto pick = [](std::uint32_t a, std::uint32_t b, std::uint32_t how) {
    const std::uint64_t both = std::uint64_t{b} << 32 | a;
    std::uint32_t out = 0;
    for (int i = 0; i < 4; ++i) out |= static_cast<std::uint32_t>(both >> ((how >> 4 * i & 7) * 8) & 255) << 8 * i;
    return out;
  };
#endif
  if constexpr (per_word == 2) {
    const std::uint32_t first = pick(w[0], w[1], 0x5410);
    w[1] = pick(w[0], w[1], 0x7632);
    w[0] = first;
  } else {
    const std::uint32_t even01 = pick(w[0], w[1], 0x6240), odd01 = pick(w[0], w[1], 0x7351);
    const std::uint32_t even23 = pick(w[2], w[3], 0x6240), odd23 = pick(w[2], w[3], 0x7351);
    // even: bytes 0 of both, then bytes 2 of both; odd: bytes 1, then bytes 3
    w[0] = pick(even01, even23, 0x5410);
    w[1] = pick(odd01, odd23, 0x5410);
    w[2] = pick(even01, even23, 0x7632);
    w[3] = pick(odd01, odd23, 0x7632);
  }
}

// Square tiles of 32 words of two or four elements a row. Bases, strides and extents are whole words.
template <int per_word>
struct WordTiles {
  static constexpr int rows = 32 * per_word, columns = 32 * per_word;
  using Slot = std::uint32_t;
  using Shared = Slot[rows * 32];

  DLBRIDGE_ND_HD static std::uint32_t slot(std::uint32_t row, std::uint32_t word) noexcept {
    return row * 32 + ((word + row / per_word) & 31);
  }

  DLBRIDGE_ND_HD static void load(const TransposeParams& p, const Tile& tile, Slot* shared, std::uint32_t warp,
                                  std::uint32_t lane) noexcept {
    constexpr int kRows = rows / kWarps;
    std::uint32_t loaded[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const std::uint32_t row = warp + i * kWarps;
      if (tile.row + row < p.rows && tile.column + lane * per_word < p.columns)
        loaded[i] = reinterpret_cast<const std::uint32_t*>(tile.in + row * p.in_row)[lane];
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) shared[slot(warp + i * kWarps, lane)] = loaded[i];
  }

  DLBRIDGE_ND_HD static void store(const TransposeParams& p, const Tile& tile, const Slot* shared, std::uint32_t warp,
                                   std::uint32_t lane) noexcept {
#pragma unroll
    for (int i = 0; i < 32 / kWarps; ++i) {
      const std::uint32_t word = warp + i * kWarps;
      std::uint32_t square[per_word];
#pragma unroll
      for (int j = 0; j < per_word; ++j) square[j] = shared[slot(lane * per_word + j, word)];
      transpose_words(square);
#pragma unroll
      for (int j = 0; j < per_word; ++j) {
        const std::uint32_t column = word * per_word + j;
        if (tile.row + lane * per_word < p.rows && tile.column + column < p.columns)
          reinterpret_cast<std::uint32_t*>(tile.out + column * p.out_row)[lane] = square[j];
      }
    }
  }
};

// --- four-byte elements, 16 bytes at a time -------------------------------------------------------------------------

// Tiles of 32 rows of 128 elements, read and written four elements at once; all is aligned to that.
struct QuadTiles {
  static constexpr int rows = 32, columns = 128;
  using Slot = std::uint32_t;
  using Shared = Slot[rows * columns];
  using Quad = Vector<std::uint32_t, 4>;

  DLBRIDGE_ND_HD static std::uint32_t slot(std::uint32_t row, std::uint32_t quad) noexcept {
    return row * columns + (quad ^ (row / 4 & 7)) * 4;
  }

  DLBRIDGE_ND_HD static void load(const TransposeParams& p, const Tile& tile, Slot* shared, std::uint32_t warp,
                                  std::uint32_t lane) noexcept {
    constexpr int kRows = rows / kWarps;
    Quad loaded[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const std::uint32_t row = warp + i * kWarps;
      if (tile.row + row < p.rows && tile.column + lane * 4 < p.columns)
        loaded[i] = reinterpret_cast<const Quad*>(tile.in + row * p.in_row)[lane];
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) *reinterpret_cast<Quad*>(shared + slot(warp + i * kWarps, lane)) = loaded[i];
  }

  // A warp writes four output rows of eight quads.
  DLBRIDGE_ND_HD static void store(const TransposeParams& p, const Tile& tile, const Slot* shared, std::uint32_t warp,
                                   std::uint32_t lane) noexcept {
#pragma unroll
    for (int i = 0; i < columns / 4 / kWarps; ++i) {
      const std::uint32_t quad = warp + i * kWarps, within = lane / 8, first_row = lane % 8 * 4;
      Quad out;
#pragma unroll
      for (int j = 0; j < 4; ++j) out.values[j] = shared[slot(first_row + j, quad) + within];
      const std::uint32_t column = quad * 4 + within;
      if (tile.row + first_row < p.rows && tile.column + column < p.columns)
        *reinterpret_cast<Quad*>(tile.out + column * p.out_row + std::int64_t{first_row} * 4) = out;
    }
  }
};

template <class Tiles, int itemsize>
__global__ void __launch_bounds__(kBlockThreads) transpose_kernel(const __grid_constant__ TransposeParams p) {
  __shared__ alignas(16) typename Tiles::Shared shared;
  const Tile tile = find_tile<Tiles::rows, Tiles::columns>(p, blockIdx.x, itemsize);
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Tiles::load(p, tile, shared, warp, lane);
  __syncthreads();
  Tiles::store(p, tile, shared, warp, lane);
}

template <class Tiles, int itemsize>
int start(TransposeParams& p, std::int64_t batch, cudaStream_t stream) {
  const std::int64_t column_tiles = (std::int64_t{p.columns} + Tiles::columns - 1) / Tiles::columns;
  const std::int64_t row_tiles = (std::int64_t{p.rows} + Tiles::rows - 1) / Tiles::rows;
  if (batch > kPartLimit / column_tiles / row_tiles) return kNotVectorisable;
  p.column_tiles = Divider::of(column_tiles);
  p.row_tiles = Divider::of(row_tiles);
  transpose_kernel<Tiles, itemsize>
      <<<static_cast<unsigned>(column_tiles * row_tiles * batch), kBlockThreads, 0, stream>>>(p);
  return static_cast<int>(cudaGetLastError());
}

// Whether bases, strides and extents are multiples of `bytes`.
bool is_aligned(const TransposeParams& p, int itemsize, int bytes) noexcept {
  std::uint64_t all = reinterpret_cast<std::uintptr_t>(p.in) | reinterpret_cast<std::uintptr_t>(p.out);
  all |= static_cast<std::uint64_t>(p.in_row | p.out_row);
  all |= std::uint64_t{p.rows} * static_cast<unsigned>(itemsize) |
         std::uint64_t{p.columns} * static_cast<unsigned>(itemsize);
  for (int d = 0; d < p.ndim; ++d) all |= static_cast<std::uint64_t>(p.in_strides[d] | p.out_strides[d]);
  return all % static_cast<unsigned>(bytes) == 0;
}

}  // namespace

int launch_transpose(const Call& call) {
  const KernelLoop& loop = call.loop;
  const int itemsize = call.itemsizes[0];
  if (loop.ndim < 2 || loop.strides[0][0] != itemsize) return kNotVectorisable;
  int unit = 0;
  for (int d = 1; d < loop.ndim; ++d)
    if (loop.strides[1][d] == itemsize) unit = d;
  if (unit == 0 || loop.shape[0] < kLeastExtent || loop.shape[unit] < kLeastExtent) return kNotVectorisable;
  if (loop.shape[0] > kPartLimit - 128 || loop.shape[unit] > kPartLimit - 128) return kNotVectorisable;

  TransposeParams p;
  p.in = loop.data[1];
  p.out = loop.data[0];
  p.in_row = loop.strides[1][0];
  p.out_row = loop.strides[0][unit];
  p.rows = static_cast<std::uint32_t>(loop.shape[0]);
  p.columns = static_cast<std::uint32_t>(loop.shape[unit]);
  p.ndim = 0;
  std::int64_t batch = 1;
  for (int d = 1; d < loop.ndim; ++d) {
    if (d == unit) continue;
    if (loop.shape[d] > kPartLimit / batch) return kNotVectorisable;
    batch *= loop.shape[d];
    p.dims[p.ndim] = Divider::of(loop.shape[d]);
    p.in_strides[p.ndim] = loop.strides[1][d];
    p.out_strides[p.ndim] = loop.strides[0][d];
    ++p.ndim;
  }
  const bool words = is_aligned(p, itemsize, 4);
  switch (itemsize) {
    case 1:
      return words ? start<WordTiles<4>, 1>(p, batch, call.stream)
                   : start<ElementTiles<std::uint8_t, 64>, 1>(p, batch, call.stream);
    case 2:
      return words ? start<WordTiles<2>, 2>(p, batch, call.stream)
                   : start<ElementTiles<std::uint16_t, 64>, 2>(p, batch, call.stream);
    case 4:
      return is_aligned(p, itemsize, 16) ? start<QuadTiles, 4>(p, batch, call.stream)
                                         : start<ElementTiles<std::uint32_t, 32>, 4>(p, batch, call.stream);
    case 8: return start<ElementTiles<std::uint64_t, 32>, 8>(p, batch, call.stream);
    default: return start<ElementTiles<Vector<std::uint64_t, 2>, 32>, 16>(p, batch, call.stream);
  }
}

}  // namespace dlbridge::nd::cuda_kernels
