// Matrix products on CUDA: vectors by a kernel that runs at the speed of memory, matrices by cuBLAS where it is, else
// (and for integers and bool) by tiles in shared memory.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "ndarray/kernels/cuda/cublas.h"
#include "ndarray/kernels/cuda/matrix_vector.cuh"
#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/matmul_types.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kTile = 64;      // rows and columns of a block's tile
constexpr int kDepth = 16;     // of a step
constexpr int kPerThread = 4;  // rows and columns of a thread
constexpr int kSide = kTile / kPerThread;
constexpr int kThreads = kSide * kSide;
constexpr int kLoads = kTile * kDepth / kThreads;

// The tiles of all batches in one line of blocks, so that no grid limit matters.
template <class T>
__global__ void __launch_bounds__(kThreads)
    multiply_tiles(const __grid_constant__ MatmulArgs args, std::int64_t tiles) {
  using S = product_sum_t<T>;
  constexpr int kRow = kTile + 4 / (sizeof(S) > 4 ? 2 : 1);  // padded against bank conflicts
  __shared__ alignas(16) unsigned char storage[2 * kDepth * kRow * sizeof(S)];
  S(*a_tile)[kRow] = reinterpret_cast<S(*)[kRow]>(storage);
  S(*b_tile)[kRow] = a_tile + kDepth;
  const std::int64_t across = (args.n + kTile - 1) / kTile, down = (args.m + kTile - 1) / kTile;
  const int thread = static_cast<int>(threadIdx.x), x = thread % kSide, y = thread / kSide;
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::int64_t batch = tile / across / down;
    const std::int64_t i0 = tile / across % down * kTile, j0 = tile % across * kTile;
    const T* a = static_cast<const T*>(args.a) + batch * args.a_batch;
    const T* b = static_cast<const T*>(args.b) + batch * args.b_batch;
    S sum[kPerThread][kPerThread];
#pragma unroll
    for (int r = 0; r < kPerThread; ++r)
#pragma unroll
      for (int c = 0; c < kPerThread; ++c) sum[r][c] = S(0);
    for (std::int64_t k0 = 0; k0 < args.k; k0 += kDepth) {
#pragma unroll
      for (int l = 0; l < kLoads; ++l) {
        const int at = l * kThreads + thread;
        // Neighbouring threads read neighbouring elements, whichever way the matrix lies.
        const int a_depth = args.a_column == 1 ? at % kDepth : at / kTile;
        const int a_line = args.a_column == 1 ? at / kDepth : at % kTile;
        const int b_depth = args.b_column == 1 ? at / kTile : at % kDepth;
        const int b_line = args.b_column == 1 ? at % kTile : at / kDepth;
        const bool has_a = i0 + a_line < args.m && k0 + a_depth < args.k;
        const bool has_b = j0 + b_line < args.n && k0 + b_depth < args.k;
        a_tile[a_depth][a_line] =
            has_a ? factor(a + (i0 + a_line) * args.a_row + (k0 + a_depth) * args.a_column) : S(0);
        b_tile[b_depth][b_line] =
            has_b ? factor(b + (k0 + b_depth) * args.b_row + (j0 + b_line) * args.b_column) : S(0);
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kDepth; ++k) {
        S left[kPerThread], right[kPerThread];
#pragma unroll
        for (int r = 0; r < kPerThread; ++r) left[r] = a_tile[k][y * kPerThread + r];
#pragma unroll
        for (int c = 0; c < kPerThread; ++c) right[c] = b_tile[k][x * kPerThread + c];
#pragma unroll
        for (int r = 0; r < kPerThread; ++r)
#pragma unroll
          for (int c = 0; c < kPerThread; ++c) sum[r][c] = multiply_add(sum[r][c], left[r], right[c]);
      }
      __syncthreads();
    }
    T* out = static_cast<T*>(args.c) + batch * args.c_batch;
#pragma unroll
    for (int r = 0; r < kPerThread; ++r)
#pragma unroll
      for (int c = 0; c < kPerThread; ++c) {
        const std::int64_t i = i0 + y * kPerThread + r, j = j0 + x * kPerThread + c;
        if (i < args.m && j < args.n) out[i * args.n + j] = cast<T>(sum[r][c]);
      }
  }
}

int by_tiles(const MatmulArgs& args) {
  const std::int64_t tiles = args.batch * ((args.m + kTile - 1) / kTile) * ((args.n + kTile - 1) / kTile);
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(tiles, std::numeric_limits<int>::max()));
  return visit_product(args.dtype, [&]<class T>() {
    multiply_tiles<T><<<blocks, kThreads, 0, reinterpret_cast<cudaStream_t>(args.stream)>>>(args, tiles);
    return static_cast<int>(cudaGetLastError());
  });
}

}  // namespace

int matmul(const MatmulArgs& args) {
  MatrixVector vector;
  if (as_matrix_vector(args, vector))
    return matrix_vector(vector, args.dtype, args.workspace, reinterpret_cast<cudaStream_t>(args.stream));
  if (contains(kInexactSet, args.dtype) && args.k > 0) {
    int code = 0;
    switch (cublas_matmul(args, code)) {
      case CublasResult::kDone: return 0;
      case CublasResult::kFailed: return code;
      case CublasResult::kRefused: break;
    }
  }
  return by_tiles(args);
}

}  // namespace dlbridge::nd::cuda_kernels
