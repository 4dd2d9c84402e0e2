// Numba's device arrays have a CUDA Array Interface and nothing else.
#include "frameworks/framework.h"
#include "protocols/common/copying.h"
#include "protocols/common/streams.h"

namespace dlbridge::frameworks {

namespace {

bool is_array(PyTypeObject* type, const DLPackExchangeAPI*) noexcept {
  // There is no such array before somebody has imported the module.
  const py::Ref base = py::loaded_global("numba.cuda.cudadrv.devicearray", "DeviceNDArrayBase");
  return base && PyType_Check(base.get()) && PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(base.get())) != 0;
}

// Numba says `stream: None`, which means "ready", of arrays that its copies and kernels work on with the legacy default
// stream, without waiting: whoever reads them is ordered behind that stream.
bool order(PyObject*, py::ReadCall& call, py::TensorObject* self) {
  Tensor& tensor = self->tensor;
  const bool unsaid = self->protocol == py::Protocol::kCudaArrayInterface && tensor.ready.is_ready();
  if (!unsaid || tensor.size == 0 || !py::switches.cuda_array_interface_sync) return true;
  tensor.ready = Ordering::on_stream(kLegacyStream);
  if (!is_host(tensor.dl.device)) return true;
  call.refusal = py::wait_on_host(tensor, 0);
  return call.refusal.ok();
}

constexpr ArrayKind kArrays[] = {{.recognises = is_array, .order = order}};

// as_cuda_array() drops the read-only mark of the CUDA Array Interface.
constexpr Consumer kTakes[] = {
    {.takes = {.dtypes = kNumpyDTypes, .devices = kOnHost, .strides = stride_rule::any, .read_only = true},
     .enter = "numpy"},
    {.takes = {.dtypes = kNumpyDTypes, .devices = kOnCuda, .strides = stride_rule::any}, .enter = "numba_cuda"}};
constexpr const char* kNames[] = {"numba.cuda"};

}  // namespace

extern constinit const Framework kNumba{
    .name = "numba", .module = "numba", .aliases = kNames, .arrays = kArrays, .consumers = kTakes};

}  // namespace dlbridge::frameworks
