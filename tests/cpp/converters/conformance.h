// What every converter must do, asked of each through its own capabilities: the bad inputs of a tensor on its way into
// a framework, each with the count of the deleter's calls.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dlbridge/converter.h"
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

// Producers of one framework's liking.
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
    if (kCaps.strides == stride_rule::f_contig) set_strides(f_strides());
  }
  std::vector<std::int64_t> f_strides() const {
    std::vector<std::int64_t> out;
    std::int64_t dense = 1;
    for (const std::int64_t extent : producer.shape) out.push_back(std::exchange(dense, dense * extent));
    return out;
  }
  std::vector<std::int64_t> dense_strides() const {
    if (kCaps.strides == stride_rule::f_contig) return f_strides();
    std::vector<std::int64_t> out(producer.shape.size());
    std::int64_t dense = 1;
    for (std::size_t i = out.size(); i-- > 0;) out[i] = std::exchange(dense, dense * producer.shape[i]);
    return out;
  }
  void set_strides(std::vector<std::int64_t> elements) { producer.set_strides(std::move(elements)); }
  Tensor take() { return Tensor::take(&producer.managed); }
};

// Refused with `code`: the tensor stays usable and is deleted once, by its own end.
template <class X>
void expect_refused(Subject<X>& s, ErrorCode code, const char* id, const options& o = {}) {
  SCOPED_TRACE(id);
  {
    Tensor t = s.take();
    expect_error(code, {std::string(Subject<X>::kCaps.name), "expected ", "got ", "Hint: "},
                 [&] { return to<X>(std::move(t), o), 0; });
    EXPECT_TRUE(t.owner) << "a refused tensor is still the caller's";
    EXPECT_EQ(s.producer.deleted, 0);
  }
  EXPECT_EQ(s.producer.deleted, 1);
}

// Taken: shared (or copied by a copying framework) and deleted once, by the end of the result.
template <class X>
void expect_taken(Subject<X>& s, const char* id, const options& o = {}) {
  SCOPED_TRACE(id);
  {
    [[maybe_unused]] const auto made = to<X>(s.take(), o);
    // Of an empty tensor there is nothing to keep.
    if (s.producer.managed.dl_tensor.data != nullptr) {
      EXPECT_EQ(s.producer.deleted, Subject<X>::kCaps.result == result_kind::copy ? 1 : 0);
    }
  }
  EXPECT_EQ(s.producer.deleted, 1);
}

// Not as it is, but with copy::if_needed: the source is let go of at once.
template <class X>
void expect_copy_only(Subject<X>& a, Subject<X>& b, const char* id) {
  expect_refused(a, ErrorCode::kCopyRefused, id);
  if (is_cuda(Subject<X>::device())) return;  // a device copy needs a driver
  SCOPED_TRACE(std::string(id) + ", copied");
  {
    [[maybe_unused]] const auto made = to<X>(b.take(), {.copy = copy::if_needed});
    EXPECT_EQ(b.producer.deleted, 1);
  }
  EXPECT_EQ(b.producer.deleted, 1);
}

template <class X>
void expect_strides(const char* id, bool taken, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides,
                    std::uint64_t flags = 0) {
  Subject<X> a(shape), b(shape);
  for (Subject<X>* s : {&a, &b}) {
    s->set_strides(strides);
    s->producer.managed.flags = flags;
  }
  if (taken) expect_taken(a, id);
  else expect_copy_only(a, b, id);
}

// faults.md 13, 15, 16, 18, 19, 20 and the ranks and devices, as converter<X>::capabilities say.
template <class X>
void check_conformance() {
  using S = Subject<X>;
  constexpr caps c = S::kCaps;
  constexpr bool kCopies = c.result == result_kind::copy;
  {
    S s;
    expect_taken(s, "a plain tensor");
  }
  {
    S s;
    SCOPED_TRACE("a shared tensor");
    {
      Tensor t = s.take();
      [[maybe_unused]] const auto first = to<X>(t);
      [[maybe_unused]] const auto second = to<X>(t);
      t = Tensor();
      EXPECT_EQ(s.producer.deleted, kCopies ? 1 : 0);
    }
    EXPECT_EQ(s.producer.deleted, 1);
  }
  {
    S s;
    s.producer.managed.dl_tensor.dtype = {kDLFloat6_e2m3fn, 6, 1};
    expect_refused(s, ErrorCode::kWrongType, "16 a dtype that nobody takes");
  }
  if (c.max_rank < kMaxDims) {
    S s(std::vector<std::int64_t>(static_cast<std::size_t>(c.max_rank) + 1, 1));
    expect_refused(s, ErrorCode::kMalformed, "a rank too many");
  }
  if (c.min_rank > 0) {
    S s(std::vector<std::int64_t>(static_cast<std::size_t>(c.min_rank) - 1, 1));
    expect_refused(s, ErrorCode::kMalformed, "a rank too few");
  }
  {
    S s;
    s.producer.managed.dl_tensor.device = {kDLVulkan, 0};
    expect_refused(s, ErrorCode::kRefused, "a device that nobody takes");
  }
  {
    S a, b;
    a.producer.managed.flags = b.producer.managed.flags = kFlagReadOnly;
    if (c.read_only || kCopies) expect_taken(a, "18 read-only, which it can say");
    else expect_copy_only(a, b, "18 read-only");
  }
  {
    S a, b;
    for (S* s : {&a, &b}) s->producer.managed.dl_tensor.byte_offset = 1;
    if (c.misaligned || S::dtype().itemsize == 1) expect_taken(a, "15 misaligned, which it takes");
    else expect_copy_only(a, b, "15 misaligned");
  }
  {
    S s;
    s.producer.managed.dl_tensor.byte_offset = 512;
    expect_taken(s, "15 a byte offset");
  }
  {
    const std::vector<std::int64_t> dense = S().dense_strides();
    std::vector<std::int64_t> negative = dense;
    for (std::int64_t& stride : negative) stride = -stride;
    expect_strides<X>("20 negative strides", c.strides == stride_rule::any, S::shape(), negative);
    const bool zero_fits = c.strides <= stride_rule::non_negative;
    const bool reads = c.read_only || kCopies || c.overlap;
    expect_strides<X>("19 stride 0", zero_fits && reads, S::shape(), std::vector<std::int64_t>(dense.size(), 0));
    if (c.read_only || kCopies)
      expect_strides<X>("19 stride 0, read-only", zero_fits, S::shape(), std::vector<std::int64_t>(dense.size(), 0),
                        kFlagReadOnly);
    std::vector<std::int64_t> gaps = dense;
    for (std::int64_t& stride : gaps) stride *= 2;
    expect_strides<X>("gaps between elements",
                      c.strides <= stride_rule::positive || (S::rank() == 1 && c.strides == stride_rule::pitched),
                      S::shape(), gaps);
  }
}

// faults.md 13: empty tensors, whose data is null.
template <class X>
void check_empty(std::vector<std::int64_t> shape) {
  Subject<X> s(std::move(shape));
  s.producer.managed.dl_tensor.data = nullptr;
  if (Subject<X>::kCaps.strides != stride_rule::f_contig) s.producer.managed.dl_tensor.strides = nullptr;
  expect_taken(s, "13 empty, no data");
}

}  // namespace dlbridge::test
