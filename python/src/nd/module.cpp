// dlbridge._core.load_nd(): the native half of dlbridge.nd, made on first use so that `import dlbridge` does not pay.
#include "python/src/nd/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <string>

#include "ndarray/core/backend.h"
#include "protocols/common/threads.h"
#include "python/src/kit/pybind.h"
#include "python/src/nd/kernels/user_kernels.h"
#include "python/src/nd/runtime/runtime.h"

namespace dlbridge::py::nd {

namespace {

constexpr const char* kKernelLibrary = "/libdlbridge_kernels.so";

bool is_there(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

// The kernel library that the wheel dlbridge-cuda13 has brought, on sys.path; empty where none has.
std::string kernel_library_of_a_wheel() {
  PyObject* folders = PySys_GetObject("path");  // borrowed, and nothing below runs Python's code
  if (folders == nullptr || !PyList_Check(folders)) return {};
  const Ref fixed(PySequence_Tuple(folders));  // other threads may change the list
  if (!fixed) PyErr_Clear();
  for (Py_ssize_t i = 0; fixed && i < PyTuple_GET_SIZE(fixed.get()); ++i) {
    PyObject* folder = PyTuple_GET_ITEM(fixed.get(), i);
    const char* text = PyUnicode_Check(folder) ? PyUnicode_AsUTF8(folder) : nullptr;
    if (text == nullptr) PyErr_Clear();
    if (text == nullptr || text[0] != '/') continue;  // never what lies in the current folder
    const std::string path = std::string(text) + "/dlbridge_cuda13" + kKernelLibrary;
    if (is_there(path)) return path;
  }
  return {};
}

// Beside this extension module, where the build made both, or else that of a wheel.
std::string kernel_library() {
  Dl_info where;
  std::string beside = ".";
  if (::dladdr(reinterpret_cast<const void*>(&kernel_library), &where) != 0 && where.dli_fname != nullptr) {
    const std::string path(where.dli_fname);
    if (const std::size_t slash = path.rfind('/'); slash != std::string::npos) beside = path.substr(0, slash);
  }
  beside += kKernelLibrary;
  const std::string separate = is_there(beside) ? std::string() : kernel_library_of_a_wheel();
  return separate.empty() ? beside : separate;
}

}  // namespace

PyObject* load_nd(PyObject*) {
  static constinit Atomic<PyObject*> native;  // immortal, as its types
  static constinit Mutex making;
  if (PyObject* made = native; made != nullptr) return Ref::borrow(made).release();
  const MutexHold hold(making);
  if (PyObject* made = native; made != nullptr) return Ref::borrow(made).release();
  return guarded_pybind([&] {
    core::set_kernel_library(kernel_library());
    Ref module = owned(PyModule_New("dlbridge.nd._native"));
    init_array_types(module.get());
    init_ufuncs(module.get());
    init_matmul(module.get());
    init_linalg(module.get());
    init_reductions(module.get());
    init_indexing(module.get());
    init_views(module.get());
    init_rearrange(module.get());
    init_positions(module.get());
    init_float_parts(module.get());
    init_bits(module.get());
    init_promotion(module.get());
    init_creation(module.get());
    init_filled(module.get());
    init_late(module.get());
    init_operands(module.get());
    init_fills(module.get());
    init_flat(module.get());
    init_numpys(module.get());
    init_bit_stream(module.get());
    const auto handle = pyb::reinterpret_borrow<pyb::module_>(module.get());
    init_runtime(handle);
    init_library_functions(module.get());
    init_user_kernels(handle);
    native.store(Ref::borrow(module.get()).release());
    return module.release();
  });
}

}  // namespace dlbridge::py::nd
