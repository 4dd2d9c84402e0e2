// expect: elements of device memory cannot be reached from host code
#include "dlbridge/tensor_view.h"

#ifdef DLBRIDGE_MUST_FAIL
using Device = dlbridge::on_cuda;
#else
using Device = dlbridge::on_host;
#endif

float first(dlbridge::TensorView<const float, 1, dlbridge::any_layout, Device> v) { return v(0); }
