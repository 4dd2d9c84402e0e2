// DType and Device: small values, compared with the names and objects that users have at hand. Cold, so pybind11.
#include <array>
#include <string>

#include "dlbridge/cuda_driver.h"
#include "frameworks/numpy.h"
#include "protocols/common/errors.h"
#include "protocols/common/threads.h"
#include "protocols/dlpack/dlpack.h"
#include "python/src/bridge.h"
#include "python/src/kit/pybind.h"
#include "python/src/kit/tables.h"
#include "python/src/spellings.h"

namespace dlbridge::py {

namespace {

struct DTypeValue {
  DLDataType dl;
  std::string name() const { return dtype_name(dl); }
};

struct DeviceValue {
  DLDevice dl;
  std::string name() const { return device_name(dl); }
};

// dlbridge._dtype.<name>(...): what is more than the name of a dtype.
template <class... Args>
pyb::object ask_names(const char* function, const Args&... args) {
  return pyb::module_::import("dlbridge._dtype").attr(function)(args...);
}

// --- what is asked of a dtype on each call of a function, past pybind11's dispatch -----------------------------------

DLDataType value_of(PyObject* dtype) noexcept {
  DLDataType out{};
  read_dtype(dtype, out);
  return out;
}

PyObject* get_name(PyObject* self) {
  static constinit Atomic<PyObject*> names[kDTypes.size()];  // immortal
  const DTypeInfo* row = find_dtype(value_of(self));
  if (row == nullptr) return PyUnicode_FromString(dtype_name(value_of(self)).c_str());
  return Ref::borrow(find_once(names[static_cast<std::size_t>(row->id)],
                               [&] { return PyUnicode_InternFromString(std::string(row->name).c_str()); }))
      .release();
}

PyObject* get_kind(PyObject* self) {
  switch (value_of(self).code) {
    case kDLBool: return PyUnicode_FromString("b");
    case kDLInt: return PyUnicode_FromString("i");
    case kDLUInt: return PyUnicode_FromString("u");
    case kDLComplex: return PyUnicode_FromString("c");
    default: return PyUnicode_FromString("f");
  }
}

PyObject* get_bits(PyObject* self) { return PyLong_FromLong(value_of(self).bits); }
PyObject* get_itemsize(PyObject* self) { return PyLong_FromLongLong(itemsize_bytes(value_of(self))); }

// float32 == "float32", == "f4", == float, == np.float32, == np.dtype("f4"), == torch.float32: whatever names it.
bool dtype_equals(PyObject* self, PyObject* other) {
  if (self == other) return true;
  const DLDataType own = value_of(self);
  if (DLDataType o; read_dtype(other, o)) return o.code == own.code && o.bits == own.bits && o.lanes == own.lanes;
  if (PyUnicode_CheckExact(other)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(other, &size);
    if (text == nullptr) PyErr_Clear();  // lone surrogates
    const std::string_view name(text == nullptr ? "" : text, static_cast<std::size_t>(size));
    if (const DTypeInfo* row = find_dtype_by_name(name); row != nullptr) return row == find_dtype(own);
  }
  if (other == Py_None) return false;  // it names none: programs compare with what a table has not
  static Spellings spellings;
  const bool is_spelling = Spellings::can_have(other);
  if (is_spelling) {
    if (const std::optional<DType> known = spellings.find(other); known) return &info(*known) == find_dtype(own);
    PyErr_Clear();
  }
  if (!frameworks::connect_numpy()) PyErr_Clear();
  if (const DTypeInfo* row = frameworks::find_plain_dtype(other); row != nullptr) return row == find_dtype(own);
  static PythonFunction find("dlbridge._dtype", "find");
  DLDataType dl;
  if (const Ref found = find(other); !read_dtype(found.get(), dl)) return false;
  if (const DTypeInfo* row = find_dtype(dl); row != nullptr && is_spelling) spellings.remember(other, row->id);
  return dl.code == own.code && dl.bits == own.bits && dl.lanes == own.lanes;
}

PyObject* dtype_compare(PyObject* self, PyObject* other, int operation) {
  if (operation != Py_EQ && operation != Py_NE) return Ref::borrow(Py_NotImplemented).release();
  return PyBool_FromLong(dtype_equals(self, other) == (operation == Py_EQ));
}

Py_hash_t dtype_hash(PyObject* self) {
  static PythonFunction hash_of("dlbridge._dtype", "hash_of");
  static constinit Atomic<Py_hash_t> known[kDTypes.size()];  // 0: not yet
  const DTypeInfo* row = find_dtype(value_of(self));
  Py_hash_t hash = row != nullptr ? known[static_cast<std::size_t>(row->id)].load() : 0;
  if (hash != 0) return hash;
  hash = checked_number(PyLong_AsSsize_t(hash_of(self).get()));
  if (row != nullptr) known[static_cast<std::size_t>(row->id)].store(hash);
  return hash;
}

void add_fast_attributes(PyTypeObject* type) {
  for (PyGetSetDef* row = table<PyGetSetDef>(
           {getter<get_name>("name", "str: the usual name."), getter<get_bits>("bits", "int: bits of one lane."),
            getter<get_itemsize>("itemsize", "int: bytes of one element."),
            getter<get_kind>("kind", "str: NumPy's one-letter kind: 'b', 'i', 'u', 'f' or 'c'.")});
       row->name != nullptr; ++row) {
    const Ref attribute = owned(PyDescr_NewGetSet(type, row));
    checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), row->name, attribute.get()));
  }
  type->tp_richcompare = Guard<dtype_compare>::call;
  type->tp_hash = Guard<dtype_hash>::call;
  type->tp_str = Guard<get_name>::call;
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

// A new reference, or null with a Python error set.
template <class Function>
PyObject* reference_from(Function function) noexcept {
  return guarded_pybind([&] { return pyb::object(function()).release().ptr(); });
}

// DType(obj) is the one DType of that name, not a new object.
PyObject* dtype_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static PythonFunction make("dlbridge._dtype", "make");
  return PyObject_Call(make.get(), args, kwargs);
}
int dtype_init(PyObject*, PyObject*, PyObject*) { return 0; }

Atomic<PyObject*> known_dtypes[kDTypes.size()];  // immortal
Atomic<PyObject*> cpu_device;
PyTypeObject *dtype_type, *device_type;  // final: they have no subclasses

DLDevice device_of_pair(PyObject* pair, const char* operation) {
  DLDevice device;
  if (Status why; !dlpack::parse_device_pair(pair, "device", device, why)) {
    raise_refusal(operation, why);
    throw PythonError();
  }
  if (device.device_id < 0)
    throw_issue(operation, ErrorCode::kMalformed,
                "device has the number " + std::to_string(device.device_id) + "; devices are counted from 0");
  return device;
}

// "cuda:1", or an object that prints as one (torch.device).
DLDevice device_of_text(PyObject* object, const char* operation) {
  const Ref printed = owned(PyObject_Str(object));
  const char* text = PyUnicode_AsUTF8(printed.get());
  checked(text != nullptr);
  std::optional<DLDevice> device = parse_device(text);
  if (!device)
    throw_issue(operation, ErrorCode::kMalformed,
                std::string("device is '") + text +
                    "'; give 'cpu', 'cuda', 'cuda:1', a dlbridge.Device, or DLPack's (type, id)");
  int current = 0;  // "cuda" is the current device, as everywhere else
  if (std::string_view(text) == "cuda" && cuda::available() && cuda::current_device(current).ok())
    device->device_id = current;
  return *device;
}

}  // namespace

void init_dtype_device(PyObject* module) {
  pyb::module_ m = pyb::reinterpret_borrow<pyb::module_>(module);
  pyb::class_<DTypeValue> dtype(m, "DType",
                                "The type of a tensor's elements. str() is its usual name ('float32', 'bfloat16'); it "
                                "equals that string, NumPy's dtype, and whatever else names it.");
  dtype
      .def_property_readonly(
          "code", [](const DTypeValue& d) { return static_cast<int>(d.dl.code); }, "int: DLPack's DLDataTypeCode.")
      .def_property_readonly(
          "lanes", [](const DTypeValue& d) { return static_cast<int>(d.dl.lanes); },
          "int: lanes of one element (DLPack).")
      .def("__str__", &DTypeValue::name)
      .def("__repr__", [](const DTypeValue& d) { return "dlbridge.DType('" + d.name() + "')"; })
      .def_property_readonly(
          "char", [](const pyb::object& d) { return ask_names("char", d); }, "str: NumPy's one-letter code.")
      .def_property_readonly(
          "str", [](const pyb::object& d) { return ask_names("typestr", d); }, "str: NumPy's typestr.")
      .def_property_readonly(
          "descr", [](const pyb::object& d) { return ask_names("descr", d); },
          "list: NumPy's description of the type, one unnamed field.")
      .def_property_readonly(
          "type", [](const pyb::object& d) { return ask_names("scalar_type", d); }, "type: NumPy's scalar type.")
      .def_property_readonly(
          "dtype", [](const pyb::object& d) { return ask_names("inner_dtype", d); },
          "numpy.dtype: that of this name, for NumPy before 2.4.")
      .def_property_readonly(
          "__numpy_dtype__", [](const pyb::object& d) { return ask_names("to_numpy", d); },
          "numpy.dtype: that of this name, for NumPy from 2.4 on.")
      .def(
          "__call__", [](const pyb::object& d, const pyb::args& value) { return ask_names("make_scalar", d, *value); },
          "A NumPy scalar of this dtype.")
      .def("__hash__", [](const pyb::object& d) { return dtype_hash(d.ptr()); })
      .def("__reduce__",
           [](const DTypeValue& d) {
             return pyb::make_tuple(pyb::module_::import("dlbridge._core").attr("_dtype"),
                                    pyb::make_tuple(d.dl.code, d.dl.bits, d.dl.lanes));
           })
      .def(
          "__eq__", [](const pyb::object& d, const pyb::object& o) { return dtype_equals(d.ptr(), o.ptr()); },
          pyb::is_operator())
      .def(
          "__ne__", [](const pyb::object& d, const pyb::object& o) { return !dtype_equals(d.ptr(), o.ptr()); },
          pyb::is_operator());
  auto* python_type = reinterpret_cast<PyTypeObject*>(dtype.ptr());
  add_fast_attributes(python_type);
  python_type->tp_new = Guard<dtype_new>::call;
  python_type->tp_init = dtype_init;
  m.def("_dtype", [](std::uint8_t code, std::uint8_t bits, std::uint16_t lanes) {
    return pyb::reinterpret_steal<pyb::object>(make_dtype({code, bits, lanes}));
  });
  pyb::class_<DeviceValue> device(m, "Device",
                                  "Where a tensor lies. str() is 'cpu', 'cuda:0', …; it equals that string and "
                                  "DLPack's pair.");
  device.def_property_readonly("type", &device_type_name, "str: 'cpu', 'cuda', 'cuda_managed', ….")
      .def_property_readonly(
          "id", [](const DeviceValue& d) { return d.dl.device_id; }, "int: the device's number.")
      .def("__str__", &DeviceValue::name)
      .def("__repr__", [](const DeviceValue& d) { return "dlbridge.Device('" + d.name() + "')"; })
      .def("__hash__", [](const DeviceValue& d) { return pyb::hash(pyb::str(d.name())); })
      .def("__reduce__",
           [](const DeviceValue& d) {
             return pyb::make_tuple(pyb::module_::import("dlbridge._core").attr("_device"),
                                    pyb::make_tuple(static_cast<int>(d.dl.device_type), d.dl.device_id));
           })
      .def("__eq__", &device_equals, pyb::is_operator())
      .def(
          "__ne__", [](const DeviceValue& d, const pyb::object& o) { return !device_equals(d, o); },
          pyb::is_operator());
  dtype_type = python_type;
  device_type = reinterpret_cast<PyTypeObject*>(device.ptr());
  m.def("_device", [](int type, int id) { return DeviceValue{{static_cast<DLDeviceType>(type), id}}; });
}

PyObject* make_dtype(DLDataType dtype) {
  const auto make = [&] { return reference_from([&] { return pyb::cast(DTypeValue{dtype}); }); };
  const DTypeInfo* row = find_dtype(dtype);
  return row == nullptr ? make()
                        : Ref::borrow(find_once(known_dtypes[static_cast<std::size_t>(row->id)], make)).release();
}

bool read_dtype(PyObject* object, DLDataType& out) noexcept {
  if (Py_TYPE(object) != dtype_type) return false;
  out = reinterpret_cast<pyb::detail::instance*>(object)->get_value_and_holder().value_ptr<DTypeValue>()->dl;
  return true;
}

PyObject* make_device(DLDevice device) {
  const auto make = [&] { return reference_from([&] { return pyb::cast(DeviceValue{device}); }); };
  return device.device_type != kDLCPU ? make() : Ref::borrow(find_once(cpu_device, make)).release();
}

bool is_device(PyObject* object) noexcept { return Py_TYPE(object) == device_type; }

bool parse_device_argument(PyObject* argument, const char* operation, std::optional<DLDevice>& out) {
  out.reset();
  if (argument == nullptr || argument == Py_None) return true;
  const auto parse = [&] {
    if (is_device(argument)) {
      out = pyb::handle(argument).cast<DeviceValue>().dl;
      return 0;
    }
    out = PyTuple_Check(argument) ? device_of_pair(argument, operation) : device_of_text(argument, operation);
    if (find_device_type(out->device_type) == nullptr)
      throw_issue(operation, ErrorCode::kMalformed,
                  "device type " + std::to_string(out->device_type) + " is not DLPack's");
    return 0;
  };
  return guarded_pybind(parse) == 0;
}

}  // namespace dlbridge::py
