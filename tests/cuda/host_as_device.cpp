// A libdlbridge_kernels.so for machines with no GPU: the host's kernels over the memory of fake_libcuda.c. A call first
// runs what its stream was given before, then itself at once. tests/cpp/CMakeLists.txt builds it.
#include <dlfcn.h>

#include "ndarray/kernels/api.h"

namespace dlbridge::nd {
namespace {

int synchronize(StreamHandle stream) {
  static const auto function =
      reinterpret_cast<int (*)(void*)>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), "cuStreamSynchronize"));
  return function(reinterpret_cast<void*>(stream));
}

template <auto kernel, class Args>
int ordered(const Args& args) {
  if (const int code = synchronize(args.stream); code != 0) return code;
  return (kHostBackend.*kernel)(args);
}

constexpr Backend kHostAsDevice{
    kKernelRelease,
    "host as a device",
    ordered<&Backend::elementwise>,
    ordered<&Backend::reduce>,
    ordered<&Backend::scan>,
    ordered<&Backend::sort>,
    ordered<&Backend::gather>,
    ordered<&Backend::scatter>,
    ordered<&Backend::nonzero>,
    ordered<&Backend::runs>,
    ordered<&Backend::search>,
    ordered<&Backend::triangle>,
    ordered<&Backend::join>,
    ordered<&Backend::dense>,
    ordered<&Backend::pad>,
    ordered<&Backend::range>,
    ordered<&Backend::random>,
    ordered<&Backend::multinomial>,
    ordered<&Backend::matmul>,
    ordered<&Backend::small_matrices>,
    [](int code) { return kHostBackend.error_text(code); },
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Backend* dlbridge_nd_cuda_backend() noexcept {
  return &kHostAsDevice;
}

}  // namespace dlbridge::nd
