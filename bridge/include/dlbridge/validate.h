// The one place where a shape, strides and a pointer from outside become a descriptor. Nothing behind it checks again.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "dlbridge/errors.h"
#include "dlbridge/layout.h"
#include "dlbridge/tensor.h"

namespace dlbridge {

enum class StrideUnit : std::uint8_t { kElements, kBytes };

namespace detail {
inline std::string axis_text(std::int64_t axis) { return "axis " + std::to_string(axis); }

[[gnu::cold]] inline Status bad_ndim(std::int64_t ndim) {
  return malformed("ndim is " + std::to_string(ndim) + "; it must be between 0 and " + std::to_string(kMaxDims) +
                   ". The producer's struct is damaged, or reshape to fewer dimensions first");
}
[[gnu::cold]] inline Status bad_extent(std::int64_t axis, std::int64_t extent) {
  return malformed("the extent of " + axis_text(axis) + " is " + std::to_string(extent) +
                   "; extents must not be negative. The producer's shape is damaged");
}
[[gnu::cold]] inline Status bad_byte_stride(std::int64_t axis, std::int64_t stride, std::int64_t itemsize) {
  return refused("the stride of " + axis_text(axis) + " is " + std::to_string(stride) +
                 " bytes, not a multiple of the itemsize " + std::to_string(itemsize) +
                 "; DLPack counts strides in elements. Copy to a dense array first");
}
[[gnu::cold]] inline Status size_overflow() {
  return overflow("the product of the shape (or the bytes it needs) does not fit in 63 bits; no such array can exist. "
                  "The producer's shape is damaged");
}
[[gnu::cold]] inline Status reach_overflow() {
  return overflow("stride times extent, in bytes and over all axes, does not fit in 63 bits; no such array can exist. "
                  "The producer's strides are damaged");
}
[[gnu::cold]] inline Status null_data() {
  return malformed("the data pointer is null and the array is not empty; only an array of size 0 may have none. "
                   "The producer's struct is damaged, or its memory was freed");
}
}  // namespace detail

// Fills t's shape, strides (to elements) and size from what a producer gave; t.set_dtype() was called and t.dl.data is
// set. `strides` may be null: row-major. Strides of axes with extent <= 1 are never used, so an odd one there is
// replaced, not refused. Nothing of the producer's is modified. `Descriptor` is Tensor, or has its dl, size, itemsize()
// and reserve_dims().
template <StrideUnit unit, class Descriptor>
Status build_layout(Descriptor& t, std::int64_t ndim, const std::int64_t* shape, const std::int64_t* strides) {
  if (ndim < 0 || ndim > kMaxDims) [[unlikely]]
    return detail::bad_ndim(ndim);
  t.reserve_dims(static_cast<std::int32_t>(ndim));
  const std::int64_t itemsize = t.itemsize();
  const int shift = std::countr_zero(static_cast<std::uint64_t>(itemsize));
  std::int64_t* const out_shape = t.dl.shape;
  std::int64_t* const out_strides = t.dl.strides;
  const std::int64_t most = INT64_MAX >> shift;  // elements that 63 bits of bytes hold
  std::uint64_t dense = 1;                       // product of the extents, zeros counted as one: the row-major stride
  std::uint64_t reach = 0;                       // elements between the lowest and the highest one touched
  bool empty = false, size_overflows = false, reach_overflows = false;
  for (std::int64_t i = ndim - 1; i >= 0; --i) {
    const std::int64_t extent = shape[i];
    auto stride = static_cast<std::int64_t>(dense);
    if (strides != nullptr) {
      stride = strides[i];
      if constexpr (unit == StrideUnit::kBytes) {
        if ((stride & (itemsize - 1)) == 0) [[likely]] {
          stride >>= shift;
        } else if (extent <= 1) {
          stride = static_cast<std::int64_t>(dense);
        } else {
          return detail::bad_byte_stride(i, stride, itemsize);
        }
      }
    }
    out_shape[i] = extent;
    out_strides[i] = stride;
    if (extent > 1) [[likely]] {
      const std::uint64_t inner = dense;
      size_overflows |= __builtin_mul_overflow(dense, static_cast<std::uint64_t>(extent), &dense);
      if (static_cast<std::uint64_t>(stride) == inner) [[likely]] {
        reach_overflows |= __builtin_add_overflow(reach, dense - inner, &reach);  // an inner axis may have gone far
      } else {
        const auto magnitude = stride < 0 ? 0 - static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
        std::uint64_t axis_reach;
        reach_overflows |= __builtin_mul_overflow(magnitude, static_cast<std::uint64_t>(extent) - 1, &axis_reach);
        reach_overflows |= __builtin_add_overflow(reach, axis_reach, &reach);
      }
    } else if (extent < 0) {
      return detail::bad_extent(i, extent);
    } else {  // a stride that is never used; exporters multiply it by the itemsize all the same
      empty |= extent == 0;
      if (stride > most || stride < -most) [[unlikely]]
        out_strides[i] = static_cast<std::int64_t>(dense);
    }
  }
  const auto limit = static_cast<std::uint64_t>(most);
  if (size_overflows || dense > limit) [[unlikely]]
    return detail::size_overflow();
  if (reach_overflows || reach >= limit) [[unlikely]] {
    if (!empty) return detail::reach_overflow();
    fill_c_strides(t.dl);
  }
  if (empty) [[unlikely]] {
    t.size = 0;
    t.dl.data = nullptr;  // DLPack: a tensor of size zero has a null data pointer
    return {};
  }
  t.size = static_cast<std::int64_t>(dense);
  if (t.dl.data == nullptr) [[unlikely]]
    return detail::null_data();
  return {};
}

inline Status build_layout(Tensor& t, std::int64_t ndim, const std::int64_t* shape, const std::int64_t* strides,
                           StrideUnit unit) {
  return unit == StrideUnit::kBytes ? build_layout<StrideUnit::kBytes>(t, ndim, shape, strides)
                                    : build_layout<StrideUnit::kElements>(t, ndim, shape, strides);
}

// The layout of `count` dense one-byte elements from t.dl.data on: bytes, bytearray, mmap. Nothing in it can overflow.
inline Status build_byte_layout(Tensor& t, std::int64_t count) {
  if (count < 0) [[unlikely]]
    return detail::bad_extent(0, count);
  t.reserve_dims(1);
  t.dl.shape[0] = count;
  t.dl.strides[0] = 1;
  t.size = count;
  if (count == 0) [[unlikely]] {
    t.dl.data = nullptr;
    return {};
  }
  return t.dl.data != nullptr ? Status() : detail::null_data();
}

// The bytes that a layout touches, [low, high), counted from its first element; {0, 0} where it has no element.
struct ByteReach {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// The reach of any extents and strides, from wherever they come; null strides: row-major. False where it does not fit
// in 63 bits, or an extent is negative: no memory holds that.
inline bool find_byte_reach(std::int64_t ndim, const std::int64_t* shape, const std::int64_t* strides, StrideUnit unit,
                            std::int64_t itemsize, ByteReach& out) noexcept {
  out = {};
  bool overflows = false, empty = false;
  ByteReach reach{0, itemsize};
  std::int64_t dense = itemsize;
  for (std::int64_t i = ndim - 1; i >= 0; --i) {
    if (shape[i] < 0) return false;
    if (shape[i] <= 1) {
      empty |= shape[i] == 0;
      continue;
    }
    std::int64_t stride = dense, axis_reach;
    if (strides != nullptr)
      overflows |= __builtin_mul_overflow(strides[i], unit == StrideUnit::kBytes ? 1 : itemsize, &stride);
    else overflows |= __builtin_mul_overflow(dense, shape[i], &dense);
    overflows |= __builtin_mul_overflow(stride, shape[i] - 1, &axis_reach);
    std::int64_t& end = axis_reach < 0 ? reach.low : reach.high;
    overflows |= __builtin_add_overflow(end, axis_reach, &end);
  }
  if (empty) return true;
  out = reach;
  return !overflows;
}

// Refuses a layout whose elements do not all lie in a block of `length` bytes, the first of them at byte `offset` of
// it. Whoever makes an array over memory that it was told the size of asks here. Nothing wraps around, whatever the
// numbers are.
inline Status check_fits_in_memory(std::int64_t ndim, const std::int64_t* shape, const std::int64_t* strides,
                                   StrideUnit unit, std::int64_t itemsize, std::int64_t offset, std::int64_t length,
                                   const char* remedy) {
  ByteReach reach;
  std::int64_t low = 0, high = 0;
  const bool bounded = find_byte_reach(ndim, shape, strides, unit, itemsize, reach) &&
                       !__builtin_add_overflow(reach.low, offset, &low) &&
                       !__builtin_add_overflow(reach.high, offset, &high);
  if (bounded && low >= 0 && high <= length) return {};
  const std::string bytes = bounded ? "from byte " + std::to_string(low) + " to " + std::to_string(high)
                                    : std::string("further than 63 bits of bytes");
  return malformed("the shape, strides and offset reach " + bytes + ", and the memory has " + std::to_string(length) +
                   " bytes. " + remedy);
}

// The alignment that loads of one element need: that of its scalar component.
constexpr std::uintptr_t alignment_of(const DTypeInfo& dtype) noexcept {
  return dtype.code == kDLComplex ? dtype.itemsize / 2U : dtype.itemsize;
}

inline bool is_aligned(const Tensor& t) noexcept {
  return (reinterpret_cast<std::uintptr_t>(t.dl.data) & (alignment_of(t.dtype()) - 1)) == 0;
}

namespace detail {
consteval bool itemsizes_are_powers_of_two() {
  for (const DTypeInfo& d : kDTypes)
    if (!std::has_single_bit(static_cast<unsigned>(d.itemsize))) return false;
  return true;
}
static_assert(itemsizes_are_powers_of_two(), "build_layout divides by the itemsize with a shift");
}  // namespace detail

}  // namespace dlbridge
