// What the tests of converters share: conformance<X>() as a test, errors, and tensors of a framework's liking.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dlbridge/converter.h"
#include "dlbridge/testing/conformance.h"
#include "tests/cpp/fixtures.h"

namespace dlbridge::test {

// Runs `f`, which must throw Error with `code` and all of `parts` in its message. Returns the message.
template <class F>
std::string expect_error(ErrorCode code, std::vector<std::string> parts, F&& f) {
  try {
    static_cast<void>(f());
  } catch (const Error& e) {
    const std::string what = e.what();
    EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(code)) << what;
    for (const std::string& part : parts)
      EXPECT_NE(what.find(part), std::string::npos) << part << " is not in: " << what;
    return what;
  }
  ADD_FAILURE() << "nothing was thrown; expected " << (parts.empty() ? "an Error" : parts[0]);
  return {};
}

// A producer of one framework's liking, in C order.
template <class X>
struct Subject {
  static constexpr caps kCaps = converter<X>::capabilities;
  // The widest dtype it takes, so that a wrong one and a misaligned address exist.
  static constexpr const DTypeInfo& dtype() {
    const DTypeInfo* best = nullptr;
    for (const DTypeInfo& d : kDTypes)
      if ((kCaps.dtypes >> static_cast<unsigned>(d.id) & 1) != 0 && !is_subbyte(to_dl(d.id)) &&
          (best == nullptr || d.itemsize > best->itemsize || d.id == DType::kFloat32))
        best = &d;
    return *best;
  }
  static constexpr std::int32_t rank() {
    return kCaps.min_rank > 2 ? kCaps.min_rank : kCaps.max_rank < 2 ? kCaps.max_rank : 2;
  }
  static std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> extents;
    for (std::int32_t i = 0; i < rank(); ++i) extents.push_back(2 + i);
    return extents;
  }
  static DLDevice device() {
    if ((kCaps.devices & kOnCpu) != 0) return {kDLCPU, 0};
    return {static_cast<DLDeviceType>(std::countr_zero(kCaps.devices)), 0};
  }

  VersionedProducer producer;
  explicit Subject(std::vector<std::int64_t> extents = shape()) : producer(std::move(extents), to_dl(dtype().id)) {
    DLTensor& t = producer.managed.dl_tensor;
    t.device = device();
    auto address = reinterpret_cast<std::uintptr_t>(producer.bytes.data()) + 1024;
    t.data = reinterpret_cast<void*>((address + 255) & ~std::uintptr_t{255});
  }
  Tensor take() { return Tensor::take(&producer.managed); }
};

// As the author of any converter has it.
template <class X>
void check_conformance() {
  for (const std::string& broken : conformance<X>()) ADD_FAILURE() << broken;
}

}  // namespace dlbridge::test
