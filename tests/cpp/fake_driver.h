// tests/cuda/fake_libcuda.c as the driver of a test, found through LD_LIBRARY_PATH. Tests that want it skip themselves
// where another driver, or none, is found.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "dlbridge/errors.h"
#include "dlbridge/stream.h"

namespace dlbridge::test {

// The fake's own functions; all null where the driver is not the fake.
struct FakeDriver {
  std::size_t (*copy_log)(char* out, std::size_t size) = nullptr;
  void (*reset)() = nullptr;
  void* (*alloc)(std::size_t bytes, int device) = nullptr;
  void* (*alloc_managed)(std::size_t bytes, int device) = nullptr;
  void* (*alloc_host)(std::size_t bytes) = nullptr;
  int (*free)(void*) = nullptr;
  std::size_t (*live_bytes)() = nullptr;
  void (*fail_alloc_after)(std::int64_t) = nullptr;
  void (*set_sticky)(int) = nullptr;
  void* (*stream_create)(int device, int blocking, int own_context) = nullptr;
  int (*stream_destroy)(void*) = nullptr;
  int (*fill)(void*, int value, std::size_t bytes, int device, void* stream) = nullptr;
  void (*synchronize)() = nullptr;
  void (*set_capture)(void* stream, std::uint64_t id) = nullptr;
  int (*context_depth)() = nullptr;
  int (*select_device)(int) = nullptr;

  static const FakeDriver& get() {
    static const FakeDriver fake = load();
    return fake;
  }
  explicit operator bool() const { return copy_log != nullptr; }

  // What was called since the last reset(), a line each.
  std::string log() const {
    std::string text(copy_log(nullptr, 0), '\0');
    copy_log(text.data(), text.size() + 1);
    return text;
  }
  std::vector<std::string> lines() const {
    const std::string text = log();
    std::vector<std::string> out;
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      out.push_back(text.substr(begin, end - begin));
    return out;
  }
  // How many calls were logged whose line begins so.
  int count(const std::string& begin) const {
    int n = 0;
    for (const std::string& line : lines()) n += line.starts_with(begin) ? 1 : 0;
    return n;
  }
  StreamHandle new_stream(int device = 0, bool own_context = false) const {
    return reinterpret_cast<StreamHandle>(stream_create(device, 0, own_context));
  }
  // A slow kernel: the stream writes when somebody makes it run.
  void queue_work(void* memory, std::size_t bytes, StreamHandle stream, int value = 7, int device = 0) const {
    EXPECT_EQ(fill(memory, value, bytes, device, reinterpret_cast<void*>(stream)), 0);
  }

 private:
  static FakeDriver load() {
    FakeDriver f;
    void* handle = ::dlopen("libcuda.so.1", RTLD_NOW);
    if (handle == nullptr || ::dlsym(handle, "fake_cuda_log") == nullptr) return f;
    const auto find = [&](auto& pointer, const char* name) {
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(::dlsym(handle, name));
      if (pointer == nullptr) ADD_FAILURE() << "the fake has no " << name;
    };
    find(f.copy_log, "fake_cuda_log");
    find(f.reset, "fake_cuda_reset");
    find(f.alloc, "fake_cuda_alloc");
    find(f.alloc_managed, "fake_cuda_alloc_managed");
    find(f.alloc_host, "fake_cuda_alloc_host");
    find(f.free, "fake_cuda_free");
    find(f.live_bytes, "fake_cuda_live_bytes");
    find(f.fail_alloc_after, "fake_cuda_fail_alloc_after");
    find(f.set_sticky, "fake_cuda_set_sticky");
    find(f.stream_create, "fake_cuda_stream_create");
    find(f.stream_destroy, "cuStreamDestroy_v2");
    find(f.fill, "fake_cuda_fill");
    find(f.synchronize, "fake_cuda_synchronize");
    find(f.set_capture, "fake_cuda_set_capture");
    find(f.context_depth, "fake_cuda_context_depth");
    find(f.select_device, "fake_cuda_select_device");
    return f;
  }
};

#define EXPECT_OK(expression)                                             \
  do {                                                                    \
    const ::dlbridge::Status status_ = (expression);                      \
    EXPECT_TRUE(status_.ok()) << (status_.ok() ? "" : status_.message()); \
  } while (false)
#define EXPECT_ERROR(expression, error_code, text)                                   \
  do {                                                                               \
    const ::dlbridge::Status status_ = (expression);                                 \
    ASSERT_FALSE(status_.ok());                                                      \
    EXPECT_EQ(status_.code(), error_code);                                           \
    EXPECT_NE(status_.message().find(text), std::string::npos) << status_.message(); \
  } while (false)

}  // namespace dlbridge::test
