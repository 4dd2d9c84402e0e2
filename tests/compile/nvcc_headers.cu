// The SDK inside a translation unit of nvcc: views go to kernels by value, and streams of cudart are taken as they are.
#include "dlbridge/converter.h"
#include "dlbridge/converters/mdspan.h"
#include "dlbridge/converters/std.h"
#include "dlbridge/converters/thrust.h"

using Row = dlbridge::TensorView<const float, 2, dlbridge::c_contig, dlbridge::on_cuda>;
using Out = dlbridge::TensorView<float, 1, dlbridge::any_layout, dlbridge::on_cuda>;

__global__ void sum_rows(Row in, Out out) {
  const auto row = static_cast<std::int64_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= in.extent(0)) return;
  float sum = 0;
  for (std::int64_t i = 0; i < in.extent(1); ++i) sum += in(row, i);
  out(row) = sum;
}

void launch(dlbridge::Tensor& in, dlbridge::Tensor& out, cudaStream_t stream) {
  const Row rows = in;
  dlbridge::order_for_use(in, {.stream = stream});
  sum_rows<<<1, 32, 0, stream>>>(rows, out.view<float, 1, dlbridge::any_layout, dlbridge::on_cuda>());
  out.ready = dlbridge::Ordering::on_stream(reinterpret_cast<dlbridge::StreamHandle>(stream));
}

dlbridge::Tensor take(thrust::device_vector<float>&& v, cudaStream_t stream) {
  return dlbridge::from(std::move(v), {.stream = stream});
}
