// Each conversion of dlbridge/converters/ and the framework's own route to the same end. Names are "<case>/ours",
// "<case>/<route>"; benchmarks/converters.py makes the table. What the CMake file found is compiled in.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dlbridge/converters/arrow_c.h"
#include "dlbridge/converters/std.h"

namespace {

using namespace dlbridge;

// A 4 x 6 float matrix that outlives everything.
float* memory() {
  static std::vector<float> values(64, 1.0F);
  return values.data();
}
const std::int64_t kShape[2] = {4, 6};

DLManagedTensorVersioned* fresh_managed() {
  struct Managed {
    std::int64_t dims[4] = {4, 6, 6, 1};
    DLManagedTensorVersioned managed{};
  };
  auto* self = new Managed;
  self->managed.version = kDLPackVersion;
  self->managed.manager_ctx = self;
  self->managed.deleter = [](DLManagedTensorVersioned* m) { delete static_cast<Managed*>(m->manager_ctx); };
  self->managed.dl_tensor = {memory(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, self->dims, self->dims + 2, 0};
  return &self->managed;
}

Tensor lent() {
  Tensor t;
  throw_if_failed("lent", describe_memory(t, memory(), kCpuDevice, 2, kShape, nullptr));
  return t;
}

// Runs `f` over and over; what it returns is destroyed within the measured time, as with every route.
template <class F>
void run(benchmark::State& state, F f) {
  for (auto _ : state) benchmark::DoNotOptimize(f());
}
#define ROUTE(name, ...)                                       \
  [[maybe_unused]] auto* const BENCHMARK_PRIVATE_NAME(route) = \
      benchmark::RegisterBenchmark(name, [](benchmark::State& state) { run(state, __VA_ARGS__); })

struct Owned {
  Tensor t = Tensor::take(fresh_managed());
};
Tensor& shared() {
  static Owned owned;
  return owned.t;
}

// A view that was checked before, and that nobody knows while compiling.
TensorView<float, 2, c_contig>& checked() {
  static auto view = shared().view<float, 2, c_contig>();
  benchmark::DoNotOptimize(view);
  return view;
}

ROUTE("managed struct made and deleted/floor", [] {
  auto* m = fresh_managed();
  m->deleter(m);
  return 0;
});
ROUTE("managed struct in: Tensor::take/ours", [] { return Tensor::take(fresh_managed()); });
ROUTE("managed struct in and out: take, release/ours", [] {
  DLManagedTensorVersioned* m = Tensor::take(fresh_managed()).release();
  m->deleter(m);
  return 0;
});
ROUTE("Tensor::share/ours", [] { return shared().share(); });
ROUTE("checked view of a tensor/ours", [] { return shared().view<float, 2, c_contig>(); });
ROUTE("check<...> of a tensor/ours",
      [] { return check<float, shape<dyn, 6>, c_contig, on_cpu>(shared()).has_value(); });

ROUTE("std::vector in, moved/ours", [] { return from(std::vector<float>(24)); });
ROUTE("std::vector in, moved/make_unique", [] { return std::make_unique<std::vector<float>>(std::vector<float>(24)); });
ROUTE("std::span in, lent/ours", [] { return from(borrow(std::span<float>(memory(), 24), unowned)); });

ROUTE("C Data out and in/ours",
      [] { return from(to<ArrowCData>(from(borrow(std::span<float>(memory(), 24), unowned)))); });

}  // namespace

#if defined(DLBRIDGE_BENCH_TORCH)
#include <ATen/DLConvertor.h>

#include "dlbridge/converters/torch.h"
namespace {
const at::Tensor& torch_tensor() {
  static const at::Tensor x = at::ones({4, 6});
  return x;
}
ROUTE("at::Tensor in/ours", [] { return from(torch_tensor()); });
ROUTE("at::Tensor in/at::toDLPackVersioned", [] {
  DLManagedTensorVersioned* m = at::toDLPackVersioned(torch_tensor());
  m->deleter(m);
  return 0;
});
ROUTE("at::Tensor out, with an owner/ours", [] { return to<at::Tensor>(Tensor::take(fresh_managed())); });
ROUTE("at::Tensor out, with an owner/at::fromDLPackVersioned", [] { return at::fromDLPackVersioned(fresh_managed()); });
ROUTE("at::Tensor out, with an owner/at::from_blob", [] {
  DLManagedTensorVersioned* m = fresh_managed();
  return at::from_blob(memory(), {4, 6}, {6, 1}, [m](void*) { m->deleter(m); }, at::TensorOptions(at::kFloat));
});
ROUTE("at::Tensor out, lent/ours", [] { return to<at::Tensor>(lent()); });
ROUTE("at::Tensor out, lent/at::from_blob",
      [] { return at::from_blob(memory(), {4, 6}, at::TensorOptions(at::kFloat)); });
ROUTE("at::Tensor there and back/ours", [] { return to<at::Tensor>(from(torch_tensor())); });
ROUTE("at::Tensor there and back/DLPack of torch",
      [] { return at::fromDLPackVersioned(at::toDLPackVersioned(torch_tensor())); });
}  // namespace
#endif

#if defined(DLBRIDGE_BENCH_ARROW)
#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include "dlbridge/converters/arrow.h"
namespace {
const std::shared_ptr<arrow::Tensor>& arrow_tensor() {
  static const auto x = std::make_shared<arrow::Tensor>(
      arrow::float32(), std::make_shared<arrow::MutableBuffer>(reinterpret_cast<std::uint8_t*>(memory()), 96),
      std::vector<std::int64_t>{4, 6});
  return x;
}
const std::shared_ptr<arrow::Array>& arrow_array() {
  static const std::shared_ptr<arrow::Array> x = [] {
    arrow::FloatBuilder builder;
    (void)builder.AppendValues(std::vector<float>(24));
    return builder.Finish().ValueOrDie();
  }();
  return x;
}
template <class T>
int drop(T* m) {
  m->deleter(m);
  return 0;
}
ROUTE("arrow::Tensor in/ours", [] { return from(arrow_tensor()); });
ROUTE("arrow::Tensor in/arrow::ExportTensorVersioned",
      [] { return drop(arrow::dlpack::ExportTensorVersioned(arrow_tensor(), false).ValueOrDie()); });
ROUTE("arrow::Tensor out/ours", [] { return to<std::shared_ptr<arrow::Tensor>>(Tensor::take(fresh_managed())); });
ROUTE("arrow::Tensor out/arrow::ImportTensorVersioned",
      [] { return arrow::dlpack::ImportTensorVersioned(fresh_managed()).ValueOrDie(); });
ROUTE("arrow::Array in/ours", [] { return from(arrow_array()); });
ROUTE("arrow::Array in/arrow::ExportArrayVersioned",
      [] { return drop(arrow::dlpack::ExportArrayVersioned(arrow_array(), false).ValueOrDie()); });
ROUTE("C Data out/ours", [] { return to<ArrowCData>(from(borrow(std::span<float>(memory(), 24), unowned))); });
ROUTE("C Data out/arrow::ExportArray", [] {
  ArrowCData out;
  (void)arrow::ExportArray(*arrow_array(), &out.array, &out.schema);
  return out;
});
}  // namespace
#endif

#if defined(DLBRIDGE_BENCH_EIGEN)
#include "dlbridge/converters/eigen.h"
namespace {
ROUTE("Eigen::Map out/ours", [] { return to<EigenMap<float>>(shared().view<float, 2>()); });
ROUTE("Eigen::Map out/Eigen::Map(...)", [] {
  const DLTensor& t = shared().dl;
  return EigenMap<float>(static_cast<float*>(t.data), t.shape[0], t.shape[1], {t.strides[0], t.strides[1]});
});
ROUTE("Eigen::Map out, of a checked view/ours", [] { return to<EigenMap<float>>(checked()); });
ROUTE("Eigen::Map out, of a checked view/Eigen::Map(...)", [] {
  const auto& v = checked();
  return EigenMap<float>(v.data(), v.extent(0), v.extent(1), {v.stride(0), v.stride(1)});
});
ROUTE("Eigen::Matrix in, moved/ours", [] { return from(Eigen::MatrixXf(4, 6)); });
ROUTE("Eigen::Matrix in, moved/make_unique", [] { return std::make_unique<Eigen::MatrixXf>(Eigen::MatrixXf(4, 6)); });
}  // namespace
#endif

#if defined(DLBRIDGE_BENCH_CCCL)
#include "dlbridge/converters/mdspan.h"
namespace {
using Mdspan = ::cuda::std::mdspan<float, ::cuda::std::dextents<std::int64_t, 2>, ::cuda::std::layout_right>;
ROUTE("mdspan out/ours", [] { return to<Mdspan>(shared().view<float, 2>()); });
ROUTE("mdspan out/mdspan(...)", [] {
  const DLTensor& t = shared().dl;
  return Mdspan(static_cast<float*>(t.data), t.shape[0], t.shape[1]);
});
ROUTE("mdspan out, of a checked view/ours", [] { return to<Mdspan>(checked()); });
ROUTE("mdspan out, of a checked view/mdspan(...)", [] {
  const auto& v = checked();
  return Mdspan(v.data(), v.extent(0), v.extent(1));
});
}  // namespace
#endif

#if defined(DLBRIDGE_BENCH_XTENSOR)
#include "dlbridge/converters/xtensor.h"
namespace {
ROUTE("xtensor adaptor out/ours", [] { return to<XTensorView<float, 2>>(shared().view<float, 2>()); });
ROUTE("xtensor adaptor out/xt::adapt", [] {
  const DLTensor& t = shared().dl;
  const std::array<std::size_t, 2> shape{static_cast<std::size_t>(t.shape[0]), static_cast<std::size_t>(t.shape[1])};
  const std::array<std::ptrdiff_t, 2> strides{t.strides[0], t.strides[1]};
  return xt::adapt(static_cast<float*>(t.data), 24, xt::no_ownership(), shape, strides);
});
ROUTE("xtensor adaptor out, of a checked view/ours", [] { return to<XTensorView<float, 2>>(checked()); });
ROUTE("xtensor adaptor out, of a checked view/xt::adapt", [] {
  const auto& v = checked();
  const std::array<std::size_t, 2> shape{static_cast<std::size_t>(v.extent(0)), static_cast<std::size_t>(v.extent(1))};
  const std::array<std::ptrdiff_t, 2> strides{v.stride(0), v.stride(1)};
  return xt::adapt(v.data(), 24, xt::no_ownership(), shape, strides);
});
}  // namespace
#endif

#if defined(DLBRIDGE_BENCH_OPENCV)
#include "dlbridge/converters/opencv.h"
namespace {
const cv::Mat& mat() {
  static const cv::Mat m(4, 6, CV_32F);
  return m;
}
ROUTE("cv::Mat in/ours", [] { return from(mat()); });
ROUTE("cv::Mat in/cv::Mat copied to the heap", [] { return std::make_unique<cv::Mat>(mat()); });
ROUTE("cv::Mat out, lent/ours", [] { return to<cv::Mat>(lent()); });
ROUTE("cv::Mat out, lent/cv::Mat(...)", [] { return cv::Mat(4, 6, CV_32F, memory()); });
ROUTE("cv::Mat out, with an owner/ours", [] { return to<cv::Mat>(Tensor::take(fresh_managed())); });
}  // namespace
#endif

#if defined(DLBRIDGE_BENCH_ONNXRUNTIME)
#include "dlbridge/converters/onnxruntime.h"
namespace {
ROUTE("Ort::Value out/ours", [] { return to<Ort::Value>(shared().view<float, 2>()); });
ROUTE("Ort::Value out/Ort::Value::CreateTensor", [] {
  const Ort::MemoryInfo info("Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault);
  return Ort::Value::CreateTensor(info, memory(), 96, kShape, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
});
}  // namespace
#endif

#if defined(DLBRIDGE_BENCH_KOKKOS)
#include "dlbridge/converters/kokkos.h"
namespace {
ROUTE("Kokkos::View out/ours", [] { return to<KokkosView<float, 2>>(shared().view<float, 2>()); });
ROUTE("Kokkos::View out/Kokkos::View(...)",
      [] { return KokkosView<float, 2>(memory(), Kokkos::LayoutStride(4, 6, 6, 1)); });
ROUTE("Kokkos::View out, of a checked view/ours", [] { return to<KokkosView<float, 2>>(checked()); });
ROUTE("Kokkos::View out, of a checked view/Kokkos::View(...)", [] {
  const auto& v = checked();
  const auto rows = static_cast<std::size_t>(v.extent(0)), columns = static_cast<std::size_t>(v.extent(1));
  return KokkosView<float, 2>(v.data(), Kokkos::LayoutStride(rows, static_cast<std::size_t>(v.stride(0)), columns,
                                                             static_cast<std::size_t>(v.stride(1))));
});
}  // namespace
#endif

BENCHMARK_MAIN();
