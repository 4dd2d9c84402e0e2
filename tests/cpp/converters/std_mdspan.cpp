// std::mdspan, built with clang and libc++: a plain program, since the system's GoogleTest is built for libstdc++.
#include <cstdio>
#include <cstdlib>

#include "dlbridge/converters/mdspan.h"
#include "tests/cpp/fixtures.h"

#if !defined(__cpp_lib_mdspan)
#error "this test is for a standard library with std::mdspan"
#endif

#define CHECK(...)                                                           \
  do {                                                                       \
    if (!(__VA_ARGS__)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
      std::exit(1);                                                          \
    }                                                                        \
  } while (false)

using namespace dlbridge;
template <class T, class Layout>
using Span2 = std::mdspan<T, std::dextents<std::int64_t, 2>, Layout>;

template <class X>
void refuses(test::VersionedProducer& p, ErrorCode code, const char* says) {
  {
    Tensor t = Tensor::take(&p.managed);
    try {
      static_cast<void>(to<X>(std::move(t)));
      CHECK(p.deleted < 0);  // nothing was thrown
    } catch (const Error& e) {
      CHECK(e.code() == code);
      CHECK(std::string(e.what()).find(says) != std::string::npos);
    }
    CHECK(p.deleted == 0);
  }
  CHECK(p.deleted == 1);
}

int main() {
  {
    test::VersionedProducer p({2, 3});
    p.set_strides({8, 2});
    {
      auto held = to<Span2<float, std::layout_stride>>(Tensor::take(&p.managed));
      CHECK(reinterpret_cast<char*>(&held->operator[](1, 2)) == p.bytes.data() + 4 * (8 + 4));
      Tensor back = from(borrow(*held, unowned));
      CHECK(back.dl.strides[0] == 8 && back.dl.shape[1] == 3);
      CHECK(p.deleted == 0);
    }
    CHECK(p.deleted == 1);
  }
  test::VersionedProducer negative({2, 3}), zero({2, 3}), wrong({2, 3}), readonly({2, 3}), device({2, 3});
  negative.managed.dl_tensor.byte_offset = 64;
  negative.set_strides({-3, 1});
  refuses<Span2<float, std::layout_stride>>(negative, ErrorCode::kCopyRefused, "positive strides");
  zero.set_strides({0, 1});
  refuses<Span2<const float, std::layout_stride>>(zero, ErrorCode::kCopyRefused, "positive strides");
  refuses<Span2<float, std::layout_left>>(wrong, ErrorCode::kCopyRefused, "Fortran-contiguous");
  readonly.managed.flags = kFlagReadOnly;
  refuses<Span2<float, std::layout_right>>(readonly, ErrorCode::kCopyRefused, "writable memory");
  device.managed.dl_tensor.device = {kDLCUDA, 0};
  refuses<Span2<float, std::layout_right>>(device, ErrorCode::kRefused, "cuda:0");
  test::VersionedProducer empty({0, 3});
  empty.managed.dl_tensor.data = nullptr;
  {
    const auto nothing = to<Span2<float, std::layout_right>>(Tensor::take(&empty.managed));
    CHECK(nothing->empty());
  }
  CHECK(empty.deleted == 1);
  std::puts("std::mdspan: all good");
}
