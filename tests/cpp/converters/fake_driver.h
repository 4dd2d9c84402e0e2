// The own functions of tests/cuda/fake_libcuda.c, where libcuda.so.1 is that one (LD_LIBRARY_PATH).
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <string>
#include <type_traits>

namespace dlbridge::test {

struct FakeDriver {
  void* (*alloc)(std::size_t bytes, int device) = nullptr;
  int (*free)(void*) = nullptr;
  std::size_t (*live_bytes)() = nullptr;
  void* (*stream_create)(int device, int blocking, int own_context) = nullptr;
  int (*fill)(void*, int value, std::size_t bytes, int device, void* stream) = nullptr;
  void (*synchronize)() = nullptr;

  FakeDriver() {
    void* handle = ::dlopen("libcuda.so.1", RTLD_NOW);
    if (handle == nullptr || ::dlsym(handle, "fake_cuda_log") == nullptr) return;
    const auto find = [&](auto& pointer, const char* name) {
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(::dlsym(handle, name));
    };
    find(alloc, "fake_cuda_alloc");
    find(free, "fake_cuda_free");
    find(live_bytes, "fake_cuda_live_bytes");
    find(stream_create, "fake_cuda_stream_create");
    find(fill, "fake_cuda_fill");
    find(synchronize, "fake_cuda_synchronize");
    find(log_, "fake_cuda_log");
    find(reset_, "fake_cuda_reset");
  }
  explicit operator bool() const { return log_ != nullptr; }

  // What was called since the last log(); runs all queues.
  std::string log() const {
    std::string out(log_(nullptr, 0), '\0');
    log_(out.data(), out.size() + 1);
    reset_();
    return out;
  }

 private:
  std::size_t (*log_)(char*, std::size_t) = nullptr;
  void (*reset_)() = nullptr;
};

}  // namespace dlbridge::test
