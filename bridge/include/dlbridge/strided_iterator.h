// The elements of a view with any strides, the last index fastest. Needs the memory only, not the view it comes from;
// with a rank that is known at run time only also the tensor, which has the extents.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

#include "dlbridge/tensor.h"

namespace dlbridge::detail {

template <class T, class Dims>
class StridedIterator {
 public:
  using value_type = std::remove_cv_t<T>;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using pointer = T*;
  using iterator_category = std::forward_iterator_tag;

  // `left`: how many elements come; 0 is the end.
  StridedIterator(T* data, const Dims& dims, std::int64_t left) noexcept : at_(data), dims_(dims), left_(left) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(dims_.rank()); ++i) index_[i] = 0;
  }
  StridedIterator() noexcept = default;

  T& operator*() const noexcept { return *at_; }
  T* operator->() const noexcept { return at_; }
  StridedIterator& operator++() noexcept {
    --left_;
    for (auto axis = static_cast<std::size_t>(dims_.rank()); axis-- > 0;) {
      if (++index_[axis] < dims_.extents[axis]) {
        at_ += dims_.stride_elems[axis];
        break;
      }
      at_ -= dims_.stride_elems[axis] * (dims_.extents[axis] - 1);
      index_[axis] = 0;
    }
    return *this;
  }
  StridedIterator operator++(int) noexcept {
    const StridedIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const StridedIterator& a, const StridedIterator& b) noexcept { return a.left_ == b.left_; }

 private:
  T* at_ = nullptr;
  Dims dims_;
  std::int64_t left_ = 0;
  std::array<std::int64_t, Dims::kCount> index_{};
};

}  // namespace dlbridge::detail
