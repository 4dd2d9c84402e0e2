// conformance<X>(): whether dlbridge::converter<X> keeps what its capabilities promise, for the tests of its author.
//
//   TEST(MyImage, KeepsWhatItsConverterPromises) {
//     for (const std::string& broken : dlbridge::conformance<MyImage>()) ADD_FAILURE() << broken;
//   }
//
// Knows no test library. docs/converters.md says what is asked.
#pragma once

#include <bit>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "dlbridge/converter.h"
#include "dlbridge/testing/lent.h"

namespace dlbridge {

namespace detail {

// The converter itself, by its declarations.
template <class X>
consteval void check_declarations() {
  constexpr caps c = converter<X>::capabilities;
  constexpr bool kDescribes = HasDescribe<X>;
  constexpr bool kFroms = HasFromWithOptions<X> || HasFromPlain<X>;
  static_assert(!c.name.empty() && c.name != caps{}.name,
                ".name is what errors call the type, to<MyImage>: say .name = \"MyImage\"");
  static_assert(c.dtypes != 0 && c.devices != 0, "the capabilities name no dtype, or no device: nothing can be taken");
  static_assert(c.min_rank >= 0 && c.min_rank <= c.max_rank && c.max_rank <= kMaxDims,
                "ranks lie between 0 and 64, and .min_rank is not above .max_rank");
  static_assert(c.alignment == 0 || std::has_single_bit(c.alignment), ".alignment is a power of two, in bytes");
  static_assert(!(c.misaligned && c.alignment > 1), ".misaligned takes any address, and .alignment does not");
  static_assert(c.source == source_kind::none || kDescribes || kFroms,
                ".source says that the type can be read, and there is no `static Status describe(X&, Tensor&)` and no "
                "`static Tensor from(X&&)`. Write one, or say source_kind::none");
  static_assert(
      c.source != source_kind::none || !(kDescribes || kFroms),
      ".source is none, and there is a describe() or from(): say whether X is a container, a handle or a view");
  static_assert(c.source != source_kind::view || kDescribes,
                "a view is lent by borrow(), which wants `static Status describe(X&, Tensor&)`");
  constexpr bool kToOwner = ToTakesOwner<X> && !ToTakesView<X>;
  static_assert((c.result == result_kind::none) == !(ToTakesOwner<X> || ToTakesView<X>),
                ".result says whether there is a to(): none where there is none, and only there. It is `static X "
                "to(Tensor&&, const options&)`, or of a TensorView or Tensor& in place of the Tensor&&");
  static_assert(
      c.result != result_kind::owner || kToOwner,
      ".result is owner, so to() has to take the tensor's owner along: `static X to(Tensor&&, const options&)`");
  static_assert(!(c.result == result_kind::view || c.result == result_kind::copy) || !kToOwner,
                ".result is view or copy, and to() takes a Tensor&&: say result_kind::owner, or take a TensorView");
  static_assert(!c.consumes_on_error || c.result == result_kind::owner,
                ".consumes_on_error is for a to() that takes the tensor's owner along");
  if constexpr (ToTakesOwner<X> && kToOwner)
    static_assert(std::is_same_v<decltype(converter<X>::to(std::declval<Tensor>(), options{})), X>,
                  "to() returns an X");
  else if constexpr (ToTakesView<X>)
    static_assert(std::is_same_v<decltype(converter<X>::to(std::declval<Tensor&>(), options{})), X>,
                  "to() returns an X");
  static_assert(std::is_move_constructible_v<X>, "a result is moved to the caller");
}

// One converter under test.
template <class X>
class Conformance {
 public:
  std::vector<std::string> run() {
    if constexpr (kCaps.result != result_kind::none) {
      dtypes();
      ranks();
      extents();
      strides();
      empty();
      addresses();
      devices();
      if (!releases_wrongly_) shared();
    }
    std::vector<std::string> out;
    for (const Broken& one : broken_)
      out.push_back(std::string(kCaps.name) + ": " + one.text +
                    (one.more == 0 ? "" : " (and " + std::to_string(one.more) + " more cases)"));
    return out;
  }

 private:
  static constexpr caps kCaps = converter<X>::capabilities;
  static constexpr const Requirement& kNeeds = detail::kNeeds<X>;
  static constexpr bool kCopies = kCaps.result == result_kind::copy;
  static constexpr bool kHost = (kNeeds.devices & kOnHost) != 0;
  static constexpr std::int32_t kTypicalRank = kNeeds.min_rank > 2   ? kNeeds.min_rank
                                               : kNeeds.max_rank < 2 ? kNeeds.max_rank
                                                                     : 2;

  struct Broken {
    std::string_view promise;
    std::string text;
    int more = 0;
  };
  void broke(std::string_view promise, const std::string& given, const std::string& detail = {}) {
    for (Broken& one : broken_)
      if (one.promise == promise) return void(++one.more);
    broken_.push_back({promise, std::string(promise) + ". Given " + given + (detail.empty() ? "" : ": " + detail)});
  }

  // --- what is given ------------------------------------------------------------------------------------------------

  static bool takes(DType dtype) { return (kNeeds.dtypes >> static_cast<unsigned>(dtype) & 1) != 0; }
  // The widest one that is taken, so that a misaligned address exists.
  static DType typical_dtype() {
    const DTypeInfo* best = nullptr;
    for (const DTypeInfo& d : kDTypes)
      if (takes(d.id) && !is_subbyte(to_dl(d.id)) && (best == nullptr || d.itemsize > best->itemsize)) best = &d;
    return best != nullptr ? best->id : DType::kUInt8;
  }
  static Extents typical_shape(std::int32_t rank) {
    Extents out;
    for (std::int32_t i = 0; i < rank; ++i) {
      const bool fixed = kNeeds.extents && i < kNeeds.extents.count && kNeeds.extents[i] != dyn;
      out.push_back(fixed ? kNeeds.extents[i] : i < 3 ? 2 + i : 1);
    }
    return out;
  }
  static bool is_free(std::size_t axis) {
    return !kNeeds.extents || kNeeds.extents[static_cast<std::int32_t>(axis)] == dyn;
  }
  static LentArray dense(Extents shape) {
    LentArray out;
    out.strides = kNeeds.strides == stride_rule::f_contig ? f_strides(shape) : c_strides(shape);
    out.shape = std::move(shape);
    out.dtype = typical_dtype();
    if (!kHost) out.device.device_type = static_cast<DLDeviceType>(std::countr_zero(kNeeds.devices));
    return out;
  }
  static LentArray typical() { return dense(typical_shape(kTypicalRank)); }

  void dtypes() {
    LentArray given = typical();
    for (const DTypeInfo& d : kDTypes) {
      given.dtype = d.id;
      if (!is_subbyte(to_dl(d.id))) ask(given);
    }
  }
  void ranks() {
    for (std::int32_t rank = 0; rank <= kMaxDims; ++rank)
      if (rank < 7 || rank == kNeeds.max_rank || rank == kNeeds.max_rank + 1) ask(dense(typical_shape(rank)));
  }
  void extents() {
    const Extents usual = typical_shape(kTypicalRank);
    for (std::size_t axis = 0; axis < usual.size(); ++axis)
      for (const std::int64_t extent : {std::int64_t{1}, usual[axis] + 1}) {
        Extents shape = usual;
        shape[axis] = extent;
        ask(dense(std::move(shape)));
      }
    LentArray single = dense(Extents(usual.size(), 1));  // strides that are never used
    for (std::int64_t& stride : single.strides) stride = 7;
    ask(std::move(single));
  }
  void strides() {
    LentArray given = typical();
    const Extents c = c_strides(given.shape), f = f_strides(given.shape), zero(c.size());
    std::vector<Extents> all{c, f, zero};
    for (const Extents& usual : {c, f}) {
      for (std::size_t axis = 0; axis < usual.size(); ++axis) {
        Extents turned = usual, repeated = usual, padded = usual;
        turned[axis] = -turned[axis];
        repeated[axis] = 0;
        padded[axis] += 5 * static_cast<std::int64_t>(usual.size());
        all.insert(all.end(), {turned, repeated, padded});
      }
      Extents gaps = usual, turned = usual;
      for (std::int64_t& stride : gaps) stride *= 2;
      for (std::int64_t& stride : turned) stride = -stride;
      all.insert(all.end(), {gaps, turned});
    }
    for (const Extents& one : all)
      for (const std::uint64_t flags : {std::uint64_t{0}, std::uint64_t{kFlagReadOnly}}) {
        given.strides = one;
        given.flags = flags;
        ask(given);
      }
  }
  void empty() {
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(kTypicalRank); ++axis) {
      if (!is_free(axis)) continue;
      Extents shape = typical_shape(kTypicalRank);
      shape[axis] = 0;
      ask(dense(std::move(shape)));
    }
  }
  void addresses() {
    for (const std::uint64_t offset :
         {std::uint64_t{1}, std::uint64_t{info(typical_dtype()).itemsize}, std::uint64_t{512}}) {
      LentArray given = typical();
      given.byte_offset = offset;
      ask(std::move(given));
    }
  }
  void devices() {
    LentArray given = typical();
    for (const DeviceTypeInfo& d : kDeviceTypes) {
      given.device.device_type = static_cast<DLDeviceType>(d.type);
      const bool taken = (kNeeds.devices >> static_cast<unsigned>(d.type) & 1) != 0;
      if (!taken) ask(given);  // the memory is the host's, whatever is said of it
    }
  }

  // --- what is asked ------------------------------------------------------------------------------------------------

  void ask(LentArray given) {
    Lent lent(given);
    Tensor t = lent.take();
    const std::string text = describe(t);
    const Violation v = find_violation(t, kNeeds);
    if (v == Violation::kNone) {
      expect_taken(lent, std::move(t), text, {});
    } else {
      expect_refused(lent, std::move(t), text, v);
      if (!copy_repairs(v) || !is_host(given.device) || releases_wrongly_) return;
      Lent other(std::move(given));
      expect_taken(other, other.take(), text + ", with copy::if_needed", {.copy = copy::if_needed});
    }
    releases_wrongly_ = releases_wrongly_ || lent.released() != 1;
    if (lent.released() == 0)
      broke("the memory is never released: a to() that takes the owner along drops it with its result", text);
    if (lent.released() > 1)
      broke("the memory is released more than once: an owner is moved, not copied", text,
            std::to_string(lent.released()) + " times");
  }

  void expect_refused(const Lent& lent, Tensor t, const std::string& text, Violation v) {
    try {
      static_cast<void>(to<X>(std::move(t)));
      broke("a tensor that the capabilities do not admit is refused", text);
    } catch (const Error& error) {
      if (error.code() != code_of(v)) broke("a refusal says why by its code", text, error.what());
      if (lent.released() != 0) broke("a tensor that is refused stays the caller's", text, error.what());
    }
  }

  void expect_taken(const Lent& lent, Tensor t, const std::string& text, const options& o) {
    const bool copied = kCopies || o.copy != copy::never;
    const bool holds = t.dl.data != nullptr;  // of an empty tensor there is nothing to keep
    try {
      auto made = to<X>(std::move(t), o);
      if (!copied && holds && lent.released() != 0)
        return broke(
            "the result keeps the memory that it shows until it ends: .result = owner takes the tensor's owner "
            "along",
            text, "to() has let go of it");
      if (copied && holds && lent.released() != 1)
        broke("a result with elements of its own (.result = copy) lets go of the tensor", text);
      expect_back(lent, std::move(made), text, copied);
    } catch (const std::exception& error) {
      broke("what the capabilities admit is taken: declare less, or take it", text, error.what());
    } catch (...) {
      broke("what the capabilities admit is taken: declare less, or take it", text, "something was thrown");
    }
  }

  // The result, read again.
  template <class Made>
  void expect_back([[maybe_unused]] const Lent& lent, [[maybe_unused]] Made made,
                   [[maybe_unused]] const std::string& text, [[maybe_unused]] bool copied) {
    if constexpr (kCaps.source == source_kind::none || !kHost) {
      return;  // nothing to read it with
    } else if constexpr (!std::is_same_v<Made, X> || kCaps.source == source_kind::view) {
      if constexpr (HasDescribe<X>) {
        X& view = made;
        expect_same(lent, from(borrow(view, unowned)), text, copied);
      }
    } else {
      const Tensor back = from(std::move(made));
      if (!copied && back.dl.data != nullptr && lent.released() != 0)
        broke("from() keeps the memory as long as the tensor lives", text, "it was let go of by from()");
      expect_same(lent, back, text, copied);
    }
  }

  void expect_same(const Lent& lent, const Tensor& back, const std::string& text, bool copied) {
    const LentArray& given = lent.given();
    const std::string became = "it became " + describe(back);
    if (back.dtype() != given.dtype) return broke("the dtype stays what it is", text, became);
    const auto [shape, strides] =
        without_single_axes(given.shape.data(), given.strides.data(), static_cast<std::int32_t>(given.shape.size()));
    const auto [back_shape, back_strides] = without_single_axes(back.dl.shape, back.dl.strides, back.dl.ndim);
    if (given.size() == 0) {
      if (back.size != 0) broke("an empty tensor stays empty", text, became);
      return;
    }
    if (shape != back_shape) return broke("the extents stay what they are, in their order", text, became);
    const auto* const elements = static_cast<const unsigned char*>(back.dl.data);
    if (!copied && elements != lent.data())
      return broke("the result shows the tensor's memory: .result = copy is for one that copies", text, became);
    if (copied && elements == lent.data())
      return broke("a result with elements of its own (.result = copy) does not show the tensor's", text, became);
    if (!same_elements(shape, lent.data(), strides, elements, back_strides, info(given.dtype).itemsize))
      return broke("every element stays at its index: declare no strides that to() does not heed", text, became);
    if (copied) return;
    const bool readonly = (given.flags & kFlagReadOnly) != 0;
    if (readonly && !back.readonly())
      broke("what may not be written stays read-only: .read_only is for a type that can say so", text, became);
  }

  void shared() {
    Lent lent(typical());
    const std::string text = "one tensor, taken twice";
    try {
      Tensor t = lent.take();
      [[maybe_unused]] const auto first = to<X>(t);
      [[maybe_unused]] const auto second = to<X>(t);
      t = Tensor();
      if (!kCopies && lent.released() != 0) broke("two results share the memory until the last one ends", text);
    } catch (const std::exception& error) {
      broke("what the capabilities admit is taken: declare less, or take it", text, error.what());
    }
    if (lent.released() != 1) broke("two results share the memory until the last one ends", text);
  }

  std::vector<Broken> broken_;
  bool releases_wrongly_ = false;  // then only the counted memory is given, which cannot be freed twice
};

}  // namespace detail

// The promises that dlbridge::converter<X> breaks, each in a sentence, with the first tensor that shows it; none: it is
// good. Every dtype, rank, extent, stride, empty and read-only tensor, address and device that its capabilities admit
// has to arrive whole in X, be kept as long as X lives, and be released once; all others have to be refused. What X is
// declared as is checked when this compiles. Tensors are of host memory; where X takes none, nothing is read.
template <class X>
std::vector<std::string> conformance() {
  if constexpr (detail::convertible<X>::value) {
    detail::check_declarations<X>();
    return detail::Conformance<X>().run();
  } else {
    return {};
  }
}

}  // namespace dlbridge
