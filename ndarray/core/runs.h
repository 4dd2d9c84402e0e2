// The runs of equal elements in what is sorted: what the unique elements of an array are, and how often they occur.
#pragma once

#include "ndarray/core/array.h"

namespace dlbridge::nd {

struct RunOptions {
  const Tensor* order = nullptr;  // where each element stood before the row was sorted: int64; else where it stands
  bool equal_nan = true;          // NaNs are one run
  bool first = false, lengths = false, inverse = false;  // what is wanted besides the values
};
struct Runs {
  Tensor values;   // the first element of each run
  Tensor first;    // where that stood
  Tensor lengths;  // of the runs
  Tensor inverse;  // the run of each element, where it stood
};

// Of a sorted vector, dense. The host waits for the number of runs.
Status find_runs(const Tensor& sorted, const RunOptions& options, Runs& runs);

}  // namespace dlbridge::nd
