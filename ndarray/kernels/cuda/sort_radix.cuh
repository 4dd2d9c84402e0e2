// CUB's device-wide radix sorts behind plain functions: each instance costs seconds of compile time.
#pragma once

#include <cub/device/device_radix_sort.cuh>

#include "ndarray/kernels/cuda/sort.cuh"

namespace dlbridge::nd::cuda_kernels {

struct CubScratch {
  void* memory;
  std::size_t bytes;
};

// Runs a CUB algorithm: asks for the size of its scratch memory, gets it, runs. `used` is that memory, free again for
// what follows on the stream.
template <class Algorithm>
int run_cub(const SortArgs& args, Algorithm&& algorithm, CubScratch* used = nullptr) {
  std::size_t bytes = 0;
  if (const cudaError_t error = algorithm(static_cast<void*>(nullptr), bytes)) return static_cast<int>(error);
  void* const memory = args.workspace.get(std::max<std::size_t>(bytes, 1));
  if (memory == nullptr) return kErrorMemory;
  if (used != nullptr) *used = {memory, bytes};
  return static_cast<int>(algorithm(memory, bytes));
}

template <class K>
int radix_sort_buffers(KeyBuffers<K>& keys, std::int64_t n, int bits, const SortArgs& args) {
  cub::DoubleBuffer<K> buffer(keys.current, keys.spare);
  const int status = run_cub(args, [&](void* memory, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(memory, bytes, buffer, n, 0, bits, stream_of(args.stream));
  });
  keys = {buffer.Current(), buffer.Alternate()};
  return status;
}

template <class K, class V>
int radix_sort_pairs(KeyBuffers<K>& keys, KeyBuffers<V>& values, std::int64_t n, int bits, const SortArgs& args) {
  cub::DoubleBuffer<K> buffer(keys.current, keys.spare);
  cub::DoubleBuffer<V> payload(values.current, values.spare);
  const int status = run_cub(args, [&](void* memory, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(memory, bytes, buffer, payload, n, 0, bits, stream_of(args.stream));
  });
  keys = {buffer.Current(), buffer.Alternate()};
  values = {payload.Current(), payload.Alternate()};
  return status;
}

// In place, the result may come to lie in the spare buffer and is copied back then. `used`: see run_cub().
template <class K>
int radix_sort_direct(const K* in, K* out, std::int64_t n, const SortArgs& args, CubScratch* used = nullptr) {
  constexpr int kBits = sizeof(K) * 8;
  if (in != out)
    return run_cub(
        args,
        [&](void* memory, std::size_t& bytes) {
          return cub::DeviceRadixSort::SortKeys(memory, bytes, in, out, n, 0, kBits, stream_of(args.stream));
        },
        used);
  KeyBuffers<K> keys{out, static_cast<K*>(args.workspace.get(static_cast<std::size_t>(n) * sizeof(K)))};
  if (keys.spare == nullptr) return kErrorMemory;
  const int status = radix_sort_buffers(keys, n, kBits, args);
  if (used != nullptr)
    *used = {keys.current == out ? keys.spare : keys.current, static_cast<std::size_t>(n) * sizeof(K)};
  if (status != 0 || keys.current == out) return status;
  return static_cast<int>(cudaMemcpyAsync(out, keys.current, static_cast<std::size_t>(n) * sizeof(K),
                                          cudaMemcpyDeviceToDevice, stream_of(args.stream)));
}

}  // namespace dlbridge::nd::cuda_kernels
