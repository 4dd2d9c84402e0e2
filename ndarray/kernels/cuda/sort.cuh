// The sorts on CUDA: keys are unsigned integers whose order is the dtype's (functors/sort_keys.h).
#pragma once

#include "ndarray/kernels/cuda/launch.cuh"
#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/divider.h"
#include "ndarray/kernels/functors/sort_keys.h"

namespace dlbridge::nd::cuda_kernels {

// Keys and their spare buffer; a sort says in which of the two it left the result.
template <class T>
struct KeyBuffers {
  T* current;
  T* spare;
};

// Device-wide radix sorts by the low `bits` bits, ascending and stable. sort_keys() reads `in` and writes `out`, which
// may be the same; the others leave the result in `current` of their buffers. Each in the file of its name.
int radix_sort(const float* in, float* out, std::int64_t n, const SortArgs& args);
int radix_sort(const std::int32_t* in, std::int32_t* out, std::int64_t n, const SortArgs& args);
int radix_sort(KeyBuffers<std::uint16_t>& keys, std::int64_t n, int bits, const SortArgs& args);
int radix_sort(KeyBuffers<std::int32_t>& keys, std::int64_t n, int bits, const SortArgs& args);
int radix_sort(KeyBuffers<std::uint64_t>& keys, std::int64_t n, int bits, const SortArgs& args);
int radix_sort(KeyBuffers<std::uint32_t>& keys, KeyBuffers<std::uint32_t>& values, std::int64_t n, int bits,
               const SortArgs& args);
int radix_sort(KeyBuffers<std::uint64_t>& keys, KeyBuffers<std::uint32_t>& values, std::int64_t n, int bits,
               const SortArgs& args);

// Keys that no radix sort takes: 128 bits, or 64 bits and a row.
struct WideItem {
  std::uint64_t high, low;
  std::uint32_t row, index;
};
int merge_sort(WideItem* items, std::int64_t n, const SortArgs& args);

// Rows that fit into a block, many or few.
inline constexpr std::int64_t kBlockSortItems = 2048;
inline constexpr std::int64_t kWideBlockSortItems = 1024;
int block_sort(const SortArgs& args);

// Hands out the same pieces to one row after the other: they are sorted in the order of one stream.
class ReusedWorkspace {
 public:
  explicit ReusedWorkspace(const Workspace& workspace) : workspace_(workspace) {}
  Workspace view() { return {&ReusedWorkspace::allocate, this}; }
  void rewind() { next_ = 0; }

 private:
  static constexpr int kPieces = 16;  // of a row, at most
  static void* allocate(void* context, std::size_t bytes) {
    auto& self = *static_cast<ReusedWorkspace*>(context);
    if (self.next_ == kPieces) return self.workspace_.get(bytes);
    Piece& piece = self.pieces_[self.next_++];
    if (piece.bytes < bytes || piece.memory == nullptr) piece = {self.workspace_.get(bytes), bytes};
    return piece.memory;
  }
  struct Piece {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };
  const Workspace& workspace_;
  Piece pieces_[kPieces];
  int next_ = 0;
};

// Workspace, a piece at a time; a null piece is remembered.
class Scratch {
 public:
  explicit Scratch(const SortArgs& args) : args_(args) {}
  template <class T>
  T* get(std::int64_t count) {
    void* p = args_.workspace.get(static_cast<std::size_t>(count) * sizeof(T));
    failed_ = failed_ || p == nullptr;
    return static_cast<T*>(p);
  }
  template <class T>
  KeyBuffers<T> pair(std::int64_t count) {
    T* const first = get<T>(count);
    return {first, get<T>(count)};
  }
  bool failed() const { return failed_; }

 private:
  const SortArgs& args_;
  bool failed_ = false;
};

// An element's key, for a stable order of positions or (real dtypes) for values alone.
template <class Bits>
__device__ inline Bits encode(Bits bits, const functors::KeyCode& code, bool ranks) {
  return ranks ? functors::rank_key(bits, code) : functors::value_key(bits, code);
}

struct WideKey {
  std::uint64_t high, low;
};

// The key of element `index` of any dtype, in 128 bits.
__device__ inline WideKey wide_key(DType dtype, int itemsize, const functors::KeyCode& code, const void* keys,
                                   std::int64_t index) {
  using functors::rank_key;
  if (dtype == DType::kComplex128) {
    const std::uint64_t* parts = static_cast<const std::uint64_t*>(keys) + 2 * index;
    const auto key = rank_key(parts[0], parts[1], code);
    return {key.high, key.low};
  }
  if (dtype == DType::kComplex64) {
    const std::uint32_t* parts = static_cast<const std::uint32_t*>(keys) + 2 * index;
    const auto key = rank_key(parts[0], parts[1], code);
    return {std::uint64_t{key.high} << 32 | key.low, 0};
  }
  switch (itemsize) {
    case 1: return {rank_key(static_cast<const std::uint8_t*>(keys)[index], code), 0};
    case 2: return {rank_key(static_cast<const std::uint16_t*>(keys)[index], code), 0};
    case 4: return {rank_key(static_cast<const std::uint32_t*>(keys)[index], code), 0};
    default: return {rank_key(static_cast<const std::uint64_t*>(keys)[index], code), 0};
  }
}

// Moves one element of a run-time size; complex128 in its parts.
__device__ inline void copy_item(void* to, std::int64_t at, const void* from, std::int64_t index, int itemsize) {
  const auto copy = [&]<class T>() { static_cast<T*>(to)[at] = static_cast<const T*>(from)[index]; };
  switch (itemsize) {
    case 1: return copy.template operator()<std::uint8_t>();
    case 2: return copy.template operator()<std::uint16_t>();
    case 4: return copy.template operator()<std::uint32_t>();
    case 16:
      static_cast<std::uint64_t*>(to)[2 * at + 1] = static_cast<const std::uint64_t*>(from)[2 * index + 1];
      static_cast<std::uint64_t*>(to)[2 * at] = static_cast<const std::uint64_t*>(from)[2 * index];
      return;
    default: {  // complex64 may be aligned to its parts alone
      static_cast<std::uint32_t*>(to)[2 * at] = static_cast<const std::uint32_t*>(from)[2 * index];
      static_cast<std::uint32_t*>(to)[2 * at + 1] = static_cast<const std::uint32_t*>(from)[2 * index + 1];
    }
  }
}

}  // namespace dlbridge::nd::cuda_kernels
