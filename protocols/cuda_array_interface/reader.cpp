#include <string>

#include "dlbridge/cuda_driver.h"
#include "dlbridge/cuda_order.h"
#include "protocols/common/copying.h"
#include "protocols/common/interface_dict.h"
#include "protocols/common/streams.h"
#include "protocols/cuda_array_interface/cuda_array_interface.h"

namespace dlbridge::cuda_array_interface {

using py::Read;

namespace {

using py::InterfaceDict;

// `stream`: None or absent means that no synchronisation is needed (the opposite of DLPack's None); 0 is invalid.
bool parse_ready(const InterfaceDict& interface, Ordering& ready) {
  py::Ref stream;
  if (!get_optional(interface, py::names.stream, stream)) return false;
  if (!stream) return true;
  std::uintptr_t handle;
  if (!py::parse_address(stream.get(), "__cuda_array_interface__['stream']", handle, interface.call.refusal))
    return false;
  if (handle == 0)
    return refuse(interface, malformed("'stream' is 0, which the specification forbids: it could mean either default "
                                       "stream. The producer must give 1, 2, a handle, or None"));
  if (const Status status = py::check_stream(handle); !status.ok()) return refuse(interface, status);
  if (py::switches.cuda_array_interface_sync) ready = Ordering::on_stream(handle);
  return true;
}

bool parse_data(const InterfaceDict& interface, Tensor& tensor) {
  if (!interface.data) return refuse(interface, malformed("'data' is missing. This must be fixed in the producer"));
  return place_at_address(interface, tensor);
}

// An array of size zero lies nowhere: it belongs to the current device, or to the first where there is no driver, and
// there is nothing in it to wait for.
Status find_device(Tensor& tensor) {
  if (tensor.size != 0) {
    DLBRIDGE_TRY(cuda::device_of_pointer(tensor.dl.data, tensor.dl.device));
    return is_host(tensor.dl.device) ? py::wait_on_host(tensor, 0) : Status();
  }
  int current = 0;
  if (cuda::available() && !cuda::current_device(current).ok()) current = 0;
  tensor.dl.device = {kDLCUDA, current};
  tensor.ready = Ordering::ready();
  return {};
}

}  // namespace

Read read(PyObject* object, py::ReadCall& call, py::TensorObject* self) {
  const py::Ref dict = py::optional_attribute(object, py::names.cuda_array_interface);
  if (!dict) return PyErr_Occurred() != nullptr ? Read::kFailed : Read::kAbsent;
  InterfaceDict interface(call, "__cuda_array_interface__", dict.get());
  Tensor& tensor = self->tensor;
  // Versions 0 and 1 had fewer keys (no mask, no stream), and those they had are the same.
  if (!parse_interface_dict(0, interface) || !parse_data(interface, tensor) || !parse_ready(interface, tensor.ready))
    return Read::kFailed;
  tensor.dl.device = {kDLCUDA, 0};
  Status status = lay_out(interface, tensor);
  if (status.ok()) status = find_device(tensor);
  return finish(interface, status, object, self);
}

}  // namespace dlbridge::cuda_array_interface
