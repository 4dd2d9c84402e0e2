// The tensor descriptor: the one value every reader makes and every exporter takes.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "dlbridge/device.h"
#include "dlbridge/dlpack.h"
#include "dlbridge/dtype.h"
#include "dlbridge/owner.h"
#include "dlbridge/stream.h"

namespace dlbridge {

inline constexpr std::int32_t kInlineDims = 8;  // shapes of up to so many dimensions need no allocation
inline constexpr std::int32_t kMaxDims = 64;    // NumPy's and PyTorch's own limit

// What view() makes; tensor_view.h.
template <class T, int Rank, class Layout, class Device>
class TensorView;
struct any_layout;
struct on_host;

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
  Tensor(Tensor&& other) noexcept { steal(std::move(other)); }
  Tensor& operator=(Tensor&& other) noexcept {
    if (this != &other) {
      owner.reset();
      delete[] std::exchange(heap_dims_, nullptr);
      steal(std::move(other));
    }
    return *this;
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() {
    if (heap_dims_ != nullptr) [[unlikely]]
      delete[] heap_dims_;
  }

  // The rest of the SDK's face, defined in managed.h (first four) and tensor_view.h.
  //
  // Consumes the managed tensor, always: where it throws Error its deleter has run.
  static Tensor take(DLManagedTensorVersioned* managed);
  static Tensor take(DLManagedTensor* managed);
  // Gives the tensor away; the receiver calls the deleter once. Where it throws, the tensor is still the caller's.
  // The legacy struct has no flags: a read-only or padded tensor is refused.
  DLManagedTensorVersioned* release() &&;
  DLManagedTensor* release_legacy() &&;
  // A second tensor of the same memory; the memory is freed with the last of them, on any thread. Not two calls on
  // one tensor at once: it changes this tensor's owner to a counted one.
  Tensor share();

  // A typed view, checked here once and never again; the tensor must outlive it. Throws Error with what was expected,
  // what was got and a hint. A const tensor gives views of const elements only, and a temporary none.
  template <class T, int Rank, class Layout = any_layout, class Device = on_host>
  TensorView<T, Rank, Layout, Device> view() &;
  template <class T, int Rank, class Layout = any_layout, class Device = on_host>
  TensorView<T, Rank, Layout, Device> view() const&;
  template <class T, int Rank, class Layout = any_layout, class Device = on_host>
  TensorView<T, Rank, Layout, Device> view() const&&;

  // Makes room for `ndim` extents and strides and points dl.shape and dl.strides at it. Throws std::bad_alloc.
  void reserve_dims(std::int32_t ndim) {
    if (ndim > kInlineDims) [[unlikely]] {
      auto* dims = new std::int64_t[2 * static_cast<std::size_t>(ndim)];
      delete[] std::exchange(heap_dims_, dims);
      point_at(dims, ndim);
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
    if (is_subbyte(dl.dtype) && !padded()) {
      const std::int64_t bits = dl.dtype.bits * dl.dtype.lanes;  // below 8: nothing here leaves 63 bits
      return size / 8 * bits + (size % 8 * bits + 7) / 8;
    }
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
  void steal(Tensor&& other) noexcept {
    dl = other.dl;
    dtype_ = other.dtype_;
    flags = other.flags;
    size = other.size;
    ready = other.ready;
    owner = std::move(other.owner);
    heap_dims_ = std::exchange(other.heap_dims_, nullptr);
    if (other.dl.shape == other.inline_dims_) {  // also where room on the heap was made before and is not used
      const std::size_t bytes = static_cast<std::size_t>(dl.ndim) * sizeof(std::int64_t);
      std::memcpy(inline_dims_, other.dl.shape, bytes);
      std::memcpy(inline_dims_ + kInlineDims, other.dl.strides, bytes);
      point_at(inline_dims_, kInlineDims);
    }
    other.reset_header();
    other.size = 1;
  }

  const DTypeInfo* dtype_;                     // the row of dl.dtype: the hot path asks it for the itemsize
  std::int64_t* heap_dims_ = nullptr;          // owned
  std::int64_t inline_dims_[2 * kInlineDims];  // extents, then strides; left uninitialised on purpose
};

namespace detail {
// The same elements under the same token, with extents and strides of its own and without the owner. Throws
// std::bad_alloc.
inline Tensor alias_of(const Tensor& t) {
  Tensor out;
  out.reserve_dims(t.dl.ndim);
  std::int64_t *const shape = out.dl.shape, *const strides = out.dl.strides;
  for (std::int32_t i = 0; i < t.dl.ndim; ++i) {
    shape[i] = t.dl.shape[i];
    strides[i] = t.dl.strides[i];
  }
  out.dl = t.dl;
  out.dl.shape = shape;
  out.dl.strides = strides;
  out.set_dtype(t.dtype());
  out.flags = t.flags;
  out.size = t.size;
  out.ready = t.ready;
  return out;
}
}  // namespace detail

}  // namespace dlbridge
