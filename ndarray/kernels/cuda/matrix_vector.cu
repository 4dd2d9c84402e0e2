#include "ndarray/kernels/cuda/matrix_vector.cuh"

#include <algorithm>
#include <cstdint>

#include "ndarray/kernels/cuda/lanes.cuh"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr std::int64_t kEnoughBlocks = 1024;  // below it the depth is split; a constant, so that sums never change
constexpr int kUnroll = 4;

// The depth of part s is [s * part, min(k, (s + 1) * part)).
struct Split {
  std::int64_t parts = 1, part = 0;
};

Split split_depth(std::int64_t k, std::int64_t blocks, std::int64_t least) {
  const std::int64_t wanted = blocks >= kEnoughBlocks ? 1 : (kEnoughBlocks + blocks - 1) / blocks;
  const std::int64_t most = std::max<std::int64_t>(k / (least * kUnroll), 1);
  std::int64_t part = (k + std::min(wanted, most) - 1) / std::min(wanted, most);
  part = std::max((part + least - 1) / least * least, least);
  return {std::max<std::int64_t>((k + part - 1) / part, 1), part};
}

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Vector {
  T element[kCount];
};

template <class T>
inline constexpr int kVector = sizeof(T) >= 16 ? 1 : static_cast<int>(16 / sizeof(T));

template <class T>
struct VectorArgs {
  MatrixVector p;
  Split split;
  product_sum_t<T>* partial;  // [parts][batch * rows]; null: y is written
};

template <class T>
__device__ void put(const VectorArgs<T>& args, std::int64_t part, std::int64_t batch, std::int64_t row,
                    product_sum_t<T> sum) {
  if (args.partial != nullptr) args.partial[(part * args.p.batch + batch) * args.p.rows + row] = sum;
  else static_cast<T*>(args.p.y)[batch * args.p.y_batch + row] = cast<T>(sum);
}

// The sum over groups of threads (a power of two up to a warp, or the block), held by the first thread of each.
template <class S>
__device__ S group_sum(S sum, int group) {
  for (int distance = (group < kWarp ? group : kWarp) / 2; distance > 0; distance /= 2) {
    const S other = shuffle_down(sum, distance, kWarp);
    sum = sum + other;
  }
  if (group > kWarp) {
    __shared__ alignas(16) unsigned char storage[kThreads / kWarp * sizeof(S)];
    S* of_warp = reinterpret_cast<S*>(storage);
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
      for (int w = 1; w < kThreads / kWarp; ++w) sum = sum + of_warp[w];
  }
  return sum;
}

// Rows that lie along memory: a group of threads sums one part of one row.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) along_rows(const __grid_constant__ VectorArgs<T> args, int group) {
  using S = product_sum_t<T>;
  using V = Vector<T, kCount>;
  const MatrixVector& p = args.p;
  const int lane = static_cast<int>(threadIdx.x) % group;
  const std::int64_t item = std::int64_t{blockIdx.x} * (kThreads / group) + threadIdx.x / group;
  const std::int64_t total = p.batch * p.rows;
  const bool active = item < total * args.split.parts;
  const std::int64_t part = active ? item / total : 0, r = active ? item % total : 0;
  const std::int64_t batch = r / p.rows, row = r % p.rows;
  const T* matrix = static_cast<const T*>(p.matrix) + batch * p.matrix_batch + row * p.row;
  const T* x = static_cast<const T*>(p.x) + batch * p.x_batch;
  const std::int64_t first = part * args.split.part;
  const std::int64_t end = active ? (first + args.split.part < p.k ? first + args.split.part : p.k) : first;

  S sum = S(0);
  std::int64_t i = first + std::int64_t{lane} * kCount;
  if constexpr (kCount > 1) {  // strides are 1
    const std::int64_t step = std::int64_t{group} * kCount;
    for (; i + (kUnroll - 1) * step + kCount <= end; i += kUnroll * step) {
      V a[kUnroll], b[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        a[u] = *reinterpret_cast<const V*>(matrix + i + u * step);
        b[u] = *reinterpret_cast<const V*>(x + i + u * step);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
#pragma unroll
        for (int e = 0; e < kCount; ++e) sum = multiply_add(sum, factor(&a[u].element[e]), factor(&b[u].element[e]));
    }
    for (; i < end; i += step)
      for (int e = 0; e < kCount && i + e < end; ++e)
        sum = multiply_add(sum, factor(matrix + i + e), factor(x + i + e));
  } else {
#pragma unroll 4
    for (; i < end; i += group) sum = multiply_add(sum, factor(matrix + i * p.column), factor(x + i * p.x_stride));
  }
  sum = group_sum(sum, group);
  if (active && lane == 0) put(args, part, batch, row, sum);
}

// Rows that lie side by side (a row vector times a row-major matrix, or a vector's windows): a thread has kCount
// neighbouring ones, `span` threads as many as there are, and the others share the depth of the part.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) across_rows(const __grid_constant__ VectorArgs<T> args, int span) {
  using S = product_sum_t<T>;
  using V = Vector<T, kCount>;
  __shared__ alignas(16) unsigned char storage[kThreads * kCount * sizeof(S)];
  S* of_lane = reinterpret_cast<S*>(storage);  // [depths][width]
  const int depths = kThreads / span, width = span * kCount;
  const MatrixVector& p = args.p;
  const std::int64_t tiles = (p.rows + width - 1) / width;
  const std::int64_t tile = blockIdx.x % tiles, batch = blockIdx.x / tiles % p.batch,
                     part = blockIdx.x / tiles / p.batch;
  const int lane = static_cast<int>(threadIdx.x) % span, depth = static_cast<int>(threadIdx.x) / span;
  const std::int64_t row = tile * width + lane * kCount;
  const T* matrix = static_cast<const T*>(p.matrix) + batch * p.matrix_batch + row;
  const T* x = static_cast<const T*>(p.x) + batch * p.x_batch;
  const std::int64_t first = part * args.split.part;
  const std::int64_t end = first + args.split.part < p.k ? first + args.split.part : p.k;

  S sums[kCount];
#pragma unroll
  for (int e = 0; e < kCount; ++e) sums[e] = S(0);
  const auto add = [&](const V& a, S b) {
#pragma unroll
    for (int e = 0; e < kCount; ++e) sums[e] = multiply_add(sums[e], factor(&a.element[e]), b);
  };
  std::int64_t i = first + depth;
  if (row + kCount <= p.rows) {
    for (; i + (kUnroll - 1) * depths < end; i += kUnroll * depths) {
      V a[kUnroll];
      S b[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        a[u] = *reinterpret_cast<const V*>(matrix + (i + u * depths) * p.column);
        b[u] = factor(x + (i + u * depths) * p.x_stride);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) add(a[u], b[u]);
    }
    for (; i < end; i += depths) add(*reinterpret_cast<const V*>(matrix + i * p.column), factor(x + i * p.x_stride));
  } else {
    for (; i < end; i += depths)
#pragma unroll
      for (int e = 0; e < kCount; ++e)
        if (row + e < p.rows)
          sums[e] = multiply_add(sums[e], factor(matrix + i * p.column + e), factor(x + i * p.x_stride));
  }
#pragma unroll
  for (int e = 0; e < kCount; ++e) of_lane[depth * width + lane * kCount + e] = sums[e];
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < width && tile * width + c < p.rows; c += kThreads) {
    S sum = of_lane[c];
    for (int d = 1; d < depths; ++d) sum = sum + of_lane[d * width + c];
    put(args, part, batch, tile * width + c, sum);
  }
}

// A group of threads for each row.
template <class T>
__global__ void __launch_bounds__(kThreads) add_parts(const __grid_constant__ VectorArgs<T> args, int group) {
  using S = product_sum_t<T>;
  const std::int64_t total = args.p.batch * args.p.rows;
  const std::int64_t r = std::int64_t{blockIdx.x} * (kThreads / group) + threadIdx.x / group;
  const int lane = static_cast<int>(threadIdx.x) % group;
  S sum = S(0);
  if (r < total)
    for (std::int64_t part = lane; part < args.split.parts; part += group) sum = sum + args.partial[part * total + r];
  sum = group_sum(sum, group);
  if (lane == 0 && r < total)
    static_cast<T*>(args.p.y)[r / args.p.rows * args.p.y_batch + r % args.p.rows] = cast<T>(sum);
}

bool fits_16(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

template <class T>
int run(const MatrixVector& p, const Workspace& workspace, cudaStream_t stream) {
  const auto whole = [](std::int64_t stride) { return stride * static_cast<std::int64_t>(sizeof(T)) % 16 == 0; };
  const std::int64_t total = p.batch * p.rows;
  const auto blocks_of = [](std::int64_t n, std::int64_t per_block) { return (n + per_block - 1) / per_block; };
  VectorArgs<T> args{p, {}, nullptr};
  const auto reserve = [&] {
    if (args.split.parts == 1) return true;
    args.partial = static_cast<product_sum_t<T>*>(
        workspace.get(static_cast<std::size_t>(args.split.parts * total) * sizeof(product_sum_t<T>)));
    return args.partial != nullptr;
  };
  const bool aligned = fits_16(p.matrix) && whole(p.matrix_batch);
  if (p.row == 1 && p.rows > 1 && (p.column != 1 || p.rows >= p.k)) {
    const bool vectors = aligned && whole(p.column);
    const int count = vectors ? kVector<T> : 1;
    int span = 1, depths = kThreads / kWarp;
    while (depths > 1 && std::int64_t{depths} * kUnroll > p.k) depths /= 2;
    while (span < kThreads / depths && std::int64_t{span} * count < p.rows) span *= 2;
    const std::int64_t tiles = blocks_of(p.rows, std::int64_t{span} * count) * p.batch;
    args.split = split_depth(p.k, tiles, kThreads / span);
    if (!reserve()) return kErrorMemory;
    const auto blocks = static_cast<unsigned>(tiles * args.split.parts);
    if (vectors) across_rows<T, kVector<T>><<<blocks, kThreads, 0, stream>>>(args, span);
    else across_rows<T, 1><<<blocks, kThreads, 0, stream>>>(args, span);
  } else {
    const bool vectors = kVector<T> > 1 && aligned && p.column == 1 && p.x_stride == 1 && whole(p.row) &&
                         fits_16(p.x) && whole(p.x_batch) && p.k >= kVector<T>;
    const int count = vectors ? kVector<T> : 1;
    int group = 1;
    while (group < kWarp && group * count < p.k) group *= 2;
    if (p.k >= std::int64_t{kThreads} * count * kUnroll) group = kThreads;
    args.split = split_depth(p.k, blocks_of(total * group, kThreads), std::int64_t{group} * count);
    if (!reserve()) return kErrorMemory;
    const auto blocks = static_cast<unsigned>(blocks_of(total * args.split.parts * group, kThreads));
    if (vectors) along_rows<T, kVector<T>><<<blocks, kThreads, 0, stream>>>(args, group);
    else along_rows<T, 1><<<blocks, kThreads, 0, stream>>>(args, group);
  }
  if (args.partial != nullptr) {
    const int group = args.split.parts < kWarp ? 1 : args.split.parts < 2 * kThreads ? kWarp : kThreads;
    add_parts<<<static_cast<unsigned>(blocks_of(total * group, kThreads)), kThreads, 0, stream>>>(args, group);
  }
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

int matrix_vector(const MatrixVector& product, DType dtype, const Workspace& workspace, cudaStream_t stream) {
  return visit_product(dtype, [&]<class T>() { return run<T>(product, workspace, stream); });
}

}  // namespace dlbridge::nd::cuda_kernels
