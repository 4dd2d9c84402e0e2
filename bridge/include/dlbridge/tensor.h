// The tensor descriptor: the one value every reader makes and every exporter takes.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "dlbridge/device.h"
#include "dlbridge/dlpack.h"
#include "dlbridge/dtype.h"
#include "dlbridge/owner.h"
#include "dlbridge/stream.h"

namespace dlbridge {

inline constexpr std::int32_t kInlineDims = 8;  // shapes of up to so many dimensions need no allocation
inline constexpr std::int32_t kMaxDims = 64;    // NumPy's and PyTorch's own limit

// Owning, move-only. Invariants, established by build_layout() and the readers and checked nowhere after:
//   dl.shape and dl.strides point into this object's storage, never null; strides are in elements;
//   dl.dtype is a row of kDTypes, set by set_dtype(); dl.byte_offset is 0 on devices with direct addresses;
//   dl.data is non-null unless the tensor is empty, and then it is null.
class Tensor {
 public:
  DLTensor dl;
  std::uint64_t flags = 0;  // kFlag…
  std::int64_t size = 1;    // number of elements
  Ordering ready;
  Owner owner;

  Tensor() noexcept { reset_header(); }
  Tensor(Tensor&& other) noexcept { take(std::move(other)); }
  Tensor& operator=(Tensor&& other) noexcept {
    if (this != &other) {
      owner.reset();
      heap_dims_.reset();
      take(std::move(other));
    }
    return *this;
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() = default;

  // Makes room for `ndim` extents and strides and points dl.shape and dl.strides at it. Throws std::bad_alloc.
  void reserve_dims(std::int32_t ndim) {
    if (ndim > kInlineDims) [[unlikely]] {
      heap_dims_.reset(new std::int64_t[2 * static_cast<std::size_t>(ndim)]);
      point_at(heap_dims_.get(), ndim);
    } else {
      point_at(inline_dims_, kInlineDims);
    }
    dl.ndim = ndim;
  }

  void set_dtype(const DTypeInfo& row) noexcept {
    dl.dtype = {row.code, row.bits, row.lanes};
    dtype_ = &row;
  }

  bool readonly() const noexcept { return (flags & kFlagReadOnly) != 0; }
  bool padded() const noexcept { return (flags & kFlagPadded) != 0; }
  const DTypeInfo& dtype() const noexcept { return *dtype_; }
  // Bytes from one element to the next along a unit stride (1 for a packed sub-byte type, whose bytes are shared).
  std::int64_t itemsize() const noexcept { return dtype_->itemsize; }
  // Bytes the elements occupy when stored densely: packed sub-byte types share bytes, padded ones do not.
  std::int64_t nbytes() const noexcept {
    if (is_subbyte(dl.dtype) && !padded()) return (size * dl.dtype.bits * dl.dtype.lanes + 7) / 8;
    return size * itemsize();
  }

 private:
  void reset_header() noexcept {
    dtype_ = &info(DType::kUInt8);
    dl = DLTensor{nullptr, {kDLCPU, 0}, 0, {kDLUInt, 8, 1}, inline_dims_, inline_dims_ + kInlineDims, 0};
  }
  void point_at(std::int64_t* dims, std::int32_t capacity) noexcept {
    dl.shape = dims;
    dl.strides = dims + capacity;
  }
  void take(Tensor&& other) noexcept {
    dl = other.dl;
    dtype_ = other.dtype_;
    flags = other.flags;
    size = other.size;
    ready = other.ready;
    owner = std::move(other.owner);
    heap_dims_ = std::move(other.heap_dims_);
    if (heap_dims_ == nullptr) {
      const std::size_t bytes = static_cast<std::size_t>(dl.ndim) * sizeof(std::int64_t);
      std::memcpy(inline_dims_, other.dl.shape, bytes);
      std::memcpy(inline_dims_ + kInlineDims, other.dl.strides, bytes);
      point_at(inline_dims_, kInlineDims);
    }
    other.reset_header();
    other.size = 1;
  }

  const DTypeInfo* dtype_;  // the row of dl.dtype: the hot path asks it for the itemsize
  std::unique_ptr<std::int64_t[]> heap_dims_;
  std::int64_t inline_dims_[2 * kInlineDims];  // extents, then strides; left uninitialised on purpose
};

}  // namespace dlbridge
