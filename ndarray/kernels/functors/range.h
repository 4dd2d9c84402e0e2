// The value at each position of arange, linspace and fill.
#pragma once

#include "ndarray/kernels/api.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd {

template <class T>
class RangeFn {
 public:
  explicit RangeFn(const RangeArgs& args) noexcept
      : start_(args.start),
        step_(args.step),
        stop_(args.stop),
        int_start_(static_cast<std::uint64_t>(args.int_start)),
        int_step_(static_cast<std::uint64_t>(args.int_step)),
        last_(args.endpoint ? args.n - 1 : -1) {}

  DLBRIDGE_ND_HD T operator()(std::int64_t i) const noexcept {
    if constexpr (std::is_integral_v<T>) return cast<T>(int_start_ + static_cast<std::uint64_t>(i) * int_step_);
    else return cast<T>(i == last_ ? stop_ : at(static_cast<double>(i)));
  }
  // Of floats, where no end is told apart. Two roundings everywhere: a fused multiply-add would make the device differ
  // from the host.
  DLBRIDGE_ND_HD double at(double i) const noexcept {
#if defined(__CUDA_ARCH__)
    return __dadd_rn(start_, __dmul_rn(i, step_));
#else
    return start_ + i * step_;
#endif
  }

 private:
  double start_, step_, stop_;
  std::uint64_t int_start_, int_step_;  // unsigned: wraps
  std::int64_t last_;                   // the position that holds stop itself; -1: none
};

}  // namespace dlbridge::nd
