// Arrays within the standard's templates: std::optional<Arg<...>>, std::vector<Arg<...>>, std::variant<...>.
#pragma once

#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include "dlbridge/nanobind/pending.h"

namespace dlbridge::detail {

// A parameter of type X, a template of arrays: nanobind's caster of X loads it, and why it could not is told when the
// names are known.
template <class X>
class Within {
 public:
  bool from_python(::nanobind::handle source, std::uint32_t flags, ::nanobind::detail::cleanup_list* cleanup) noexcept {
    std::vector<RefusedWithin>* const outer = std::exchange(refused_within, &refused_);
    refused_.clear();
    taken_ = caster_.from_python(source, flags, cleanup) && caster_.template can_cast<X>();
    refused_within = outer;
    return taken_ || !refused_.empty();
  }

  // Throws where it was not taken.
  void require(const NanobindPlace& place) {
    if (!taken_) [[unlikely]]
      refuse(place);
  }
  template <class A>
  decltype(auto) get() {
    return caster_.operator ::nanobind::detail::cast_t<A>();
  }

 private:
  [[noreturn, gnu::cold, gnu::noinline]] void refuse(const NanobindPlace& place) {
    const WithGil gil;  // a call_guard may have released it
    Alternatives alternatives;
    NanobindPlace asked = place;
    asked.alternatives = &alternatives;
    for (const RefusedWithin& one : refused_) {
      if (one.failure) std::rethrow_exception(one.failure);
      try {
        one.explain(one.object.ptr(), asked);
      } catch (const ::nanobind::builtin_exception& error) {
        if (error.type() != ::nanobind::exception_type::next_overload) throw;  // else it has said why
      }
    }
    if (alternatives.all.size() == 1) refused_.front().explain(refused_.front().object.ptr(), place);
    if (alternatives.all.size() < 2 || place.another_follows(alternatives.text())) throw ::nanobind::next_overload();
    place.throw_if_others_refused(alternatives.text());
    throw ::nanobind::type_error(joined({place.prefix(), alternatives.text()}).c_str());
  }

  ::nanobind::detail::make_caster<X> caster_;
  std::vector<RefusedWithin> refused_;
  bool taken_ = false;
};

template <class A>
inline constexpr bool kHoldsArrays = kIsOurs<std::remove_cvref_t<A>> && !kIsPending<A>;

}  // namespace dlbridge::detail

namespace nanobind::detail {

template <class X>
struct type_caster<dlbridge::detail::Within<X>> {
  using Within = dlbridge::detail::Within<X>;
  static constexpr auto Name = make_caster<X>::Name;
  template <class U>
  using Cast = Within&;

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    return within_.from_python(source, flags, cleanup);
  }
  template <class U>
  static constexpr bool can_cast() noexcept {
    return true;
  }
  operator Within&() noexcept { return within_; }  // NOLINT(google-explicit-constructor)

 private:
  Within within_;
};

template <class X>
struct has_arg_defaults<dlbridge::detail::Within<X>> : has_arg_defaults<X> {};

// A std::variant that begins with an Arg, of which none is empty, whatever the traits of the standard say.
template <bool HasDefault, class... Ts>
struct variant_caster_storage;  // nanobind/stl/variant.h
template <class T, dlbridge::Constraint... Constraints, class... Rest>
struct variant_caster_storage<true, dlbridge::Arg<T, Constraints...>, Rest...>
    : variant_caster_storage<false, dlbridge::Arg<T, Constraints...>, Rest...> {};

}  // namespace nanobind::detail
