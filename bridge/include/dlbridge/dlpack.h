// The one place that includes DLPack's own header, and the constants that its header leaves as macros or prose.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>

#if !defined(DLPACK_MAJOR_VERSION) || DLPACK_MAJOR_VERSION != 1 || DLPACK_MINOR_VERSION < 3
#error "dlbridge needs dlpack.h 1.3 or a newer 1.x: an older copy comes first on the include path"
#endif

namespace dlbridge {

// The version every struct that dlbridge emits carries: the one whose fields it fills.
inline constexpr DLPackVersion kDLPackVersion{1, 3};

inline constexpr std::uint64_t kFlagReadOnly = DLPACK_FLAG_BITMASK_READ_ONLY;
inline constexpr std::uint64_t kFlagCopied = DLPACK_FLAG_BITMASK_IS_COPIED;
inline constexpr std::uint64_t kFlagPadded = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
inline constexpr std::uint64_t kKnownFlags = kFlagReadOnly | kFlagCopied | kFlagPadded;

// PyCapsule names of the DLPack Python specification. Static storage: capsules keep the pointer.
inline constexpr char kLegacyName[] = "dltensor";
inline constexpr char kLegacyUsedName[] = "used_dltensor";
inline constexpr char kVersionedName[] = "dltensor_versioned";
inline constexpr char kVersionedUsedName[] = "used_dltensor_versioned";
inline constexpr char kExchangeApiName[] = "dlpack_exchange_api";

}  // namespace dlbridge
