// Dense host memory: allocation, and the gather of any strided host tensor into C order.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "dlbridge/atomic.h"
#include "dlbridge/dims.h"
#include "dlbridge/errors.h"
#include "dlbridge/layout.h"
#include "dlbridge/tensor.h"
#include "dlbridge/validate.h"

namespace dlbridge {

// Blocks of memory that dlbridge allocated for copies, host and device, and has not freed yet: for leak tests.
inline Atomic<std::int64_t>& live_copies() noexcept {
  static Atomic<std::int64_t> count(0);
  return count;
}

namespace detail {
[[gnu::cold]] inline Status out_of_host_memory(std::uint64_t bytes) {
  return {ErrorCode::kOutOfMemory, std::to_string(bytes) + " bytes of host memory are not available for the copy. "
                                                           "Free memory first, or copy a part of the array"};
}

inline void free_host_block(void* block) noexcept {
  std::free(block);
  live_copies().sub(1);
}

inline constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr bool takes_huge_pages(std::int64_t bytes) noexcept { return bytes >= 2 * kHugePage; }

// `block` is what free_host_block() takes, `data` where `bytes` of aligned memory begin in it.
inline Status allocate_host_block(std::int64_t bytes, void*& block, void*& data) {
  const auto size = static_cast<std::size_t>(bytes);
  if (takes_huge_pages(bytes)) {
    if (::posix_memalign(&block, static_cast<std::size_t>(kHugePage), size) != 0) block = nullptr;
    data = block;
  } else {
    // 256 is what DLPack asks of producers where they can, and what a large copy can afford. malloc() has small blocks
    // at hand, aligned ones take five times as long.
    const std::uintptr_t alignment = bytes >= 256 ? 256 : 64;
    block = std::malloc(size + alignment);
    data = static_cast<std::byte*>(block) + (0 - reinterpret_cast<std::uintptr_t>(block)) % alignment;
  }
  if (block == nullptr) [[unlikely]]
    return out_of_host_memory(static_cast<std::uint64_t>(bytes));
  // Fresh memory is touched for the first time by the copy: with small pages the faults take longer than the copy.
  if (takes_huge_pages(bytes)) static_cast<void>(::madvise(block, size, MADV_HUGEPAGE));
  live_copies().add(1);
  return {};
}

// Everything of a dense C-order tensor but its memory; `out` is new. `bytes` is what that must hold; 0 for an empty
// tensor.
inline Status describe_dense(DLDataType dtype, std::int32_t ndim, const std::int64_t* shape, std::uint64_t flags,
                             Tensor& out, std::int64_t& bytes) {
  if (find_dtype(dtype) == nullptr) [[unlikely]]
    return refused("dtype " + dtype_name(dtype) +
                   " is not one that dlbridge knows, so no memory can be laid out for "
                   "it. Use a dtype of the table");
  if (ndim < 0 || ndim > kMaxDims) [[unlikely]]
    return bad_ndim(ndim);
  out.reserve_dims(ndim);
  out.set_dtype(*find_dtype(dtype));
  out.flags = flags;
  std::int64_t dense = 1;
  bool empty = false;
  for (std::int32_t i = 0; i < ndim; ++i) {
    if (shape[i] < 0) [[unlikely]]
      return bad_extent(i, shape[i]);
    if (shape[i] == 0) empty = true;
    else if (__builtin_mul_overflow(dense, shape[i], &dense)) [[unlikely]] return size_overflow();
    out.dl.shape[i] = shape[i];
  }
  // The widest of bits and padded bytes: nbytes() multiplies by the bits.
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::int64_t bits = is_subbyte(dtype) ? 8 : dtype.bits * dtype.lanes;
  if (dense > kMax / bits - 512) [[unlikely]]
    return size_overflow();
  fill_c_strides(out.dl);
  out.size = empty ? 0 : dense;
  bytes = out.nbytes();
  return {};
}

// allocate_host() into a new tensor, which after a failure is to be dropped.
inline Status allocate_new(DLDataType dtype, std::int32_t ndim, const std::int64_t* shape, std::uint64_t flags,
                           Tensor& out) {
  std::int64_t bytes = 0;
  DLBRIDGE_TRY(describe_dense(dtype, ndim, shape, flags, out, bytes));
  if (bytes == 0) return {};
  void* block = nullptr;
  DLBRIDGE_TRY(allocate_host_block(bytes, block, out.dl.data));
  out.owner = Owner(block, free_host_block);
  return {};
}
}  // namespace detail

// An uninitialised dense C-order tensor on the CPU. `flags`: kFlagPadded stores a sub-byte type one element a byte.
// An empty one has no memory and no owner. Throws std::bad_alloc for want of room for more than 8 extents.
inline Status allocate_host(DLDataType dtype, std::int32_t ndim, const std::int64_t* shape, Tensor& out,
                            std::uint64_t flags = kFlagCopied) {
  Tensor made;
  DLBRIDGE_TRY(detail::allocate_new(dtype, ndim, shape, flags, made));
  out = std::move(made);
  return {};
}

namespace detail {
// The axes of a gather: those of extent 1 dropped, neighbours that are one run in the source merged. The order of
// the axes is that of the destination, so the destination stays dense.
struct GatherPlan {
  std::int32_t ndim = 0;
  std::int64_t shape[kMaxDims];
  std::int64_t stride_bytes[kMaxDims];
};

inline void plan_gather(const DLTensor& t, std::int64_t itemsize, GatherPlan& plan) noexcept {
  std::int32_t n = 0;
  for (std::int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] == 1) continue;
    const std::int64_t stride = t.strides[i] * itemsize;
    if (n > 0 && continues(plan.stride_bytes[n - 1], stride, t.shape[i])) {
      plan.shape[n - 1] *= t.shape[i];
      plan.stride_bytes[n - 1] = stride;
    } else {
      plan.shape[n] = t.shape[i];
      plan.stride_bytes[n++] = stride;
    }
  }
  plan.ndim = n;
}

// One element; `bytes` is a constant after inlining, so this is one load and one store at any alignment.
template <std::size_t bytes>
inline void copy_element(std::byte* to, const std::byte* from) noexcept {
  std::memcpy(to, from, bytes);
}

template <std::size_t bytes>
inline void gather_row(std::byte* to, const std::byte* from, std::int64_t count, std::int64_t stride) noexcept {
  constexpr auto kBytes = static_cast<std::int64_t>(bytes);
  for (std::int64_t i = 0; i < count; ++i) copy_element<bytes>(to + i * kBytes, from + i * stride);
}

// rows x columns with the source's short stride along the rows: a tile at a time, so that every cache line read is
// used up before it is evicted.
template <std::size_t bytes>
inline void gather_transposed(std::byte* to, std::int64_t to_row_stride, const std::byte* from, std::int64_t rows,
                              std::int64_t row_stride, std::int64_t columns, std::int64_t column_stride) noexcept {
  constexpr std::int64_t kTile = bytes >= 8 ? 8 : 16;  // one cache line a row, or a part of one; larger ones are slower
  constexpr auto kBytes = static_cast<std::int64_t>(bytes);
  for (std::int64_t c = 0; c < columns; c += kTile) {
    const std::int64_t c_count = columns - c < kTile ? columns - c : kTile;
    for (std::int64_t r = 0; r < rows; r += kTile) {
      const std::int64_t r_end = r + kTile < rows ? r + kTile : rows;
      for (std::int64_t row = r; row < r_end; ++row) {
        std::byte* line = to + row * to_row_stride + c * kBytes;
        const std::byte* source = from + row * row_stride + c * column_stride;
        if (c_count == kTile) [[likely]] {
          for (std::int64_t i = 0; i < kTile; ++i) copy_element<bytes>(line + i * kBytes, source + i * column_stride);
        } else {
          gather_row<bytes>(line, source, c_count, column_stride);
        }
      }
    }
  }
}

// Calls body(destination, source) for every index of the plan's axes but `skip_a` and `skip_b`.
template <class Body>
inline void for_each_outer(const GatherPlan& plan, std::int32_t skip_a, std::int32_t skip_b,
                           const std::int64_t* to_strides, std::byte* to, const std::byte* from, Body body) noexcept {
  std::int32_t axes[kMaxDims];
  std::int32_t n = 0;
  for (std::int32_t i = 0; i < plan.ndim; ++i)
    if (i != skip_a && i != skip_b) axes[n++] = i;
  std::int64_t index[kMaxDims] = {};
  while (true) {
    body(to, from);
    std::int32_t k = n - 1;
    for (; k >= 0; --k) {
      const std::int32_t axis = axes[k];
      to += to_strides[axis];
      from += plan.stride_bytes[axis];
      if (++index[k] < plan.shape[axis]) break;
      index[k] = 0;
      to -= plan.shape[axis] * to_strides[axis];
      from -= plan.shape[axis] * plan.stride_bytes[axis];
    }
    if (k < 0) return;
  }
}

inline std::int64_t magnitude(std::int64_t x) noexcept { return x < 0 ? -x : x; }

template <std::size_t bytes>
inline void run_gather(const GatherPlan& plan, std::byte* to, const std::byte* from) noexcept {
  constexpr auto kBytes = static_cast<std::int64_t>(bytes);
  std::int64_t to_strides[kMaxDims];
  const std::int32_t last = plan.ndim - 1;
  std::int64_t stride = kBytes;
  std::int32_t shortest = last;
  for (std::int32_t i = last; i >= 0; --i) {
    to_strides[i] = stride;
    stride *= plan.shape[i];
    // A broadcast axis (stride 0) costs nothing to walk and gains nothing from tiles.
    const std::int64_t reach = magnitude(plan.stride_bytes[i]);
    if (reach != 0 && reach < magnitude(plan.stride_bytes[shortest])) shortest = i;
  }
  const std::int64_t columns = plan.shape[last];
  const std::int64_t column_stride = plan.stride_bytes[last];
  if (column_stride == kBytes) {
    const auto run = static_cast<std::size_t>(columns) * bytes;
    for_each_outer(plan, last, last, to_strides, to, from,
                   [=](std::byte* d, const std::byte* s) { std::memcpy(d, s, run); });
  } else if (shortest != last && plan.shape[shortest] > 1) {
    const std::int64_t rows = plan.shape[shortest];
    const std::int64_t row_stride = plan.stride_bytes[shortest];
    const std::int64_t to_row_stride = to_strides[shortest];
    for_each_outer(plan, last, shortest, to_strides, to, from, [=](std::byte* d, const std::byte* s) {
      gather_transposed<bytes>(d, to_row_stride, s, rows, row_stride, columns, column_stride);
    });
  } else {
    for_each_outer(plan, last, last, to_strides, to, from,
                   [=](std::byte* d, const std::byte* s) { gather_row<bytes>(d, s, columns, column_stride); });
  }
}

[[gnu::cold]] inline Status packed_is_strided(DLDataType dtype) {
  return refused("dtype " + dtype_name(dtype) +
                 " is packed, several elements per byte, and the array is not contiguous; "
                 "its elements cannot be gathered bytewise. Make it contiguous with the producer's own copy first");
}
}  // namespace detail

// Writes the elements of `source` to `destination` in C order. `source.data` is readable from the host, as is every
// element that the layout reaches; it may be misaligned. The two do not overlap. The tensor is not packed sub-byte.
inline void gather_to_dense(const DLTensor& source, void* destination) noexcept {
  for (std::int32_t i = 0; i < source.ndim; ++i)
    if (source.shape[i] == 0) return;
  const std::int64_t itemsize = itemsize_bytes(source.dtype);
  detail::GatherPlan plan;
  detail::plan_gather(source, itemsize, plan);
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source.data);
  if (plan.ndim == 0) {
    std::memcpy(to, from, static_cast<std::size_t>(itemsize));
    return;
  }
  switch (itemsize) {
    case 1: return detail::run_gather<1>(plan, to, from);
    case 2: return detail::run_gather<2>(plan, to, from);
    case 4: return detail::run_gather<4>(plan, to, from);
    case 8: return detail::run_gather<8>(plan, to, from);
    default: return detail::run_gather<16>(plan, to, from);
  }
}
static_assert([] {
  for (const DTypeInfo& d : kDTypes)
    if (d.itemsize > 16) return false;
  return true;
}());

// A copy of its own of a host tensor: on the CPU, writable, dense, C order, flagged as copied. The source's data is
// ready (the caller has synchronised).
inline Status dense_host_copy(const Tensor& source, Tensor& out) {
  const bool contiguous = is_c_contiguous(source.dl);
  if (is_subbyte(source.dl.dtype) && !source.padded() && !contiguous) [[unlikely]]
    return detail::packed_is_strided(source.dl.dtype);
  DLBRIDGE_TRY(
      allocate_host(source.dl.dtype, source.dl.ndim, source.dl.shape, out, kFlagCopied | (source.flags & kFlagPadded)));
  if (source.size == 0) return {};
  const std::byte* from = static_cast<const std::byte*>(source.dl.data) + source.dl.byte_offset;
  if (contiguous) {
    std::memcpy(out.dl.data, from, static_cast<std::size_t>(out.nbytes()));
    return {};
  }
  DLTensor view = source.dl;
  view.data = const_cast<std::byte*>(from);
  view.byte_offset = 0;
  gather_to_dense(view, out.dl.data);
  return {};
}

}  // namespace dlbridge
