// Loads the arguments of functions that take arrays: for def()'s own way to call, and, in place of pybind11's
// argument_loader, for whatever pybind11 calls (members, constructors, overloads, lambdas with captures, *args).
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "dlbridge/pybind11/place.h"
#include "dlbridge/python/loaded.h"

namespace dlbridge::detail {

template <class T>
inline constexpr bool kReadsArrays = kIsOurs<T> && !std::is_same_v<T, stream_arg>;

// A std::variant, or what holds one: std::vector<std::variant<...>>. Known by what it alone has, for <variant> is
// included by those who use it.
template <class T>
inline constexpr bool kHasAlternatives = requires(const T& v) { v.valueless_by_exception(); };
template <template <class...> class Of, class... Ts>
inline constexpr bool kHasAlternatives<Of<Ts...>> =
    requires(const Of<Ts...>& v) { v.valueless_by_exception(); } || (kHasAlternatives<pyd::intrinsic_t<Ts>> || ...);

// One alternative after the other is asked, so none of them may raise its reason at once. What none of them takes is
// asked again for all reasons; one that is all alike is raised as it is, with its class.
template <class Caster>
bool load_alternatives(Caster& caster, PyObject* value, bool convert, const Place& place) {
  {
    const Place quiet{place.function, place.index, true};
    const Loading scope(quiet);
    if (caster.load(value, convert)) return true;
  }
  if (place.first_pass) return false;
  Alternatives alternatives;
  Place asked = place;
  asked.alternatives = &alternatives;
  {
    const Loading scope(asked);
    if (caster.load(value, convert)) return true;
  }
  if (alternatives.all.size() == 1) {
    const Loading scope(place);
    return caster.load(value, convert);
  }
  if (alternatives.all.empty() || place.another_follows(alternatives.text())) return false;
  place.throw_if_others_refused(alternatives.text());
  throw ::pybind11::type_error(joined({place.prefix(), alternatives.text()}));
}

// What is read of a capsule cannot be given back, so capsules come last, and only when all of them fit.
enum class Step : std::uint8_t { kOthers, kArrays, kCapsulesFit, kCapsules };

template <std::size_t I, class Argument, Step step, class Caster, class Given>
bool load_argument(const pyd::function_record& function, Caster& caster, const Given& given,
                   [[maybe_unused]] bool& capsules) {
  using T = pyd::intrinsic_t<Argument>;
  constexpr bool kArray = kReadsArrays<T>;
  if constexpr (kArray != (step != Step::kOthers)) {
    return true;
  } else {
    PyObject* value = given.value(I);
    const bool convert = given.convert(I);
    if constexpr (kArray) {
      const bool capsule = PyCapsule_CheckExact(value);
      if (capsule != (step != Step::kArrays)) [[unlikely]] {
        capsules |= capsule;
        return true;
      }
    }
    if constexpr (std::is_arithmetic_v<T>) {
      return caster.load(value, convert);
    } else {
      const Place place{&function, I, given.first_pass()};
      if constexpr (step == Step::kCapsulesFit) {
        if constexpr (requires { caster.fits(value, convert, place); }) return caster.fits(value, convert, place);
        else return true;
      } else if constexpr (requires { caster.load(value, convert, place); }) {
        return caster.load(value, convert, place);
      } else if constexpr (kHasAlternatives<T>) {
        return load_alternatives(caster, value, convert, place);
      } else {
        const Loading scope(place);
        return caster.load(value, convert);
      }
    }
  }
}

// `Given`: value(i), convert(i), first_pass().
template <class... Args, class Casters, class Given, std::size_t... I>
bool load_arguments(const pyd::function_record& function, Casters& casters, const Given& given,
                    std::index_sequence<I...>) {
  bool capsules = false;
  const auto step = [&]<Step kStep>(std::integral_constant<Step, kStep>) {
    return (load_argument<I, Args, kStep>(function, std::get<I>(casters), given, capsules) && ...);
  };
  return step(std::integral_constant<Step, Step::kOthers>()) && step(std::integral_constant<Step, Step::kArrays>()) &&
         (!capsules || (step(std::integral_constant<Step, Step::kCapsulesFit>()) &&
                        step(std::integral_constant<Step, Step::kCapsules>())));
}

// The arguments of a call that pybind11 has sorted.
struct [[gnu::visibility("hidden")]] GivenToPybind11 {
  const pyd::function_call& call;
  PyObject* value(std::size_t i) const { return call.args[i].ptr(); }
  bool convert(std::size_t i) const { return call.args_convert[i]; }
  // Not by the flag of one argument: behind *args pybind11 gives them to the wrong ones.
  bool first_pass() const {
    for (std::size_t i = 0; i < call.func.nargs; ++i)
      if (convert(i)) return false;
    return true;
  }
};

// Stands for any type whose place in a signature means nothing to pybind11.
template <class T>
using PositionOf = std::conditional_t<
    std::is_base_of_v<::pybind11::args, pyd::intrinsic_t<T>>, ::pybind11::args,
    std::conditional_t<std::is_base_of_v<::pybind11::kwargs, pyd::intrinsic_t<T>>, ::pybind11::kwargs, int>>;

}  // namespace dlbridge::detail

namespace pybind11::detail {

// pybind11's own gives a caster the object alone. This one knows what is loaded, so that errors can name it.
template <class... Args>
  requires(dlbridge::detail::kIsOurs<intrinsic_t<Args>> || ...)
class argument_loader<Args...> {
  using Positions = argument_loader<dlbridge::detail::PositionOf<Args>...>;
  using Indices = std::index_sequence_for<Args...>;

 public:
  static constexpr bool has_kwargs = Positions::has_kwargs;
  static constexpr int args_pos = Positions::args_pos;
  static constexpr auto arg_names = ::pybind11::detail::concat(type_descr(make_caster<Args>::name)...);

  bool load_args(function_call& call) {
    const dlbridge::detail::GivenToPybind11 given{call};
    if (dlbridge::detail::load_arguments<Args...>(call.func, casters_, given, Indices{})) return true;
    if (given.first_pass()) dlbridge::detail::note_first_pass(call.func);
    return false;
  }

  template <class Return, class Guard, class Function>
  auto call(Function&& function) && -> std::conditional_t<std::is_void_v<Return>, void_type, remove_cv_t<Return>> {
    return std::move(*this).template invoke<Return>(std::forward<Function>(function), Indices{}, Guard{});
  }

 private:
  template <class Return, class Function, std::size_t... I, class Guard>
  auto invoke(Function&& function, std::index_sequence<I...>,
              Guard&&) && -> std::conditional_t<std::is_void_v<Return>, void_type, remove_cv_t<Return>> {
    if constexpr (std::is_void_v<Return>) {
      std::forward<Function>(function)(cast_op<Args>(std::move(std::get<I>(casters_)))...);
      return {};
    } else {
      return std::forward<Function>(function)(cast_op<Args>(std::move(std::get<I>(casters_)))...);
    }
  }

  std::tuple<make_caster<Args>...> casters_;
};

}  // namespace pybind11::detail
