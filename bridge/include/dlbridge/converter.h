// from() and to<>(): between the descriptor and the C++ frameworks, through dlbridge::converter<Framework>.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "dlbridge/caps.h"
#include "dlbridge/copying.h"
#include "dlbridge/exception.h"
#include "dlbridge/managed.h"
#include "dlbridge/options.h"
#include "dlbridge/tensor_view.h"

namespace dlbridge {

// The extension point; dlbridge/converters/*.h specialise it, and so may you for a type of your own. Members:
//   static constexpr caps capabilities{...};
// and, for from(), one of
//   static Status describe(X& x, Tensor& out);     // all but the owner, which the caller adds
//   static Tensor from(X&& x, const options&);     // with an owner, for a framework that can give one up
// (with describe(), `static Status owned(const X&)` may say that a handle owns nothing after all)
// (`const options&` may be left out) and, for to(), one of
//   static X to(Tensor&& t, const options&);       // takes the owner along; leaves `t` alone where it throws
//   static X to(TensorView<T, Rank> v, const options&);  // or (Tensor&, ...): a view or a copy
// (a TensorView is the quicker: a view that says all that is asked for is handed on as it is)
// The tensor has passed the validator with `capabilities`, and is ordered before the caller's stream.
template <class X>
struct converter;

template <class X>
concept Convertible = requires { converter<X>::capabilities; };

namespace detail {
template <class X>
struct convertible {
  static constexpr bool value = Convertible<X>;
  static_assert(value, "no dlbridge::converter for this type: include its dlbridge/converters/ header, or specialise "
                       "dlbridge::converter");
};
}  // namespace detail

// A view without an owner of its own, and the tensor that keeps its memory. Move-only; behaves as a pointer to the
// view and as the view itself where it is an lvalue. A temporary gives nothing away: its memory would be gone.
template <class X>
class Held {
 public:
  Held(Tensor&& owner, X&& value) : owner_(std::move(owner)), value_(std::move(value)) {}
  Held(Held&&) = default;
  Held& operator=(Held&&) = delete;  // many views assign elements, not themselves

  X& operator*() & noexcept { return value_; }
  const X& operator*() const& noexcept { return value_; }
  X& operator*() const&& = delete;
  X* operator->() & noexcept { return &value_; }
  const X* operator->() const& noexcept { return &value_; }
  X* operator->() const&& = delete;
  operator X&() & noexcept { return value_; }             // NOLINT(google-explicit-constructor)
  operator const X&() const& noexcept { return value_; }  // NOLINT(google-explicit-constructor)
  operator const X&() const&& = delete;
  operator X() && = delete;

  const Tensor& owner() const& noexcept { return owner_; }
  const Tensor& owner() const&& = delete;
  // Ends the view and gives the owner back.
  Tensor into_owner() && { return std::move(owner_); }

 private:
  Tensor owner_;
  X value_;  // destroyed before its memory
};

// `borrow(x, unowned)`: the caller promises that the memory outlives every user of the tensor.
struct unowned_t {};
inline constexpr unowned_t unowned{};

// What borrow() returns; only from() takes it.
template <class X, class Keep>
struct Borrowed {
  X value;  // a reference, or a view by value
  Keep keepalive;
};

namespace detail {
template <class X>
inline constexpr const caps& kCaps = converter<X>::capabilities;

// What the view that to() takes asks for.
template <class View>
inline constexpr Requirement kViewNeeds{};
template <class View>
inline constexpr bool kIsView = false;
template <class T, int Rank, class Layout, class Device>
inline constexpr bool kIsView<TensorView<T, Rank, Layout, Device>> = true;
template <class T, int Rank, class Layout, class Device>
inline constexpr Requirement kViewNeeds<TensorView<T, Rank, Layout, Device>> =
    TensorView<T, Rank, Layout, Device>::kRequirement;
template <class X>
struct parameter_of_to {
  using type = void;
};
template <class Result, class First, class... Rest>
std::type_identity<std::remove_cvref_t<First>> first_parameter(Result (*)(First, Rest...));
template <class X>
  requires requires { first_parameter(&converter<X>::to); }
struct parameter_of_to<X> : decltype(first_parameter(&converter<X>::to)){};
template <class X>
using ToParameter = typename parameter_of_to<X>::type;

template <class X>
consteval Intersection all_needs_of() {
  return intersect(requirement_of(converter<X>::capabilities), kViewNeeds<ToParameter<X>>);
}
inline constexpr Requirement kUnchecked{};
template <class X>
inline constexpr Intersection kAllNeeds = all_needs_of<X>();
template <class X>
inline constexpr const Requirement& kNeeds = kAllNeeds<X>.both;

template <class X>
concept HasDescribe = requires(X& x, Tensor& t) {
  { converter<std::remove_const_t<X>>::describe(x, t) } -> std::same_as<Status>;
};
template <class X>
concept HasFromWithOptions = requires(X&& x, const options& o) {
  { converter<X>::from(std::move(x), o) } -> std::same_as<Tensor>;
};
template <class X>
concept HasFromPlain = requires(X&& x) {
  { converter<X>::from(std::move(x)) } -> std::same_as<Tensor>;
};
template <class X>
concept ToTakesOwner = requires(Tensor&& t, const options& o) { converter<X>::to(std::move(t), o); };
template <class X>
concept ToTakesView = requires(Tensor& t, const options& o) { converter<X>::to(t, o); };

inline std::string operation(std::string_view verb, const caps& c) {
  return std::string(verb) + "<" + std::string(c.name) + ">";
}

[[noreturn, gnu::cold, gnu::noinline]] inline void throw_conversion(std::string_view verb, const caps& c,
                                                                    const Issue& issue) {
  throw_issue(operation(verb, c), issue);
}
inline void check_described(const caps& c, const Status& status) {
  if (!status.ok()) [[unlikely]]
    throw_conversion("from", c, status.issue());
}

inline Tensor repaired(const Tensor& t, const Requirement& needs, const options& o) {
  return needs.strides == stride_rule::f_contig ? dense_copy_f(t, o.stream) : dense_copy(t, o.stream);
}

// The slow half of prepare(): a copy where one is asked for or allowed and helps, else the reason.
[[gnu::cold, gnu::noinline]] inline void repair_or_throw(Tensor& t, const caps& c, const Requirement& needs,
                                                         const options& o, bool may_own) {
  Violation v = find_violation(t, needs);
  if (!may_own && (o.copy == copy::always || (v != Violation::kNone && o.copy == copy::if_needed && copy_repairs(v))))
    throw_conversion("to", c,
                     {ErrorCode::kCopyRefused,
                      "a copy was asked for, and a result made from a view has nowhere to keep it. Hint: pass "
                      "the Tensor, not a TensorView of it"});
  const bool wanted =
      o.copy == copy::always ? v == Violation::kNone || copy_repairs(v) : o.copy == copy::if_needed && copy_repairs(v);
  if (wanted) {
    t = repaired(t, needs, o);
    v = find_violation(t, needs);
  }
  if (v != Violation::kNone) throw_conversion("to", c, explain(v, t, needs));
}

// Validates against the capabilities, copies where that is wanted. `Known`: what has been checked of the tensor.
template <class X, const Requirement& Known = kUnchecked>
void validate(Tensor& t, const options& o, bool may_own = true) {
  static_assert(kAllNeeds<X>.conflict == Conflict::kNone,
                "the converter's capabilities and the TensorView that its to() takes contradict each other: no tensor "
                "meets both");
  constexpr bool kCopiesAnyway = converter<X>::capabilities.result == result_kind::copy;
  constexpr bool kKnown = implies(Known, kNeeds<X>);
  if ((!kCopiesAnyway && o.copy == copy::always) || (!kKnown && find_violation(t, kNeeds<X>) != Violation::kNone))
      [[unlikely]]
    repair_or_throw(t, kCaps<X>, kNeeds<X>, o, may_own || kCopiesAnyway);
}
// The same, and orders before the consumer's stream.
template <class X>
void prepare(Tensor& t, const options& o) {
  validate<X>(t, o);
  order_for_use(t, o);
}

// to() of a converter that makes a view or a copy, of a tensor that has passed validate<X>().
template <class X>
X made_of(Tensor& t, const options& o) {
  if constexpr (kIsView<ToParameter<X>>) return converter<X>::to(ToParameter<X>::unchecked(t), o);
  else return converter<X>::to(t, o);
}

// The token of what from() has described: the caller's stream, what the converter said, or the legacy default stream,
// which every default stream waits for.
inline void set_token(Tensor& t, const options& o) noexcept {
  if (!is_cuda(t.dl.device)) return;
  if (o.sync == sync::none) t.ready = Ordering::ready();
  else if (o.stream) t.ready = Ordering::on_stream(o.stream.handle());
  else if (t.ready.is_ready()) t.ready = Ordering::on_stream(kLegacyStream);
}

inline Tensor finish_from(Tensor&& t, const options& o) {
  set_token(t, o);
  if (o.sync == sync::host) order_for_use(t, o), t.ready = Ordering::ready();
  if (o.copy == copy::always) [[unlikely]]
    return dense_copy(t, o.stream);
  return std::move(t);
}

template <class Kept>
void delete_kept(void* context) noexcept {
  delete static_cast<Kept*>(context);
}

// Moves or copies `x` to the heap, where it stays while the tensor lives, and describes it there.
template <class U, class X>
Tensor keep_and_describe(X&& x, const options& o) {
  if constexpr (requires { converter<U>::owned(x); }) check_described(kCaps<U>, converter<U>::owned(x));
  auto* kept = new U(std::forward<X>(x));
  Owner owner(kept, delete_kept<U>);
  Tensor out;
  if (Status status = converter<U>::describe(*kept, out); !status.ok()) [[unlikely]] {
    if constexpr (std::is_assignable_v<X&&, U&&> && !std::is_lvalue_reference_v<X>) x = std::move(*kept);
    throw_conversion("from", kCaps<U>, status.issue());
  }
  out.owner = std::move(owner);
  return finish_from(std::move(out), o);
}

template <class X>
inline constexpr bool kIsBorrowed = false;
template <class X, class K>
inline constexpr bool kIsBorrowed<Borrowed<X, K>> = true;

template <class X, class K>
Tensor from_borrowed(Borrowed<X, K>&& b, const options& o) {
  using U = std::remove_cvref_t<X>;
  Tensor out;
  check_described(kCaps<U>, converter<U>::describe(b.value, out));
  if constexpr (std::is_const_v<std::remove_reference_t<X>> &&
                converter<U>::capabilities.source == source_kind::container)
    out.flags |= kFlagReadOnly;
  if constexpr (!std::is_same_v<K, unowned_t>) out.owner = Owner(new K(std::move(b.keepalive)), delete_kept<K>);
  return finish_from(std::move(out), o);
}
}  // namespace detail

// Lends the memory behind `x`, an lvalue or a view, as long as `keepalive` (a shared_ptr, a lock, any movable value)
// lives; the tensor takes the keepalive. A const lvalue makes a read-only tensor.
template <class X, class Keep>
auto borrow(X&& x, Keep&& keepalive) {
  using U = std::remove_cvref_t<X>;
  static_assert(sizeof(detail::convertible<U>) > 0);
  static_assert(std::is_lvalue_reference_v<X> || converter<U>::capabilities.source == source_kind::view,
                "borrow(temporary): its memory is gone at the end of the statement. Move it in with from()");
  using Value =
      std::conditional_t<converter<U>::capabilities.source == source_kind::view, std::remove_reference_t<X>, X>;
  return Borrowed<Value, std::decay_t<Keep>>{std::forward<X>(x), std::forward<Keep>(keepalive)};
}

// A tensor that owns, or holds a share of, what `x` owned. Where it throws, a moved-in container is given back.
template <class X>
Tensor from(X&& x, const options& o = {}) {
  using U = std::remove_cvref_t<X>;
  if constexpr (detail::kIsBorrowed<U>) {
    static_assert(!std::is_lvalue_reference_v<X>, "from(borrow(...)) takes the borrow by value");
    return detail::from_borrowed(std::move(x), o);
  } else if constexpr (!detail::convertible<U>::value) {
    return {};
  } else {
    constexpr source_kind kind = converter<U>::capabilities.source;
    static_assert(kind != source_kind::none, "this framework's values cannot be read back: it has no from()");
    static_assert(kind != source_kind::view,
                  "from(view): a view owns nothing, so nothing would keep the memory. Lend it with an owner: "
                  "from(borrow(view, keepalive))");
    static_assert(
        kind != source_kind::container || !std::is_lvalue_reference_v<X>,
        "from(lvalue container): the tensor would not own the memory. Move it in, from(std::move(x)), or lend "
        "it with an owner, from(borrow(x, keepalive))");
    if constexpr (detail::HasFromWithOptions<U>) {
      return detail::finish_from(converter<U>::from(U(std::forward<X>(x)), o), o);
    } else if constexpr (detail::HasFromPlain<U>) {
      return detail::finish_from(converter<U>::from(U(std::forward<X>(x))), o);
    } else {
      return detail::keep_and_describe<U>(std::forward<X>(x), o);
    }
  }
}

// The framework's value over the same memory. It takes the tensor's owner along: a plain X where X can own, a Held<X>
// where it cannot. Where it throws, the tensor is still the caller's, unless the framework consumes on error.
template <class X>
auto to(Tensor&& t, const options& o = {}) {
  static_assert(sizeof(detail::convertible<X>) > 0);
  detail::prepare<X>(t, o);
  if constexpr (detail::ToTakesOwner<X>) {
    return converter<X>::to(std::move(t), o);
  } else if constexpr (converter<X>::capabilities.result == result_kind::copy) {
    X made = detail::made_of<X>(t, o);
    t = Tensor();
    return made;
  } else {
    static_assert(detail::ToTakesView<X>, "this framework cannot take foreign memory: it has no to()");
    X view = detail::made_of<X>(t, o);
    return Held<X>(std::move(t), std::move(view));
  }
}

// The same, with a share of the tensor's owner: the caller keeps the tensor.
template <class X>
auto to(Tensor& t, const options& o = {}) {
  if constexpr (Convertible<X> && converter<X>::capabilities.result == result_kind::copy && detail::ToTakesView<X>) {
    detail::prepare<X>(t, o);
    return detail::made_of<X>(t, o);
  } else {
    return to<X>(t.share(), o);
  }
}
template <class X>
auto to(const Tensor&, const options& = {}) {
  static_assert(!sizeof(X*), "to<X>(const Tensor&): a share of the owner changes the tensor. Pass tensor.share(), "
                             "std::move(tensor), or a TensorView");
}

// A bare view over the memory of a view: the owner stays where it is and must outlive the result.
template <class X, class T, int Rank, class Layout, class Device>
X to(const TensorView<T, Rank, Layout, Device>& v, const options& o = {}) {
  using View = TensorView<T, Rank, Layout, Device>;
  static_assert(sizeof(detail::convertible<X>) > 0);
  constexpr caps kCaps = converter<X>::capabilities;
  constexpr bool kCanWrite = !kCaps.read_only && kCaps.result != result_kind::copy;
  static_assert(kCaps.result != result_kind::owner,
                "to<X>(view): X wants an owner, and a view has none. Pass the Tensor");
  static_assert(!std::is_const_v<T> || !kCanWrite,
                "to<X>(view of const): X could write to the elements. Ask for an X of "
                "const elements, or copy");
  if constexpr (kCaps.result != result_kind::owner) {
    // A view whose type says all that is asked for goes on as it is.
    if constexpr (std::is_convertible_v<const View&, detail::ToParameter<X>> &&
                  implies(View::kRequirement, detail::kNeeds<X>)) {
      if (kCaps.result == result_kind::copy || o.copy != copy::always) [[likely]] {
        order_for_use(v.ready(), v.device(), o);
        return converter<X>::to(v, o);
      }
    }
    Tensor t = v.descriptor();
    detail::validate<X, View::kRequirement>(t, o, false);
    order_for_use(v.ready(), v.device(), o);
    return detail::made_of<X>(t, o);
  }
}

}  // namespace dlbridge
