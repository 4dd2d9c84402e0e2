// What is kept in each of several lanes. A vector computes with one part of a complex number at a time: the parts have
// lanes of their own.
#pragma once

#include "ndarray/kernels/functors/reduce.h"

namespace dlbridge::nd::host_kernels {

template <class T, std::int64_t kCount>
class LaneArray {
 public:
  T get(std::int64_t k) const noexcept { return values_[k]; }
  void set(std::int64_t k, T x) noexcept { values_[k] = x; }
  void set_if(bool condition, std::int64_t k, T x) noexcept { values_[k] = condition ? x : values_[k]; }
  // Whether x is larger, or the first that is NaN. Without branches; a comparison with NaN is false.
  bool is_below(std::int64_t k, T x) const noexcept {
    return static_cast<bool>(!(x <= values_[k]) & !functors::is_nan(values_[k]));
  }

 private:
  T values_[kCount];
};

template <class R, std::int64_t kCount>
class LaneArray<complex<R>, kCount> {
 public:
  using T = complex<R>;
  T get(std::int64_t k) const noexcept { return T(real_[k], imag_[k]); }
  void set(std::int64_t k, T x) noexcept {
    real_[k] = x.real();
    imag_[k] = x.imag();
  }
  void set_if(bool condition, std::int64_t k, T x) noexcept {
    real_[k] = condition ? x.real() : real_[k];
    imag_[k] = condition ? x.imag() : imag_[k];
  }
  bool is_below(std::int64_t k, T x) const noexcept {
    const R real = x.real(), imag = x.imag();
    const bool is_number = static_cast<bool>((real_[k] == real_[k]) & (imag_[k] == imag_[k]));
    const bool is_nan = static_cast<bool>((real != real) | (imag != imag));
    const bool is_more = static_cast<bool>((real > real_[k]) | ((real == real_[k]) & (imag > imag_[k])));
    return static_cast<bool>(is_number & (is_nan | is_more));
  }

 private:
  R real_[kCount], imag_[kCount];
};

}  // namespace dlbridge::nd::host_kernels
