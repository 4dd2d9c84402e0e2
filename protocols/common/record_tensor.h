// A descriptor that fills a record of the C ABI instead of a Tensor: no object, no allocation.
#pragma once

#include <bit>
#include <cstdint>

#include "dlbridge/c_api.h"
#include "dlbridge/layout.h"
#include "dlbridge/tensor.h"
#include "dlbridge/validate.h"

namespace dlbridge::py {

// Extents go to dims[0…], strides to dims[capacity…]. The caller has seen that the array has no more axes than
// that.
class RecordTensor {
 public:
  DLTensor& dl;
  std::int64_t& size;
  std::uint64_t& flags;

  RecordTensor(c_api::Record& record, std::int64_t* dims, std::int32_t capacity) noexcept
      : dl(record.dl), size(record.size), flags(record.flags), dims_(dims), capacity_(capacity) {
    dl.byte_offset = 0;
    size = 1;
    flags = 0;
  }

  void reserve_dims(std::int32_t ndim) noexcept {
    dl.shape = dims_;
    dl.strides = dims_ + capacity_;
    dl.ndim = ndim;
  }
  void set_dtype(const DTypeInfo& row) noexcept {
    // In one: the extension reads it so.
    const DLDataType dtype{row.code, row.bits, row.lanes};
    dl.dtype = std::bit_cast<DLDataType>(dlbridge::detail::alone(std::bit_cast<std::uint32_t>(dtype)));
    dtype_ = &row;
  }
  std::int64_t itemsize() const noexcept { return dtype_->itemsize; }
  std::int32_t capacity() const noexcept { return capacity_; }
  bool is_aligned() const noexcept {
    return (reinterpret_cast<std::uintptr_t>(dl.data) & (alignment_of(*dtype_) - 1)) == 0;
  }

 private:
  std::int64_t* dims_;
  std::int32_t capacity_;
  const DTypeInfo* dtype_ = nullptr;
};

}  // namespace dlbridge::py
