// The merge sort of wide keys; positions make all of them different, so that it is stable.
#include <cub/device/device_merge_sort.cuh>

#include "ndarray/kernels/cuda/sort.cuh"

namespace dlbridge::nd::cuda_kernels {
namespace {

struct ItemOrder {
  __device__ bool operator()(const WideItem& a, const WideItem& b) const {
    if (a.row != b.row) return a.row < b.row;
    if (a.high != b.high) return a.high < b.high;
    if (a.low != b.low) return a.low < b.low;
    return a.index < b.index;
  }
};

}  // namespace

int merge_sort(WideItem* items, std::int64_t n, const SortArgs& args) {
  std::size_t bytes = 0;
  cudaError_t error = cub::DeviceMergeSort::SortKeys(nullptr, bytes, items, n, ItemOrder{}, stream_of(args.stream));
  if (error != cudaSuccess) return static_cast<int>(error);
  void* const memory = args.workspace.get(std::max<std::size_t>(bytes, 1));
  if (memory == nullptr) return kErrorMemory;
  error = cub::DeviceMergeSort::SortKeys(memory, bytes, items, n, ItemOrder{}, stream_of(args.stream));
  return static_cast<int>(error);
}

}  // namespace dlbridge::nd::cuda_kernels
