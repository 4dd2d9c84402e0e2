// Where the members of a cupy.ndarray lie, learned from samples. See cupy.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frameworks/samples.h"

namespace dlbridge::frameworks {

// What is read of one array; shape and strides (in bytes) are CuPy's own and good while the array is.
struct CupyMembers {
  std::int64_t ndim;
  const std::int64_t* shape;
  const std::int64_t* strides_bytes;
  PyObject* dtype;  // borrowed
  std::uintptr_t data;
  int device;
};

class CupyLayout {
 public:
  // Makes the samples and looks, at the first calls only. Never sets a Python error. False: nothing is known.
  bool ready() noexcept {
    return learner_.ready([this] { return learn_from_samples(); });
  }

  // False where the array is not as the samples were. Only for objects of exactly cupy.ndarray, after ready().
  bool read(PyObject* array, CupyMembers& out) const noexcept {
    const auto* words = reinterpret_cast<const std::uintptr_t*>(array);
    const std::uintptr_t shape_bytes = words[shape_word_ + 1] - words[shape_word_];
    const std::uintptr_t strides_bytes = words[strides_word_ + 1] - words[strides_word_];
    auto* data = reinterpret_cast<PyObject*>(words[data_word_]);
    if (shape_bytes != strides_bytes || shape_bytes > kMaxVectorBytes || data == nullptr ||
        Py_TYPE(data) != pointer_type_) [[unlikely]]
      return false;
    const auto* pointer = reinterpret_cast<const std::uintptr_t*>(data);
    out.ndim = static_cast<std::int64_t>(shape_bytes / sizeof(std::int64_t));
    out.shape = reinterpret_cast<const std::int64_t*>(words[shape_word_]);
    out.strides_bytes = reinterpret_cast<const std::int64_t*>(words[strides_word_]);
    out.dtype = reinterpret_cast<PyObject*>(words[dtype_word_]);
    out.data = pointer[address_word_];
    out.device = static_cast<int>(static_cast<std::uint32_t>(pointer[device_word_]));
    return out.dtype != nullptr;
  }

  // CuPy's current stream of a device, 0 for the default one. False where CuPy cannot say; no Python error is set.
  bool current_stream(int device, std::uintptr_t& out) const noexcept {
    const std::intptr_t stream = stream_function_(device);
    if (stream == -1 && PyErr_Occurred() != nullptr) [[unlikely]] {
      PyErr_Clear();
      return false;
    }
    out = static_cast<std::uintptr_t>(stream);
    return true;
  }

 private:
  static constexpr std::uintptr_t kMaxVectorBytes = 64 * sizeof(std::int64_t);

  bool learn_from_samples();

  using StreamFunction = std::intptr_t (*)(int device);

  Learner learner_{2};
  std::size_t shape_word_ = 0;  // of the vector's begin in the array, in words; its end follows
  std::size_t strides_word_ = 0;
  std::size_t dtype_word_ = 0;
  std::size_t data_word_ = 0;     // of the reference to the cupy.cuda.MemoryPointer
  std::size_t address_word_ = 0;  // in the MemoryPointer
  std::size_t device_word_ = 0;
  PyTypeObject* pointer_type_ = nullptr;  // cupy.cuda.MemoryPointer; held for good
  StreamFunction stream_function_ = nullptr;
};

}  // namespace dlbridge::frameworks
