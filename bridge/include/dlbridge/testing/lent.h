// Tensors to test a converter with: host memory that knows what it holds, and counts how often it was released.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "dlbridge/managed.h"
#include "dlbridge/tensor.h"

namespace dlbridge::detail {

using Extents = std::vector<std::int64_t>;

// What is given to a converter.
struct LentArray {
  Extents shape;
  Extents strides;  // in elements
  DType dtype = DType::kUInt8;
  DLDevice device{kDLCPU, 0};
  std::uint64_t flags = 0;
  std::uint64_t byte_offset = 0;

  std::int64_t size() const {
    std::int64_t n = 1;
    for (const std::int64_t extent : shape) n *= extent;
    return n;
  }
};

inline Extents c_strides(const Extents& shape) {
  Extents out(shape.size());
  std::int64_t dense = 1;
  for (std::size_t i = shape.size(); i-- > 0; dense *= shape[i]) out[i] = dense;
  return out;
}
inline Extents f_strides(const Extents& shape) {
  Extents out(shape.size());
  std::int64_t dense = 1;
  for (std::size_t i = 0; i < shape.size(); dense *= shape[i++]) out[i] = dense;
  return out;
}

// The producer of one tensor. What it lends lies in it, so a tensor that outlives its release shows as a count and not
// as a crash. Stays where it is.
class Lent {
 public:
  explicit Lent(LentArray given) : given_(std::move(given)) {
    const std::size_t itemsize = info(given_.dtype).itemsize;
    std::size_t below = 0, above = itemsize;  // bytes of the elements before and from the first one on
    for (std::size_t i = 0; i < given_.shape.size(); ++i) {
      const std::int64_t reach = given_.shape[i] > 1 ? (given_.shape[i] - 1) * given_.strides[i] : 0;
      (reach < 0 ? below : above) += itemsize * static_cast<std::size_t>(reach < 0 ? -reach : reach);
    }
    bytes_.resize(below + above + given_.byte_offset + kAlignment);
    // Small numbers of every dtype, and neither true nor false is anything else. No NaN, which some copies change.
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<unsigned char>(given_.dtype == DType::kBool ? i % 3 == 0 : (i * 7 + i / 8) % 59);
    void* first = bytes_.data() + below;
    std::size_t room = bytes_.size() - below;
    first = std::align(kAlignment, 1, first, room);

    DLTensor& t = managed_.dl_tensor;
    t.data = given_.size() == 0 ? nullptr : first;
    t.device = given_.device;
    t.ndim = static_cast<std::int32_t>(given_.shape.size());
    t.dtype = to_dl(given_.dtype);
    t.shape = given_.shape.data();
    t.strides = given_.size() == 0 ? nullptr : given_.strides.data();
    t.byte_offset = given_.byte_offset;
    managed_.version = kDLPackVersion;
    managed_.flags = given_.flags;
    managed_.manager_ctx = this;
    managed_.deleter = [](DLManagedTensorVersioned* self) { ++static_cast<Lent*>(self->manager_ctx)->released_; };
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  Tensor take() { return Tensor::take(&managed_); }
  int released() const noexcept { return released_; }
  const LentArray& given() const noexcept { return given_; }
  const unsigned char* data() const noexcept {
    const DLTensor& t = managed_.dl_tensor;
    return t.data == nullptr ? nullptr : static_cast<const unsigned char*>(t.data) + t.byte_offset;
  }

 private:
  static constexpr std::size_t kAlignment = 256;

  LentArray given_;
  std::vector<unsigned char> bytes_;
  DLManagedTensorVersioned managed_{};
  int released_ = 0;
};

// The axes that are longer than 1: some frameworks have no vectors, and some no matrices of one row.
inline std::pair<Extents, Extents> without_single_axes(const std::int64_t* shape, const std::int64_t* strides,
                                                       std::int32_t ndim) {
  std::pair<Extents, Extents> out;
  for (std::int32_t i = 0; i < ndim; ++i)
    if (shape[i] != 1) out.first.push_back(shape[i]), out.second.push_back(strides[i]);
  return out;
}

// Byte by byte, at every index. Both are of one shape; addresses of host memory.
inline bool same_elements(const Extents& shape, const unsigned char* a, const Extents& a_strides,
                          const unsigned char* b, const Extents& b_strides, std::size_t itemsize) {
  Extents index(shape.size());
  const auto size = static_cast<std::int64_t>(itemsize);
  for (;;) {
    std::int64_t at_a = 0, at_b = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) at_a += index[i] * a_strides[i], at_b += index[i] * b_strides[i];
    if (std::memcmp(a + at_a * size, b + at_b * size, itemsize) != 0) return false;
    std::size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return true;
  }
}

}  // namespace dlbridge::detail
