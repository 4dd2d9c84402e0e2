// A minimal stand-in for ArrayFire's headers, for tests: the declarations that the converter uses, with the meaning
// that ArrayFire's documentation gives them, over host memory. Not ArrayFire.
#pragma once

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

typedef long long dim_t;
typedef enum { f32, c32, f64, c64, b8, s32, u32, u8, s64, u64, s16, u16, f16 } af_dtype;
typedef enum { AF_SUCCESS = 0, AF_ERR_NO_MEM = 101, AF_ERR_ARG = 202 } af_err;
typedef void* af_array;

namespace fake_af {
struct Data {
  int count = 1;
  int locks = 0;
  af_dtype type = f32;
  dim_t dims[4] = {1, 1, 1, 1};
  void* memory = nullptr;
  dim_t elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
};
inline int live = 0;
inline bool fail_next = false;
inline std::size_t size_of(af_dtype t) {
  static const std::size_t sizes[] = {4, 8, 8, 16, 1, 4, 4, 1, 8, 8, 2, 2, 2};
  return sizes[t];
}
inline Data* as_data(af_array a) { return static_cast<Data*>(a); }
}  // namespace fake_af

inline const char* af_err_to_string(af_err e) {
  return e == AF_ERR_NO_MEM ? "Device out of memory" : "Invalid argument";
}

inline af_err af_create_handle(af_array* out, unsigned rank, const dim_t* dims, af_dtype type) {
  if (std::exchange(fake_af::fail_next, false)) return AF_ERR_NO_MEM;
  auto* d = new fake_af::Data;
  ++fake_af::live;
  d->type = type;
  for (unsigned i = 0; i < rank; ++i) d->dims[i] = dims[i];
  d->memory = std::calloc(static_cast<std::size_t>(d->elements()) + 1, fake_af::size_of(type));
  *out = d;
  return AF_SUCCESS;
}
// Copies from host memory in column-major order.
inline af_err af_create_array(af_array* out, const void* data, unsigned rank, const dim_t* dims, af_dtype type) {
  const af_err error = af_create_handle(out, rank, dims, type);
  if (error != AF_SUCCESS) return error;
  auto* d = fake_af::as_data(*out);
  std::memcpy(d->memory, data, static_cast<std::size_t>(d->elements()) * fake_af::size_of(type));
  return AF_SUCCESS;
}
inline af_err af_release_array(af_array a) {
  auto* d = fake_af::as_data(a);
  if (--d->count > 0) return AF_SUCCESS;
  std::free(d->memory);
  delete d;
  --fake_af::live;
  return AF_SUCCESS;
}
// Locks the memory until af_unlock_array.
inline af_err af_get_device_ptr(void** data, af_array a) {
  if (std::exchange(fake_af::fail_next, false)) return AF_ERR_NO_MEM;
  ++fake_af::as_data(a)->locks;
  *data = fake_af::as_data(a)->memory;
  return AF_SUCCESS;
}
inline af_err af_unlock_array(const af_array a) {
  --fake_af::as_data(a)->locks;
  return AF_SUCCESS;
}

namespace af {
using Backend = int;
}
enum { AF_BACKEND_DEFAULT = 0, AF_BACKEND_CPU = 1, AF_BACKEND_CUDA = 2, AF_BACKEND_OPENCL = 4 };

namespace fake_af {
inline af::Backend backend = AF_BACKEND_CPU;
}

namespace af {

struct dim4 {
  dim_t dims[4];
  dim_t operator[](unsigned i) const { return dims[i]; }
};

class array {
 public:
  array() { af_create_handle(&handle_, 0, nullptr, f32); }
  explicit array(af_array handle) : handle_(handle) {}  // takes the handle
  array(const array& other) : handle_(other.handle_) { ++fake_af::as_data(handle_)->count; }
  array(array&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  array& operator=(array other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~array() {
    if (handle_ != nullptr) af_release_array(handle_);
  }
  af_array get() { return handle_; }
  af_array get() const { return handle_; }
  af_dtype type() const { return fake_af::as_data(handle_)->type; }
  dim4 dims() const {
    const dim_t* d = fake_af::as_data(handle_)->dims;
    return {{d[0], d[1], d[2], d[3]}};
  }

 private:
  af_array handle_ = nullptr;
};

inline Backend getBackendId(const array&) { return fake_af::backend; }
inline void sync(int = -1) {}

}  // namespace af
