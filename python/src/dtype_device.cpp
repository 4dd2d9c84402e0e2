// DType and Device: small values, compared with the names and objects that users have at hand. Cold, so pybind11.
#include <pybind11/pybind11.h>

#include <array>
#include <string>

#include "dlbridge/cuda_driver.h"
#include "protocols/common/errors.h"
#include "python/src/bridge.h"

namespace dlbridge::py {

namespace {

namespace pyb = ::pybind11;

struct DTypeValue {
  DLDataType dl;
  std::string name() const { return dtype_name(dl); }
};

struct DeviceValue {
  DLDevice dl;
  std::string name() const { return device_name(dl); }
};

// float32 == "float32", == np.float32, == np.dtype("float32"), == torch.float32: by the name that each of them has.
bool dtype_equals(const DTypeValue& self, const pyb::object& other) {
  if (pyb::isinstance<DTypeValue>(other)) {
    const DLDataType o = other.cast<DTypeValue>().dl;
    return o.code == self.dl.code && o.bits == self.dl.bits && o.lanes == self.dl.lanes;
  }
  if (pyb::isinstance<pyb::str>(other)) return other.cast<std::string>() == self.name();
  if (pyb::isinstance<pyb::type>(other)) {
    // NumPy's own scalar types call bool "bool_" (1.x); ml_dtypes' are named as here.
    const std::string name = pyb::str(other.attr("__name__"));
    return name == self.name() || name == self.name() + "_";
  }
  if (pyb::hasattr(other, "name") && pyb::hasattr(other, "itemsize")) {  // numpy.dtype
    const pyb::object swapped = pyb::getattr(other, "isnative", pyb::bool_(true));
    return swapped.cast<bool>() && pyb::str(other.attr("name")).cast<std::string>() == self.name();
  }
  return pyb::str(other).cast<std::string>() == "torch." + self.name();
}

bool device_equals(const DeviceValue& self, const pyb::object& other) {
  if (pyb::isinstance<DeviceValue>(other)) return same_device(self.dl, other.cast<DeviceValue>().dl);
  if (pyb::isinstance<pyb::str>(other)) {
    const auto parsed = parse_device(other.cast<std::string>());
    return parsed && same_device(*parsed, self.dl);
  }
  if (pyb::isinstance<pyb::tuple>(other) && pyb::len(other) == 2)
    return other.equal(pyb::make_tuple(static_cast<int>(self.dl.device_type), self.dl.device_id));
  return false;
}

std::string device_type_name(const DeviceValue& self) {
  const DeviceTypeInfo* type = find_device_type(self.dl.device_type);
  return type != nullptr ? std::string(type->name) : std::to_string(self.dl.device_type);
}

// pybind11's exceptions end here: C slots call these functions.
template <class Function>
PyObject* guarded(Function function) {
  try {
    return pyb::object(function()).release().ptr();
  } catch (pyb::error_already_set& error) {
    error.restore();
  } catch (...) {
    raise_current_exception();
  }
  return nullptr;
}

pyb::object& dtype_cache(std::size_t row) {
  static std::array<pyb::object, kDTypes.size()>* cache = new std::array<pyb::object, kDTypes.size()>();  // immortal
  return (*cache)[row];
}

}  // namespace

void init_dtype_device(PyObject* module) {
  pyb::module_ m = pyb::reinterpret_borrow<pyb::module_>(module);
  pyb::class_<DTypeValue>(m, "DType",
                          "The type of a tensor's elements. str() is its usual name ('float32', 'bfloat16'); it equals "
                          "that string and NumPy's dtype.")
      .def_property_readonly("name", &DTypeValue::name, "str: the usual name.")
      .def_property_readonly("code", [](const DTypeValue& d) { return static_cast<int>(d.dl.code); },
                             "int: DLPack's DLDataTypeCode.")
      .def_property_readonly("bits", [](const DTypeValue& d) { return static_cast<int>(d.dl.bits); },
                             "int: bits of one lane.")
      .def_property_readonly("lanes", [](const DTypeValue& d) { return static_cast<int>(d.dl.lanes); },
                             "int: lanes of one element (DLPack).")
      .def_property_readonly("itemsize", [](const DTypeValue& d) { return itemsize_bytes(d.dl); },
                             "int: bytes of one element.")
      .def("__str__", &DTypeValue::name)
      .def("__repr__", [](const DTypeValue& d) { return "dlbridge.DType('" + d.name() + "')"; })
      .def("__hash__", [](const DTypeValue& d) { return pyb::hash(pyb::str(d.name())); })
      .def("__reduce__",
           [](const DTypeValue& d) {
             return pyb::make_tuple(pyb::module_::import("dlbridge._core").attr("_dtype"),
                                    pyb::make_tuple(d.dl.code, d.dl.bits, d.dl.lanes));
           })
      .def("__eq__", &dtype_equals, pyb::is_operator())
      .def("__ne__", [](const DTypeValue& d, const pyb::object& o) { return !dtype_equals(d, o); },
           pyb::is_operator());
  m.def("_dtype", [](std::uint8_t code, std::uint8_t bits, std::uint16_t lanes) {
    return DTypeValue{{code, bits, lanes}};
  });
  pyb::class_<DeviceValue>(m, "Device",
                           "Where a tensor lies. str() is 'cpu', 'cuda:0', …; it equals that string and DLPack's pair.")
      .def_property_readonly("type", &device_type_name, "str: 'cpu', 'cuda', 'cuda_managed', ….")
      .def_property_readonly("id", [](const DeviceValue& d) { return d.dl.device_id; }, "int: the device's number.")
      .def("__str__", &DeviceValue::name)
      .def("__repr__", [](const DeviceValue& d) { return "dlbridge.Device('" + d.name() + "')"; })
      .def("__hash__", [](const DeviceValue& d) { return pyb::hash(pyb::str(d.name())); })
      .def("__reduce__",
           [](const DeviceValue& d) {
             return pyb::make_tuple(pyb::module_::import("dlbridge._core").attr("_device"),
                                    pyb::make_tuple(static_cast<int>(d.dl.device_type), d.dl.device_id));
           })
      .def("__eq__", &device_equals, pyb::is_operator())
      .def("__ne__", [](const DeviceValue& d, const pyb::object& o) { return !device_equals(d, o); },
           pyb::is_operator());
  m.def("_device", [](int type, int id) { return DeviceValue{{static_cast<DLDeviceType>(type), id}}; });
}

PyObject* make_dtype(DLDataType dtype) {
  return guarded([&] {
    const DTypeInfo* row = find_dtype(dtype);
    if (row == nullptr) return pyb::cast(DTypeValue{dtype});
    pyb::object& cached = dtype_cache(static_cast<std::size_t>(row->id));
    if (!cached) cached = pyb::cast(DTypeValue{dtype});
    return cached;
  });
}

bool read_dtype(PyObject* object, DLDataType& out) noexcept {
  static PyTypeObject* const type = reinterpret_cast<PyTypeObject*>(pyb::type::of<DTypeValue>().ptr());
  if (Py_TYPE(object) != type) return false;  // final: it has no subclasses
  out = pyb::detail::cast_op<DTypeValue&>(pyb::detail::load_type<DTypeValue>(pyb::handle(object))).dl;
  return true;
}

PyObject* make_device(DLDevice device) {
  return guarded([&] {
    static pyb::object* cpu = nullptr;  // immortal
    if (device.device_type != kDLCPU) return pyb::cast(DeviceValue{device});
    if (cpu == nullptr) cpu = new pyb::object(pyb::cast(DeviceValue{device}));
    return *cpu;
  });
}

bool parse_device_argument(PyObject* argument, const char* operation, std::optional<DLDevice>& out) {
  out.reset();
  if (argument == nullptr || argument == Py_None) return true;
  const pyb::handle handle(argument);
  try {
    if (pyb::isinstance<DeviceValue>(handle)) {
      out = handle.cast<DeviceValue>().dl;
      return true;
    }
  } catch (pyb::error_already_set& error) {  // out of memory, for one; the callers know no pybind11
    error.restore();
    return false;
  }
  if (PyTuple_Check(argument)) {
    DLDevice device;
    if (!dlpack::parse_device_pair(argument, operation, "device", device)) return false;
    out = device;
  } else {
    // "cuda:1", or an object that prints as one (torch.device).
    const Ref printed(PyObject_Str(argument));
    const char* text = printed ? PyUnicode_AsUTF8(printed.get()) : nullptr;
    if (text == nullptr) return false;
    out = parse_device(text);
    int current = 0;  // "cuda" is the current device, as everywhere else
    if (out && std::string_view(text) == "cuda" && cuda::available() && cuda::current_device(current).ok())
      out->device_id = current;
    if (!out) {
      raise(operation, ErrorCode::kMalformed,
            std::string("device is '") + text + "'; give 'cpu', 'cuda', 'cuda:1', a dlbridge.Device, or DLPack's (type, id)");
      return false;
    }
  }
  if (find_device_type(out->device_type) != nullptr) return true;
  raise(operation, ErrorCode::kMalformed, "device type " + std::to_string(out->device_type) + " is not DLPack's");
  return false;
}

}  // namespace dlbridge::py
