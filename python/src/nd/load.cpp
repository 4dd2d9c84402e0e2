// dlbridge._core.load_nd(): the native half of dlbridge.nd, made on first use so that `import dlbridge` does not pay.
#include "python/src/nd/load.h"

#include <dlfcn.h>

#include <string>

#include "ndarray/core/backend.h"
#include "python/src/nd/array_type.h"
#include "python/src/nd/runtime.h"
#include "python/src/nd/user_kernels.h"

namespace dlbridge::py::nd {

namespace {

// The kernel library lies beside this extension module.
void find_kernel_library() {
  Dl_info where;
  if (::dladdr(reinterpret_cast<const void*>(&find_kernel_library), &where) == 0 || where.dli_fname == nullptr) return;
  const std::string path(where.dli_fname);
  const std::size_t slash = path.rfind('/');
  core::set_kernel_library_folder(slash == std::string::npos ? "." : path.substr(0, slash).c_str());
}

}  // namespace

PyObject* load_nd(PyObject*, PyObject*) noexcept {
  static PyObject* native = nullptr;  // immortal, as its types
  if (native != nullptr) return Ref::borrow(native).release();
  try {
    find_kernel_library();
    Ref module(PyModule_New("dlbridge.nd._native"));
    if (!module || !init_array_types(module.get()) || !init_ufuncs(module.get()) || !init_functions(module.get()) ||
        !init_creation(module.get()))
      return nullptr;
    const auto handle = pybind11::reinterpret_borrow<pybind11::module_>(module.get());
    init_runtime(handle);
    init_user_kernels(handle);
    native = module.release();
    return Ref::borrow(native).release();
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (...) {
    raise_current_exception();
  }
  return nullptr;
}

}  // namespace dlbridge::py::nd
