// conformance<X>(): good converters pass it, and each promise that one breaks is named.
#include "dlbridge/testing/conformance.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dlbridge/converters/std.h"
#include "dlbridge/describe.h"

namespace dlbridge {
namespace {

// What is wrong with a converter.
enum class Flaw {
  kNone,
  kThrows,
  kThrowsOnEmpty,
  kLosesDType,
  kLosesAxes,
  kIgnoresStrides,
  kForgetsReadOnly,
  kCopies,
  kLetsGo,
  kLetsGoInFrom,
  kLeaks,
  kReleasesTwice,
  kKeepsWhatItCopies,
  kShowsWhatItCopies,
  kShiftsTheAddress,
};

// Any array of any dtype, by a share of the tensor, by a view, or by a copy.
template <Flaw flaw, result_kind kind>
struct Picture {
  std::shared_ptr<Tensor> tensor;
  std::shared_ptr<std::vector<std::byte>> copy = {};
};

template <Flaw flaw>
void spoil([[maybe_unused]] Tensor& t) {
  if constexpr (flaw == Flaw::kThrows)
    if (t.dl.ndim == 3) throw_issue("Picture", {ErrorCode::kRefused, "three axes"});
  if constexpr (flaw == Flaw::kThrowsOnEmpty)
    if (t.size == 0) throw std::string("empty");
  if constexpr (flaw == Flaw::kLosesDType)
    if (t.dtype() == DType::kInt16) t.set_dtype(info(DType::kUInt16));
  if constexpr (flaw == Flaw::kLosesAxes)
    if (t.dl.ndim == 2) std::swap(t.dl.shape[0], t.dl.shape[1]), std::swap(t.dl.strides[0], t.dl.strides[1]);
  if constexpr (flaw == Flaw::kIgnoresStrides)
    if (t.dl.ndim == 2) t.dl.strides[0] = t.dl.shape[1], t.dl.strides[1] = 1;
  if constexpr (flaw == Flaw::kForgetsReadOnly) t.flags &= ~kFlagReadOnly;
  if constexpr (flaw == Flaw::kShiftsTheAddress)
    if (t.size > 1) t.dl.data = static_cast<char*>(t.dl.data) + t.dtype().itemsize;
}

}  // namespace

template <Flaw flaw, result_kind kind>
struct converter<Picture<flaw, kind>> {
  using X = Picture<flaw, kind>;
  static constexpr bool kMakesCopies = kind == result_kind::copy;
  static constexpr caps capabilities{.name = "Picture",
                                     .devices = kOnHost,
                                     .strides = stride_rule::any,
                                     .misaligned = true,
                                     .overlap = true,
                                     .read_only = true,
                                     .source = source_kind::handle,
                                     .result = kind};
  static Status describe(X& x, Tensor& out) {
    const Tensor& t = *x.tensor;
    if constexpr (flaw == Flaw::kLetsGoInFrom) x.tensor.reset(new Tensor(detail::alias_of(t)));
    return describe_memory(out, x.tensor->dtype(), x.tensor->dl.data, x.tensor->dl.device, x.tensor->dl.ndim,
                           x.tensor->dl.shape, x.tensor->dl.strides, x.tensor->readonly());
  }
  static X to(Tensor&& t, const options&)
    requires(kind == result_kind::owner)
  {
    spoil<flaw>(t);
    if constexpr (flaw == Flaw::kCopies) return {std::make_shared<Tensor>(dense_copy(t))};
    if constexpr (flaw == Flaw::kLetsGo) t.owner.reset();
    if constexpr (flaw == Flaw::kLeaks) {
      static auto* const leaked = new std::vector<std::shared_ptr<Tensor>>();  // found by no leak checker
      return {leaked->emplace_back(std::make_shared<Tensor>(std::move(t)))};
    }
    if constexpr (flaw == Flaw::kReleasesTwice) {
      auto twice = std::make_shared<std::pair<Owner, Tensor>>(Owner(t.owner.context(), t.owner.release_function()),
                                                              std::move(t));
      return {std::shared_ptr<Tensor>(twice, &twice->second)};
    }
    return {std::make_shared<Tensor>(std::move(t))};
  }
  static X to(Tensor& t, const options&)
    requires(kind != result_kind::owner)
  {
    Tensor seen = detail::alias_of(t);
    seen.flags = t.flags;
    if constexpr (kMakesCopies && flaw == Flaw::kKeepsWhatItCopies) seen = t.share();
    if constexpr (kMakesCopies && flaw != Flaw::kShowsWhatItCopies) {
      Tensor made = dense_copy(t);
      if constexpr (flaw == Flaw::kKeepsWhatItCopies)
        made.owner = Owner(new Both(std::move(seen), std::move(made.owner)),
                           [](void* both) noexcept { delete static_cast<Both*>(both); });
      spoil<flaw>(made);
      return {std::make_shared<Tensor>(std::move(made))};
    }
    if constexpr (flaw == Flaw::kCopies) return {std::make_shared<Tensor>(dense_copy(t))};
    spoil<flaw>(seen);
    return {std::make_shared<Tensor>(std::move(seen))};
  }
  using Both = std::pair<Tensor, Owner>;
};

namespace {

template <Flaw flaw, result_kind kind>
std::string broken() {
  std::string all;
  for (const std::string& one : conformance<Picture<flaw, kind>>()) all += one + "\n";
  return all;
}

struct Control {
  const char* name;
  std::string (*run)();
  const char* promise;  // what is said to be broken; empty: nothing is
};
constexpr auto kOwner = result_kind::owner, kView = result_kind::view, kCopy = result_kind::copy;
const Control kControls[] = {
    {"GoodOwner", broken<Flaw::kNone, kOwner>, ""},
    {"GoodView", broken<Flaw::kNone, kView>, ""},
    {"GoodCopy", broken<Flaw::kNone, kCopy>, ""},
    {"Throws", broken<Flaw::kThrows, kOwner>, "what the capabilities admit is taken"},
    {"ThrowsInAView", broken<Flaw::kThrows, kView>, "what the capabilities admit is taken"},
    {"ThrowsOnEmpty", broken<Flaw::kThrowsOnEmpty, kView>, "what the capabilities admit is taken"},
    {"LosesDType", broken<Flaw::kLosesDType, kOwner>, "the dtype stays what it is"},
    {"LosesDTypeInACopy", broken<Flaw::kLosesDType, kCopy>, "the dtype stays what it is"},
    {"LosesAxes", broken<Flaw::kLosesAxes, kView>, "the extents stay what they are, in their order"},
    {"IgnoresStrides", broken<Flaw::kIgnoresStrides, kView>, "every element stays at its index"},
    {"IgnoresStridesAsAnOwner", broken<Flaw::kIgnoresStrides, kOwner>, "every element stays at its index"},
    {"ForgetsReadOnly", broken<Flaw::kForgetsReadOnly, kView>, "what may not be written stays read-only"},
    {"CopiesAsAnOwner", broken<Flaw::kCopies, kOwner>, "the result shows the tensor's memory"},
    {"CopiesAsAView", broken<Flaw::kCopies, kView>, "the result shows the tensor's memory"},
    {"LetsGo", broken<Flaw::kLetsGo, kOwner>, "the result keeps the memory that it shows"},
    {"LetsGoInFrom", broken<Flaw::kLetsGoInFrom, kOwner>, "from() keeps the memory as long as the tensor lives"},
    {"Leaks", broken<Flaw::kLeaks, kOwner>, "the memory is never released"},
    {"ReleasesTwice", broken<Flaw::kReleasesTwice, kOwner>, "the memory is released more than once"},
    {"KeepsWhatItCopies", broken<Flaw::kKeepsWhatItCopies, kCopy>, "lets go of the tensor"},
    {"ShowsWhatItCopies", broken<Flaw::kShowsWhatItCopies, kCopy>, "does not show the tensor's"},
    {"ShiftsTheAddress", broken<Flaw::kShiftsTheAddress, kView>, "the result shows the tensor's memory"},
};

class ConformanceControl : public testing::TestWithParam<Control> {};
TEST_P(ConformanceControl, IsCaughtAndNamed) {
  const std::string said = GetParam().run();
  if (*GetParam().promise == '\0') EXPECT_EQ(said, "");
  else EXPECT_NE(said.find(GetParam().promise), std::string::npos) << said;
}
INSTANTIATE_TEST_SUITE_P(All, ConformanceControl, testing::ValuesIn(kControls),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(ConformanceText, NamesTheTypeTheTensorAndHowOftenItHappened) {
  const std::vector<std::string> said = conformance<Picture<Flaw::kLosesAxes, kView>>();
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said[0].find("Picture: the extents stay what they are, in their order. Given (2, 3) ["), 0U) << said[0];
  EXPECT_NE(said[0].find("it became (3, 2) ["), std::string::npos) << said[0];
  EXPECT_NE(said[0].find(" more cases)"), std::string::npos) << said[0];
}

}  // namespace
}  // namespace dlbridge
