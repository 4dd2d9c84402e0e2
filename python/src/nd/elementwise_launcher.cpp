// ElementwiseLauncher, the base of ElementwiseKernel. What happens once a signature or a variant (types, code,
// compilation) is done by the Python subclass.
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocols/common/errors.h"
#include "python/src/nd/array_object.h"
#include "python/src/nd/elementwise_call.h"
#include "python/src/nd/launcher_object.h"
#include "python/src/nd/user_kernels.h"

namespace dlbridge::py::nd {

namespace {

namespace pyb = ::pybind11;

using ElementwiseObject = LauncherObject<ElementwiseState>;
PyTypeObject* elementwise_type = nullptr;

ElementwiseState& state_of(PyObject* self) noexcept { return *reinterpret_cast<ElementwiseObject*>(self)->state; }

bool parse_options(const char* name, PyObject* const* values, PyObject* kwnames, ElementwiseOptions& out) {
  PyObject** const slots[] = {&out.size, &out.stream, &out.block_size};
  constexpr const char* kNames[] = {"size", "stream", "block_size"};
  for (Py_ssize_t k = 0; kwnames != nullptr && k < PyTuple_GET_SIZE(kwnames); ++k) {
    PyObject* given = PyTuple_GET_ITEM(kwnames, k);
    std::size_t slot = 0;
    while (slot < 3 && PyUnicode_CompareWithASCIIString(given, kNames[slot]) != 0) ++slot;
    if (slot == 3) {
      PyErr_Format(PyExc_TypeError, "%s: unexpected argument '%U'; there are size, stream and block_size", name, given);
      return false;
    }
    *slots[slot] = values[k];
  }
  return true;
}

PyObject* elementwise_vectorcall(PyObject* self, PyObject* const* args, std::size_t nargsf,
                                 PyObject* kwnames) noexcept {
  try {
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    ElementwiseOptions options;
    if (!parse_options(state_of(self).name.c_str(), args + nargs, kwnames, options)) return nullptr;
    return call_elementwise(self, state_of(self), options, args, nargs);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

ElementwiseState& checked_state(const pyb::handle& object) {
  if (!PyObject_TypeCheck(object.ptr(), elementwise_type)) throw pyb::type_error("not an ElementwiseLauncher");
  return state_of(object.ptr());
}

void elementwise_configure(const pyb::object& object, std::string name, int inputs, std::vector<bool> raw,
                           bool uses_index, bool uses_multi_index, bool persistent, bool no_return,
                           bool return_tuple) {
  if (raw.size() > static_cast<std::size_t>(kMaxKernelParameters))
    throw pyb::value_error(name + ": has " + std::to_string(raw.size()) + " parameters; at most 64 are possible");
  ElementwiseState& state = checked_state(object);
  state.name = std::move(name);
  state.inputs = inputs;
  state.raw = std::move(raw);
  state.traits = {uses_index || uses_multi_index, uses_multi_index};
  state.persistent = persistent;
  state.no_return = no_return;
  state.return_tuple = return_tuple;
}

void elementwise_install(const pyb::object& object, const pyb::bytes& key, int device, std::uintptr_t module,
                         const std::string& symbol, int unroll) {
  ElementwiseState& state = checked_state(object);
  auto variant = std::make_unique<ElementwiseVariant>();
  variant->unroll = unroll;
  if (!succeeded(state.name.c_str(), core::get_function(reinterpret_cast<core::CUmodule>(module), device,
                                                        symbol.c_str(), variant->function)))
    throw pyb::error_already_set();
  state.variants[std::string(key)] = std::move(variant);
}

}  // namespace

bool init_elementwise_launcher(PyObject* module) {
  elementwise_type = LauncherType<ElementwiseState, elementwise_vectorcall>::add_to(
      module, "dlbridge.nd._native.ElementwiseLauncher",
      "A kernel over the elements of its arguments. The base of ElementwiseKernel.");
  if (elementwise_type == nullptr) return false;
  pyb::module_ m = pyb::reinterpret_borrow<pyb::module_>(module);
  m.def("elementwise_configure", &elementwise_configure, "Says what an elementwise kernel's parameters are.");
  m.def("elementwise_install", &elementwise_install, "Gives an elementwise kernel one compiled variant.");
  return true;
}

}  // namespace dlbridge::py::nd
