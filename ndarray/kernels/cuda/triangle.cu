// Triangles of matrices on CUDA: what is 0 in the result is not read.
#include <cstdint>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/divider.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;

template <class U>
struct TriangleParams {
  unsigned char* out;
  const unsigned char* in;
  U size;
  int ndim;
  bool lower;
  std::int64_t diagonal;
  BasicDivider<U> shape[kLoopDims];
  std::int64_t strides[kLoopDims];
};

// Complex numbers promise the alignment of their parts only.
template <class Half>
struct Pair {
  Half parts[2];
};

template <class Read, class Write, class U>
__global__ void __launch_bounds__(kThreads) copy_triangle(const __grid_constant__ TriangleParams<U> p) {
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const U at = (static_cast<U>(blockIdx.x) * kPerThread + j) * kThreads + threadIdx.x;
    if (at >= p.size) return;
    U rest = at;
    const auto column = static_cast<std::int64_t>(p.shape[0].split(rest));
    const auto row = static_cast<std::int64_t>(p.ndim > 2 ? p.shape[1].split(rest) : rest);
    Write value{};
    if (p.lower ? column - row <= p.diagonal : column - row >= p.diagonal) {
      std::int64_t offset = column * p.strides[0] + row * p.strides[1];
      for (int d = 2; d < p.ndim - 1; ++d) offset += static_cast<std::int64_t>(p.shape[d].split(rest)) * p.strides[d];
      if (p.ndim > 2) offset += static_cast<std::int64_t>(rest) * p.strides[p.ndim - 1];
      const Read found = *reinterpret_cast<const Read*>(p.in + offset);
      static_assert(sizeof found == sizeof value);
      memcpy(&value, &found, sizeof value);
    }
    reinterpret_cast<Write*>(p.out)[at] = value;
  }
}

template <class Read, class Write, class U>
int launch(const TriangleArgs& args) {
  TriangleParams<U> p{static_cast<unsigned char*>(args.out),
                      static_cast<const unsigned char*>(args.in),
                      static_cast<U>(args.size),
                      args.ndim,
                      args.lower,
                      args.diagonal,
                      {},
                      {}};
  for (int d = 0; d < args.ndim; ++d) {
    p.shape[d] = BasicDivider<U>::of(args.shape[d]);
    p.strides[d] = args.strides[d];
  }
  constexpr std::int64_t a_block = std::int64_t{kThreads} * kPerThread;
  const auto blocks = static_cast<unsigned>((args.size + a_block - 1) / a_block);
  copy_triangle<Read, Write, U><<<blocks, kThreads, 0, reinterpret_cast<cudaStream_t>(args.stream)>>>(p);
  return static_cast<int>(cudaGetLastError());
}

template <class Read, class Write = Read>
int launch_sized(const TriangleArgs& args) {
  return args.size < std::int64_t{1} << 31 ? launch<Read, Write, std::uint32_t>(args)
                                           : launch<Read, Write, std::uint64_t>(args);
}

bool is_aligned(const TriangleArgs& args) {
  auto places = reinterpret_cast<std::uintptr_t>(args.in);
  for (int d = 0; d < args.ndim; ++d) places |= static_cast<std::uintptr_t>(args.strides[d]);
  return places % static_cast<std::uintptr_t>(args.itemsize) == 0;
}

}  // namespace

int triangle(const TriangleArgs& args) {
  switch (args.itemsize) {
    case 1: return launch_sized<std::uint8_t>(args);
    case 2: return launch_sized<std::uint16_t>(args);
    case 4: return launch_sized<std::uint32_t>(args);
    case 8: return is_aligned(args) ? launch_sized<uint2>(args) : launch_sized<Pair<std::uint32_t>, uint2>(args);
    case 16: return is_aligned(args) ? launch_sized<uint4>(args) : launch_sized<Pair<uint2>, uint4>(args);
    default: return kErrorUnsupported;
  }
}

}  // namespace dlbridge::nd::cuda_kernels
