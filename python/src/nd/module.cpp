// dlbridge._core.load_nd(): the native half of dlbridge.nd, made on first use so that `import dlbridge` does not pay.
#include "python/src/nd/module.h"

#include <dlfcn.h>

#include <string>

#include "ndarray/core/backend.h"
#include "python/src/kit/pybind.h"
#include "python/src/nd/kernels/user_kernels.h"
#include "python/src/nd/runtime/runtime.h"

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

PyObject* load_nd(PyObject*) {
  static PyObject* native = nullptr;  // immortal, as its types
  if (native != nullptr) return Ref::borrow(native).release();
  return guarded_pybind([&] {
    find_kernel_library();
    Ref module = owned(PyModule_New("dlbridge.nd._native"));
    init_array_types(module.get());
    init_ufuncs(module.get());
    init_matmul(module.get());
    init_reductions(module.get());
    init_indexing(module.get());
    init_views(module.get());
    init_promotion(module.get());
    init_creation(module.get());
    init_fills(module.get());
    const auto handle = pyb::reinterpret_borrow<pyb::module_>(module.get());
    init_runtime(handle);
    init_user_kernels(handle);
    native = module.release();
    return Ref::borrow(native).release();
  });
}

}  // namespace dlbridge::py::nd
