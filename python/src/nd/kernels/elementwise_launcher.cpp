// ElementwiseLauncher, the base of ElementwiseKernel. What happens once a signature or a variant (types, code,
// compilation) is done by the Python subclass.
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/src/kit/pybind.h"
#include "python/src/nd/array.h"
#include "python/src/nd/kernels/elementwise_call.h"
#include "python/src/nd/kernels/launcher_object.h"
#include "python/src/nd/kernels/user_kernels.h"

namespace dlbridge::py::nd {

namespace {

using pyb::literals::operator""_a;

using ElementwiseObject = LauncherObject<ElementwiseState>;
PyTypeObject* elementwise_type = nullptr;

ElementwiseState& state_of(PyObject* self) noexcept { return *reinterpret_cast<ElementwiseObject*>(self)->state; }

constexpr char kOptions[] = "kernel(*, size=None, stream=None, block_size=None)";

PyObject* elementwise_vectorcall(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  static constexpr Signature kSignature(kOptions);
  const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  const Call options(kSignature, state_of(self).name.c_str(), args + nargs, 0, kwnames);
  return call_elementwise(self, state_of(self), {options[0], options[1], options[2]}, args, nargs);
}

ElementwiseState& checked_state(const pyb::handle& object) {
  if (!PyObject_TypeCheck(object.ptr(), elementwise_type)) throw pyb::type_error("not an ElementwiseLauncher");
  return state_of(object.ptr());
}

void elementwise_configure(const pyb::object& object, std::string name, int inputs, std::vector<bool> raw,
                           bool uses_index, bool uses_multi_index, bool persistent, bool no_return, bool return_tuple) {
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

}  // namespace

void init_elementwise_launcher(PyObject* module) {
  elementwise_type = LauncherType<ElementwiseState, Guard<elementwise_vectorcall>::call>::add_to(
      module, "dlbridge.nd._native.ElementwiseLauncher",
      "A kernel over the elements of its arguments. The base of ElementwiseKernel.");
  pyb::module_ m = pyb::reinterpret_borrow<pyb::module_>(module);
  m.def("elementwise_configure", &elementwise_configure, "Says what an elementwise kernel's parameters are.", "self"_a,
        pyb::kw_only(), "name"_a, "inputs"_a, "raw"_a, "uses_index"_a, "uses_multi_index"_a, "persistent"_a,
        "no_return"_a, "return_tuple"_a);
}

}  // namespace dlbridge::py::nd
