// The C ABI through which a header-only extension reads and makes arrays with the readers of the installed package:
// plain structs and functions, so that an extension and a dlbridge built by other compilers at other times fit. The
// capsule dlbridge._core._c_api holds the table. dlbridge/pybind11.h is the only header that needs it.
//
// Everything here is called with the GIL held unless it says otherwise. A function that fails returns -1 or null with
// a Python error set. Nothing throws.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dlbridge/dlpack.h"

struct _object;  // CPython's name for PyObject: this header includes no Python

namespace dlbridge::c_api {

inline constexpr char kCapsuleName[] = "dlbridge._core._c_api";

// A table of another major version has another layout. A minor version appends functions; `size` says how many.
inline constexpr std::uint32_t kMajor = 1;
inline constexpr std::uint32_t kMinor = 3;

// What read() found. Validated: nothing of it needs another check.
struct Record {
  DLTensor dl;                  // never a null shape or strides; byte_offset is 0 on devices with direct addresses
  std::uint64_t flags;          // kFlag…
  std::int64_t size;            // number of elements
  std::uintptr_t ready_handle;  // where the data becomes ready: dlbridge/stream.h
  std::uint8_t ready_kind;      // Ordering::Kind
  std::uint8_t protocol;        // 1 dlpack, 2 array_interface, 3 cuda_array_interface, 4 buffer, 5 arrow
  _object* holder;              // a new reference, which keeps the memory
};

// What an argument that allows conversion wants; each field may be left open.
struct Wanted {
  DLDataType dtype;          // bits 0: as it is
  std::int32_t device_type;  // 0: where it is
  char order;                // 'C', 'F', or 'A': any
};

// What an argument of a function in C has to be; each field may be left open.
struct Need {
  DLDataType dtype;          // bits 0: any
  std::int32_t device_type;  // 0: the CPU's memory, pinned or not
  std::int32_t ndim;         // -1: any
  char order;                // 'C', 'F'; anything else: any strides
  std::uint8_t writable;
};

// The same for functions in C++, dlbridge/requirement.h: each field may be left open.
struct Rules {
  const DLDataType* dtypes;
  std::int32_t dtype_count;     // 0: any
  std::uint32_t devices;        // a bit for each type of DLPack's; all of them: any
  const std::int64_t* extents;  // of max_rank axes, -1: any; null: any
  std::int32_t min_rank;
  std::int32_t max_rank;
  std::uint32_t alignment;  // bytes; 0: none
  std::uint8_t strides;     // stride_rule
  std::uint8_t writable;
  std::uint8_t distinct;
  std::uint8_t element_aligned;
  std::uint8_t shape_first;  // of several broken rules, one about the shape is named first
};

// A result on its way to Python: a tensor, and who keeps its memory, as dlbridge/owner.h has it.
struct Made {
  DLTensor dl;          // its extents and strides are copied
  std::uint64_t flags;  // kFlag…
  std::uintptr_t ready_handle;
  std::uint8_t ready_kind;
  void* context;
  void (*release)(void* context) noexcept;  // null: nobody. Runs once, on any thread, with the GIL or without
};

struct Table {
  std::uint32_t size;  // bytes of this struct
  std::uint32_t major;
  std::uint32_t minor;
  std::uint32_t reserved;

  // Any array, by the best of its protocols, without a copy. A tensor of up to `capacity` axes may have its extents
  // written to dims[0…] and its strides to dims[capacity…], where out->dl then points; else they are the holder's.
  int (*read)(_object* object, Record* out, std::int64_t* dims, std::int32_t capacity) noexcept;

  // A dlbridge.Tensor of `object` as `wanted`, copied only where it has to be. New reference.
  _object* (*adapt)(_object* object, const Wanted* wanted) noexcept;

  // A dlbridge.Tensor that takes `managed`, always: on failure its deleter has run. New reference.
  _object* (*wrap)(DLManagedTensorVersioned* managed, std::uint8_t ready_kind, std::uintptr_t ready_handle) noexcept;

  // `tensor` as an array of the framework that convert() knows by `name`. New reference.
  _object* (*convert)(_object* tensor, const char* name) noexcept;

  // Drops a reference: on any thread, with the GIL or without, an exception pending or not; does nothing once the
  // interpreter is going.
  void (*release)(_object* object) noexcept;

  // The CUDA stream that a `stream=` argument names, to work on: *out is 0 for None. -1 names none.
  int (*parse_stream)(_object* argument, std::intptr_t* out) noexcept;

  // Makes `stream` wait for a record's data. Without the GIL, too: on failure the reason is written to `message`, cut
  // to `capacity` bytes, and no Python error is set.
  int (*order)(DLDevice device, std::uint8_t ready_kind, std::uintptr_t ready_handle, std::uintptr_t stream,
               char* message, std::size_t capacity) noexcept;

  // The stream of the calling thread (dlbridge's own notion) for work on a CUDA device. Needs no GIL.
  std::uintptr_t (*current_stream)(std::int32_t device_id) noexcept;

  // Sets the Python exception that belongs to an ErrorCode, with this message.
  void (*raise)(std::uint8_t code, const char* message) noexcept;

  // The name of an object's type as users write it, cut to `capacity` bytes: "torch.Tensor".
  void (*type_name)(_object* object, char* out, std::size_t capacity) noexcept;

  // Since 1.1. `tensor` as an array of the framework that `example` belongs to, on the device where the tensor is; the
  // tensor itself where that is none of convert()'s. New reference.
  _object* (*convert_like)(_object* tensor, _object* example) noexcept;

  // Since 1.1. read(), and the rules of `need`; what is wrong is said of the argument of the function.
  int (*read_argument)(_object* object, const Need* need, const char* function, const char* argument, Record* out,
                       std::int64_t* dims, std::int32_t capacity) noexcept;

  // Since 1.2. The rule that an array breaks, a Violation of dlbridge/requirement.h; 0: none. `record` is what read()
  // has found; null for a capsule, which is looked at and left as it is. Where `why` is not null it gets a new
  // reference to a str that says it of the argument, and `distance` how far the array is from the rules.
  int (*examine)(_object* object, const Record* record, const Rules* rules, const char* argument, _object** why,
                 std::int32_t* distance) noexcept;

  // Since 1.3. `made` in the framework of `example`, as wrap() and convert_like() together would have it, without what
  // is between; null: a dlbridge.Tensor. Takes what `made` owns, always: on failure it has been released. New
  // reference.
  _object* (*result_like)(const Made* made, _object* example) noexcept;
};

}  // namespace dlbridge::c_api
