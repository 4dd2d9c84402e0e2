// Tensor::take, release and share: managed DLPack structs and counted owners.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "dlbridge/atomic.h"
#include "dlbridge/dlpack_codec.h"
#include "dlbridge/exception.h"
#include "dlbridge/tensor.h"

namespace dlbridge {

namespace detail {
template <class Managed>
Tensor take_managed(Managed* managed) {
  if (managed == nullptr) [[unlikely]]
    throw Error(ErrorCode::kMalformed, "take: the managed tensor is a null pointer. Hint: it was taken before, or the "
                                       "producer failed and its error was ignored");
  Tensor out;
  throw_if_failed("take", import_managed(managed, out));
  return out;
}
}  // namespace detail

inline Tensor Tensor::take(DLManagedTensorVersioned* managed) { return detail::take_managed(managed); }
inline Tensor Tensor::take(DLManagedTensor* managed) { return detail::take_managed(managed); }

inline DLManagedTensorVersioned* Tensor::release() && { return export_managed(std::move(*this)); }

inline DLManagedTensor* Tensor::release_legacy() && {
  if (readonly() || padded()) [[unlikely]]
    throw Error(ErrorCode::kRefused, std::string("release_legacy: the tensor is ") +
                                         (readonly() ? "read-only" : "padded sub-byte") +
                                         ", and the legacy DLPack struct has no flags to say so. Hint: release()");
  return export_legacy(std::move(*this));
}

namespace detail {
// An owner with a count; the last of its holders releases what it keeps.
struct CountedOwner {
  Atomic<std::int64_t> count;
  Owner kept;

  static void release(void* context) noexcept {
    auto* self = static_cast<CountedOwner*>(context);
    if (self->count.sub(1) == 1) delete self;
  }
};
}  // namespace detail

inline Tensor Tensor::share() {
  Tensor out = detail::alias_of(*this);  // everything that can throw comes before the owner changes hands
  detail::CountedOwner* counted = nullptr;
  if (owner) {
    if (owner.release_function() == &detail::CountedOwner::release) {
      counted = static_cast<detail::CountedOwner*>(owner.context());
      counted->count.add(1);
    } else {
      counted = new detail::CountedOwner{Atomic<std::int64_t>(2), std::move(owner)};
      owner = Owner(counted, &detail::CountedOwner::release);
    }
    out.owner = Owner(counted, &detail::CountedOwner::release);
  }
  flags &= ~kFlagCopied;  // DLPack: a consumer may write to a copy as its own, and this is no longer anyone's own
  out.flags = flags;
  return out;
}

}  // namespace dlbridge
