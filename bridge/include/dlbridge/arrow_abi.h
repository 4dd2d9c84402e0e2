// The structs of Arrow's C Data, C Stream and C Device interfaces, and their owners. No Arrow library.
#pragma once

#include <cstdint>
#include <utility>

#include "dlbridge/thread_exit.h"

// The ABI, under the guards that the specification gives it: whoever defines it first wins.
extern "C" {
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
#endif
#ifndef ARROW_C_DEVICE_DATA_INTERFACE
#define ARROW_C_DEVICE_DATA_INTERFACE
typedef int32_t ArrowDeviceType;
#define ARROW_DEVICE_CPU 1
#define ARROW_DEVICE_CUDA 2
#define ARROW_DEVICE_CUDA_HOST 3
#define ARROW_DEVICE_CUDA_MANAGED 13
struct ArrowDeviceArray {
  struct ArrowArray array;
  int64_t device_id;
  ArrowDeviceType device_type;
  void* sync_event;
  int64_t reserved[3];
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
#endif
#ifndef ARROW_C_DEVICE_STREAM_INTERFACE
#define ARROW_C_DEVICE_STREAM_INTERFACE
struct ArrowDeviceArrayStream {
  ArrowDeviceType device_type;
  int (*get_schema)(struct ArrowDeviceArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowDeviceArrayStream*, struct ArrowDeviceArray* out);
  const char* (*get_last_error)(struct ArrowDeviceArrayStream*);
  void (*release)(struct ArrowDeviceArrayStream*);
  void* private_data;
};
#endif
}

namespace dlbridge::arrow_c {

// The part of a struct that says whether it is released, and is.
template <class Struct>
Struct& base_of(Struct& s) noexcept {
  return s;
}
inline ArrowArray& base_of(ArrowDeviceArray& s) noexcept { return s.array; }

// Releases once what was moved in (the specification: to move, copy the struct and null the source's release).
template <class Struct>
class Owned {
 public:
  Struct value{};

  Owned() noexcept = default;
  explicit Owned(Struct& source) noexcept : value(source) { base_of(source).release = nullptr; }
  Owned(Owned&& other) noexcept : Owned(other.value) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      reset();
      value = other.value;
      base_of(other.value).release = nullptr;
    }
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { reset(); }

  bool there() const noexcept { return base_of(const_cast<Struct&>(value)).release != nullptr; }
  // The callbacks are foreign code, which may wait for the GIL.
  void reset() noexcept {
    auto& base = base_of(value);
    if (const auto release = base.release) {
      dlbridge::detail::outlive_thread_exit([&] { release(&base); });
      base.release = nullptr;
    }
  }
};

}  // namespace dlbridge::arrow_c
