// Which element of a padded axis stands at a place.
#pragma once

#include "ndarray/kernels/api.h"
#include "ndarray/kernels/portable.h"

namespace dlbridge::nd {

// `at` counts from the first of n elements and may lie before or behind them; -1: none, but the constant.
DLBRIDGE_ND_HD inline std::int64_t padded_source(PadMode mode, std::int64_t at, std::int64_t n) noexcept {
  if (at >= 0 && at < n) return at;
  if (mode == PadMode::kConstant) return -1;
  if (mode == PadMode::kEdge) return at < 0 ? 0 : n - 1;
  const std::int64_t edge = mode == PadMode::kReflect ? 1 : 0;  // how often it is left out
  if (n == edge) return 0;
  const std::int64_t period = mode == PadMode::kWrap ? n : 2 * (n - edge);
  std::int64_t place = at < 0 ? at + period : at;
  if (place < 0 || place >= period) {  // further off: a division, which takes longer than the copy
    const std::int64_t rest = at % period;
    place = rest < 0 ? rest + period : rest;
  }
  return place < n ? place : period - place - (1 - edge);
}

}  // namespace dlbridge::nd
