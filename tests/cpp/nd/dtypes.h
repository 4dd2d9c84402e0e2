// The dtypes of a set, in order.
#pragma once

#include <vector>

#include "ndarray/kernels/types.h"

namespace dlbridge::nd::testing {

inline std::vector<DType> dtypes_of(DTypeSet set) {
  std::vector<DType> list;
  for (unsigned d = 0; d < 32; ++d)
    if (contains(set, static_cast<DType>(d))) list.push_back(static_cast<DType>(d));
  return list;
}

}  // namespace dlbridge::nd::testing
