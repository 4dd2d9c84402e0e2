// cupy.ndarray read from its C++ members.
//
// CuPy has no C exchange table. Its __dlpack__ costs microseconds, its Python attributes some hundred nanoseconds in
// all: both build Python objects that are taken apart again at once. The members themselves (the two vectors of
// extents and strides, the dtype, the pointer) are six loads. Where they lie is no interface, so nothing is assumed:
// sample arrays that differ in every member are made with CuPy's public constructors, on addresses that nobody reads,
// and the words that explain all of them are looked for. Only if exactly one layout does is it used; otherwise, and
// for every array that looks unusual, the ordinary readers do the work.
#include "dlbridge/cuda_driver.h"
#include "dlbridge/validate.h"
#include "frameworks/cupy_layout.h"
#include "frameworks/numpy.h"
#include "protocols/common/streams.h"

namespace dlbridge::frameworks {

namespace {

CupyLayout layout;

// The last dtype seen, held so that its address stays its own: nearly every array has the same.
struct KnownDType {
  PyObject* object = nullptr;
  const DTypeInfo* row = nullptr;
};
py::SharedWords<KnownDType> known_dtype;

[[gnu::noinline]] const DTypeInfo* look_up_dtype(PyObject* dtype) noexcept {
  const DTypeInfo* row = find_plain_dtype(dtype);
  if (row == nullptr) return nullptr;
  KnownDType old;
  if (!known_dtype.replace({py::Ref::borrow(dtype).release(), row}, old)) old.object = dtype;
  Py_XDECREF(old.object);
  return row;
}

// Everything but the source. False: unusual, ask the ordinary readers.
bool decode(const CupyMembers& members, Tensor& tensor) {
  KnownDType known;
  const bool is_known = known_dtype.read(known) && members.dtype == known.object;
  const DTypeInfo* row = is_known ? known.row : look_up_dtype(members.dtype);
  if (row == nullptr || members.data == 0) [[unlikely]]
    return false;
  tensor.set_dtype(*row);
  tensor.dl.data = reinterpret_cast<void*>(members.data);
  if (!build_layout<StrideUnit::kBytes>(tensor, members.ndim, members.shape, members.strides_bytes).ok()) [[unlikely]]
    return false;
  // The driver says whether the memory is managed; the pointer object knows the device alone.
  if (tensor.size == 0 || !cuda::device_of_pointer(tensor.dl.data, tensor.dl.device).ok()) [[unlikely]]
    return false;
  if (!is_cuda(tensor.dl.device) || tensor.dl.device.device_id != members.device) [[unlikely]]
    return false;
  StreamHandle stream;
  if (!layout.current_stream(members.device, stream)) [[unlikely]]
    return false;
  tensor.ready = Ordering::on_stream(stream);
  return true;
}

bool is_array(PyTypeObject* type, const DLPackExchangeAPI*) noexcept {
  return py::loaded_global("cupy", "ndarray").get() == reinterpret_cast<PyObject*>(type);
}

// The ordering token is CuPy's current stream of the array's device, as its __cuda_array_interface__ would name it.
py::Read read_array(PyObject* object, const DLPackExchangeAPI*, py::ReadCall&, py::TensorObject* self) {
  self->protocol = py::Protocol::kCudaArrayInterface;
  // The user has asked for CuPy's stream to be left alone: the ordinary reader of the dictionary knows how.
  if (!py::switches.cuda_array_interface_sync || !layout.ready()) [[unlikely]]
    return py::Read::kAbsent;
  CupyMembers members;
  if (!layout.read(object, members) || !decode(members, self->tensor)) [[unlikely]]
    return py::Read::kAbsent;
  Py_INCREF(object);
  self->source = object;
  return py::Read::kDone;
}

constexpr ArrayKind kArrays[] = {{.recognises = is_array, .read = read_array}};

constexpr Consumer kTakes[] = {
    {.takes = {.dtypes = kNumpyDTypes, .devices = kOnCuda, .strides = stride_rule::any}, .enter = "from_dlpack"}};

}  // namespace

extern constinit const Framework kCupy{.name = "cupy", .module = "cupy", .arrays = kArrays, .consumers = kTakes};

}  // namespace dlbridge::frameworks
