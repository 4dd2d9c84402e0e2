#include "ndarray/runtime/driver.h"

#include <dlfcn.h>

namespace dlbridge::nd::detail {

namespace {

// What stands in for a function that is not there; one for each signature, so that the call is well-formed.
template <class... Arguments>
CUresult absent(Arguments...) noexcept {
  return cuda::available() ? kNotSupported : cuda::kNotInitialized;
}

template <class... Arguments>
void resolve(void* library, const char* symbol, CUresult (*&member)(Arguments...)) noexcept {
  if (library != nullptr) member = reinterpret_cast<CUresult (*)(Arguments...)>(::dlsym(library, symbol));
  if (member == nullptr) member = &absent<Arguments...>;
}

Driver resolve_all() noexcept {
  // The bridge has opened it for good; this only asks for the handle.
  void* library = cuda::available() ? ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) : nullptr;
  Driver table;
#define DLBRIDGE_ND_DRIVER_RESOLVE(member, symbol, parameters) resolve(library, symbol, table.member);
  DLBRIDGE_ND_DRIVER(DLBRIDGE_ND_DRIVER_RESOLVE)
#undef DLBRIDGE_ND_DRIVER_RESOLVE
  return table;
}

}  // namespace

const Driver& load_driver() noexcept {
  static const Driver table = resolve_all();
  return table;
}

}  // namespace dlbridge::nd::detail
