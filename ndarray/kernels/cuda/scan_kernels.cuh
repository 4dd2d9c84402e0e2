// The scan kernels and their launches; scan.cuh says how they work.
#pragma once

#include "ndarray/kernels/cuda/scan.cuh"

namespace dlbridge::nd::cuda_kernels {

inline constexpr int kScanWarps = kScanThreads / kScanWarp;
inline constexpr int kScanRounds = 4;  // vectors a thread holds

template <class Acc>
inline constexpr int kScanVector = 16 / static_cast<int>(sizeof(Acc));
template <class Acc>
inline constexpr std::int64_t kScanTile = std::int64_t{kScanThreads} * kScanRounds * kScanVector<Acc>;

struct ScanBuffers {
  const void* in;
  void* out;
};

// A tile of a row in a block's registers: where it lies, and its scan.
// Vectors start at multiples of their length in the whole array, so that rows of any length move whole vectors.
template <class Op, class Acc>
struct Tile {
  static constexpr int V = kScanVector<Acc>;
  static constexpr int R = kScanRounds;
  Span spans[R];
  Acc x[R][V];

  template <class Types>
  __device__ void load(const Types& types, const void* in, std::int64_t first, std::int64_t last, std::int64_t tile) {
    const int lane = static_cast<int>(threadIdx.x) % kScanWarp, warp = static_cast<int>(threadIdx.x) / kScanWarp;
    const std::int64_t base = first / V * V + tile * kScanTile<Acc> + warp * (R * kScanWarp * V) + lane * V;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const std::int64_t index = base + r * (kScanWarp * V);
      spans[r] = {index, index < first ? static_cast<int>(first - index) : 0,
                  index + V <= last ? V : (index < last ? static_cast<int>(last - index) : 0)};
    }
    load_spans<Op>(types, in, spans, x);
  }

  // Scans behind `carry`, and returns the carry of the next tile. `totals`: shared, one a warp.
  __device__ Acc scan(Acc carry, Acc* totals) {
    const int lane = static_cast<int>(threadIdx.x) % kScanWarp, warp = static_cast<int>(threadIdx.x) / kScanWarp;
    Acc carries[R];
    Acc running = Op::template identity<Acc>();
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int i = 1; i < V; ++i) x[r][i] = Op::merge(x[r][i - 1], x[r][i]);
      Acc total = x[r][V - 1];
      const Acc before = scan_lanes<Op>(total, lane, kScanWarp);
      carries[r] = Op::merge(running, before);
      running = Op::merge(running, total);
    }
    __syncthreads();  // the totals of the tile before have been read
    if (lane == 0) totals[warp] = running;
    __syncthreads();
    Acc prefix = carry;
    for (int w = 0; w < kScanWarps; ++w) {
      if (w == warp) prefix = carry;
      carry = Op::merge(carry, totals[w]);
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const Acc before = Op::merge(prefix, carries[r]);
#pragma unroll
      for (int i = 0; i < V; ++i) x[r][i] = Op::merge(before, x[r][i]);
    }
    return carry;
  }

  template <class Types>
  __device__ void store(const Types& types, void* out) const {
#pragma unroll
    for (int r = 0; r < R; ++r)
      if (spans[r].low < spans[r].high) store_span(types, out, spans[r], x[r]);
  }
};

// Few long rows, first pass: the totals of all tiles, (rows, tiles).
template <class Op, class Acc, class Types>
__global__ void __launch_bounds__(kScanThreads)
    total_tiles(Types types, const void* in, std::int64_t n, std::int64_t tiles, Acc* totals) {
  __shared__ __align__(16) unsigned char storage[kScanWarps * sizeof(Acc)];
  const std::int64_t row = blockIdx.x / tiles, tile = blockIdx.x - row * tiles;
  Tile<Op, Acc> own;
  own.load(types, in, row * n, row * n + n, tile);
  const Acc total = own.scan(Op::template identity<Acc>(), reinterpret_cast<Acc*>(storage));
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

// The second: each tile behind the scanned totals (null: a tile a row) of those before it.
template <class Op, class Acc, class Types>
__global__ void __launch_bounds__(kScanThreads)
    scan_tiles(Types types, ScanBuffers buffers, std::int64_t n, std::int64_t tiles, const Acc* totals) {
  __shared__ __align__(16) unsigned char storage[kScanWarps * sizeof(Acc)];
  const std::int64_t row = blockIdx.x / tiles, tile = blockIdx.x - row * tiles;
  Tile<Op, Acc> own;
  own.load(types, buffers.in, row * n, row * n + n, tile);
  const Acc before = tile == 0 ? Op::template identity<Acc>() : totals[blockIdx.x - 1];
  own.scan(before, reinterpret_cast<Acc*>(storage));
  own.store(types, buffers.out);
}

// Many long rows: a block walks a row, the next tile loaded while this one is scanned.
template <class Op, class Acc, class Types>
__global__ void __launch_bounds__(kScanThreads)
    scan_long_rows(Types types, ScanBuffers buffers, std::int64_t n, std::int64_t tiles) {
  __shared__ __align__(16) unsigned char storage[kScanWarps * sizeof(Acc)];
  const std::int64_t first = std::int64_t{blockIdx.x} * n, last = first + n;
  Acc carry = Op::template identity<Acc>();
  Tile<Op, Acc> next;
  next.load(types, buffers.in, first, last, 0);
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    Tile<Op, Acc> own = next;
    if (tile + 1 < tiles) next.load(types, buffers.in, first, last, tile + 1);
    carry = own.scan(carry, reinterpret_cast<Acc*>(storage));
    own.store(types, buffers.out);
  }
}

// Short rows: 1 << log_lanes lanes walk a row, the next vector loaded while this one is scanned.
template <class Op, class Acc, class Types>
__global__ void __launch_bounds__(kScanThreads)
    scan_short_rows(Types types, ScanBuffers buffers, std::int64_t rows, std::int64_t n, int log_lanes) {
  constexpr int V = kScanVector<Acc>;
  const int lanes = 1 << log_lanes;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * (kScanThreads >> log_lanes) +
                           (static_cast<int>(threadIdx.x) >> log_lanes);
  const bool active = row < rows;
  const std::int64_t first = row * n, last = active ? first + n : first;
  const std::int64_t start = first / V * V;
  // All rows take the same number of steps, so that the lanes of a warp stay together for the shuffles.
  const std::int64_t steps = (n + V - 1 + lanes * V - 1) / (lanes * V);
  const auto span_of = [&](std::int64_t step) {
    const std::int64_t index = start + (step * lanes + lane) * V;
    return Span{index, index < first ? static_cast<int>(first - index) : 0,
                index + V <= last ? V : (index < last ? static_cast<int>(last - index) : 0)};
  };
  Span spans[1] = {span_of(0)};
  Acc next[1][V];
  load_spans<Op>(types, buffers.in, spans, next);
  Acc running = Op::template identity<Acc>();
  for (std::int64_t step = 0; step < steps; ++step) {
    Acc x[V];
#pragma unroll
    for (int i = 0; i < V; ++i) x[i] = next[0][i];
    const Span span = spans[0];
    if (step + 1 < steps) {
      spans[0] = span_of(step + 1);
      load_spans<Op>(types, buffers.in, spans, next);
    }
#pragma unroll
    for (int i = 1; i < V; ++i) x[i] = Op::merge(x[i - 1], x[i]);
    Acc total = x[V - 1];
    const Acc before = scan_lanes<Op>(total, lane, lanes);
    const Acc carry = Op::merge(running, before);
    running = Op::merge(running, total);
#pragma unroll
    for (int i = 0; i < V; ++i) x[i] = Op::merge(carry, x[i]);
    if (span.low < span.high) store_span(types, buffers.out, span, x);
  }
}

// How columns are walked: `chunks` pieces of `length` rows; their totals are (outer, chunks, inner).
template <class Acc>
struct ColumnWalk {
  std::int64_t n, inner, vectors;  // vectors: of a row
  std::int64_t chunks, length;
  std::int64_t threads;  // outer * chunks * vectors
  Acc* totals;
  bool only_totals;
};

template <class Op, class Acc, int V, class Types>
__global__ void __launch_bounds__(kScanThreads) scan_columns(Types types, ScanBuffers buffers, ColumnWalk<Acc> walk) {
  constexpr int U = V > 1 ? 4 : 8;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kScanThreads + threadIdx.x;
  if (thread >= walk.threads) return;
  const std::int64_t piece = thread / walk.vectors;  // outer * chunks + chunk
  const std::int64_t column = (thread - piece * walk.vectors) * V;
  const std::int64_t outer = piece / walk.chunks, chunk = piece - outer * walk.chunks;
  const std::int64_t begin = chunk * walk.length;
  const std::int64_t end = begin + walk.length < walk.n ? begin + walk.length : walk.n;
  const std::int64_t plane = outer * walk.n * walk.inner + column;
  Acc carry[V];
#pragma unroll
  for (int v = 0; v < V; ++v)
    carry[v] = walk.only_totals || chunk == 0 ? Op::template identity<Acc>()
                                              : walk.totals[(piece - 1) * walk.inner + column + v];
  for (std::int64_t i = begin; i < end; i += U) {
    Span spans[U];
    Acc x[U][V];
#pragma unroll
    for (int u = 0; u < U; ++u) spans[u] = {plane + (i + u) * walk.inner, 0, i + u < end ? V : 0};
    load_spans<Op>(types, buffers.in, spans, x);
#pragma unroll
    for (int u = 0; u < U; ++u) {
#pragma unroll
      for (int v = 0; v < V; ++v) x[u][v] = carry[v] = Op::merge(carry[v], x[u][v]);
      if (!walk.only_totals && i + u < end) store_span(types, buffers.out, spans[u], x[u]);
    }
  }
  if (walk.only_totals)
    for (int v = 0; v < V; ++v) walk.totals[piece * walk.inner + column + v] = carry[v];
}

// --- launching -------------------------------------------------------------------------------------------------------

inline constexpr std::int64_t kTiledRow = 4096;     // rows from here on are tiled
inline constexpr std::int64_t kTiledFewRow = 1024;  // or from here on, where they are few
inline constexpr std::int64_t kLongRowBlocks = 4;   // rows a multiprocessor, from which on a block walks a row
inline constexpr std::int64_t kThreadsPerMultiprocessor = 1024;
inline constexpr std::int64_t kColumnChunk = 16;  // rows that a chunk has at least

inline bool vectors_fit(const void* p, std::size_t bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(p) % std::min<std::size_t>(bytes, 16) == 0;
}

inline ScanTypes scan_types(DType in, DType out, DType accumulator, const ScanBuffers& buffers, int vector) noexcept {
  const auto count = static_cast<std::size_t>(vector);
  return {in, out, info(out).itemsize, in == accumulator && out == accumulator,
          vectors_fit(buffers.in, info(in).itemsize * count) && vectors_fit(buffers.out, info(out).itemsize * count)};
}

// Calls run(types) with the kernels' compile-time form of the types.
template <class F>
int with_types(const ScanTypes& types, F&& run) {
  return types.native ? run(NativeScanTypes{types.aligned}) : run(types);
}

template <class Op, class Acc>
int scan_rows(const ScanArgs& args, const ScanBuffers& buffers) {
  constexpr int V = kScanVector<Acc>;
  const ScanTypes types = scan_types(args.in_dtype, args.out_dtype, dtype_of_native<Acc>::value, buffers, V);
  const std::int64_t rows = args.outer, n = args.n;
  if (n < kTiledFewRow || (n < kTiledRow && rows >= kTiledRow)) {
    int log_lanes = 0;
    while (log_lanes < 5 && (std::int64_t{V} << log_lanes) < n + V - 1) ++log_lanes;
    const std::int64_t blocks = (rows + (kScanThreads >> log_lanes) - 1) / (kScanThreads >> log_lanes);
    return with_types(types, [&]<class Types>(const Types& t) {
      return launch(scan_short_rows<Op, Acc, Types>, dim3(static_cast<unsigned>(blocks)), kScanThreads, 0, args.stream,
                    t, buffers, rows, n, log_lanes);
    });
  }
  const std::int64_t tiles = (n + V - 1 + kScanTile<Acc> - 1) / kScanTile<Acc>;
  if (tiles > 1 && rows >= kLongRowBlocks * std::max(multiprocessors(), 1))
    return with_types(types, [&]<class Types>(const Types& t) {
      return launch(scan_long_rows<Op, Acc, Types>, dim3(static_cast<unsigned>(rows)), kScanThreads, 0, args.stream, t,
                    buffers, n, tiles);
    });
  const dim3 grid(static_cast<unsigned>(rows * tiles));
  Acc* totals = nullptr;
  if (tiles > 1) {
    totals = static_cast<Acc*>(args.workspace.get(static_cast<std::size_t>(rows * tiles) * sizeof(Acc)));
    if (totals == nullptr) return kErrorMemory;
    const int status = with_types(types, [&]<class Types>(const Types& t) {
      return launch(total_tiles<Op, Acc, Types>, grid, kScanThreads, 0, args.stream, t, buffers.in, n, tiles, totals);
    });
    if (status != 0) return status;
    ScanArgs of_totals = args;
    of_totals.in_dtype = of_totals.out_dtype = dtype_of_native<Acc>::value;
    of_totals.n = tiles;
    if (const int scanned = scan_rows<Op, Acc>(of_totals, {totals, totals}); scanned != 0) return scanned;
  }
  return with_types(types, [&]<class Types>(const Types& t) {
    return launch(scan_tiles<Op, Acc, Types>, grid, kScanThreads, 0, args.stream, t, buffers, n, tiles,
                  static_cast<const Acc*>(totals));
  });
}

template <class Op, class Acc>
int launch_columns(const ScanArgs& args, const ScanBuffers& buffers, ColumnWalk<Acc> walk) {
  constexpr int V = kScanVector<Acc>;
  ScanTypes types = scan_types(args.in_dtype, args.out_dtype, dtype_of_native<Acc>::value, buffers, V);
  const bool vectors = V > 1 && types.aligned && args.inner % V == 0;
  types.aligned = vectors;
  walk.vectors = vectors ? args.inner / V : args.inner;
  walk.threads = args.outer * walk.chunks * walk.vectors;
  const dim3 grid(static_cast<unsigned>((walk.threads + kScanThreads - 1) / kScanThreads));
  if constexpr (V > 1)
    if (vectors)
      return with_types(types, [&]<class Types>(const Types& t) {
        return launch(scan_columns<Op, Acc, V, Types>, grid, kScanThreads, 0, args.stream, t, buffers, walk);
      });
  return with_types(types, [&]<class Types>(const Types& t) {
    return launch(scan_columns<Op, Acc, 1, Types>, grid, kScanThreads, 0, args.stream, t, buffers, walk);
  });
}

template <class Op, class Acc>
int scan_columns_of(const ScanArgs& args, const ScanBuffers& buffers) {
  ColumnWalk<Acc> walk{args.n, args.inner, 0, 1, args.n, 0, nullptr, false};
  const std::int64_t threads = std::max<std::int64_t>(1, args.outer * args.inner / kScanVector<Acc>);
  const std::int64_t wanted = kThreadsPerMultiprocessor * std::max(multiprocessors(), 1);
  const std::int64_t chunks = std::min(args.n / kColumnChunk, (wanted + threads - 1) / threads);
  if (chunks <= 2) return launch_columns<Op>(args, buffers, walk);

  walk.length = (args.n + chunks - 1) / chunks;
  walk.chunks = (args.n + walk.length - 1) / walk.length;
  const std::int64_t totals = args.outer * walk.chunks * args.inner;
  walk.totals = static_cast<Acc*>(args.workspace.get(static_cast<std::size_t>(totals) * sizeof(Acc)));
  if (walk.totals == nullptr) return kErrorMemory;
  walk.only_totals = true;
  if (const int status = launch_columns<Op>(args, buffers, walk)) return status;
  ScanArgs of_totals = args;
  of_totals.in_dtype = of_totals.out_dtype = dtype_of_native<Acc>::value;
  of_totals.n = walk.chunks;
  if (const int status = scan_columns_of<Op, Acc>(of_totals, {walk.totals, walk.totals})) return status;
  walk.only_totals = false;
  return launch_columns<Op>(args, buffers, walk);
}

template <class Op>
int scan_by(const ScanArgs& args) {
  return visit_dtype<functors::kCastSet>(
      functors::accumulator_of(args.out_dtype),
      [&]<class Acc>() {
        const ScanBuffers buffers{args.in, args.out};
        return args.inner == 1 ? scan_rows<Op, Acc>(args, buffers) : scan_columns_of<Op, Acc>(args, buffers);
      },
      kErrorUnsupported);
}

int scan_sum(const ScanArgs& args);
int scan_prod(const ScanArgs& args);

}  // namespace dlbridge::nd::cuda_kernels
