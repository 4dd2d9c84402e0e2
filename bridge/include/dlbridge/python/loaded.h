// An argument as a binding library's casters hold it: made before there is an array, and dropped with the GIL held.
#pragma once

#include <cstdint>
#include <type_traits>

#include "dlbridge/python/argument.h"

namespace dlbridge::detail {

template <class A>
class Loaded {
 public:
  Loaded() noexcept : value_(nullptr) {}
  Loaded(Loaded&& other) noexcept : value_(std::move(other.value_), true) {}
  Loaded& operator=(Loaded&&) = default;

  // False: this is no fitting array, and another overload may be asked. The table is known.
  template <class Place>
  bool load(PyObject* object, bool convert, const Place& place) {
    return value_.load(object, convert, place);
  }
  // What load() would say of a capsule, which is good for one reading, and is left as it is.
  template <class Place>
  static bool fits(PyObject* capsule, bool convert, const Place& place) {
    return detail::fits(A::kKind, capsule, convert, place);
  }
  A& get() noexcept { return value_; }

 private:
  A value_;
};

// Becomes a parameter of a function that is called, and that returns, with the GIL held.
template <class A>
struct Handed {
  A& value;
  operator A() && noexcept { return A(std::move(value), true); }
};

// An argument `stream=`. False: no stream, and another overload may be asked. The table is known.
template <class Place>
bool load_stream(PyObject* object, const Place& place, stream_arg& out) {
  std::intptr_t handle = 0;
  if (api_table->parse_stream(object, &handle) != 0) [[unlikely]] {
    Unreadable error;
    if (error.is_refusal() && (place.first_pass || place.another_follows(error.text()))) return false;
    error.raise(place);
  }
  if (handle == -1) [[unlikely]] {  // dlbridge 0.1 leaves that to the extension
    if (place.first_pass) return false;
    PyErr_SetString(PyExc_ValueError, (place.prefix() + "stream -1 names no stream to work on. Give None, a CUDA "
                                                        "stream handle as int, or an object with __cuda_stream__")
                                          .c_str());
    Place::throw_pending();
  }
  out = stream_ref::from_handle(static_cast<StreamHandle>(handle));
  return true;
}

template <class T>
struct is_arg : std::false_type {};
template <class T, class... Constraints>
struct is_arg<Arg<T, Constraints...>> : std::true_type {};
template <class T>
inline constexpr bool kIsArg = is_arg<std::remove_cvref_t<T>>::value;

// An Arg, a Tensor, a stream_arg, or a template of one: std::optional<Arg<…>>. Of types without references.
template <class T>
inline constexpr bool kIsOurs = false;
template <class T, class... Constraints>
inline constexpr bool kIsOurs<Arg<T, Constraints...>> = true;
template <>
inline constexpr bool kIsOurs<Tensor> = true;
template <>
inline constexpr bool kIsOurs<stream_arg> = true;
template <template <class...> class Of, class... Ts>
inline constexpr bool kIsOurs<Of<Ts...>> = (kIsOurs<std::remove_cvref_t<std::remove_pointer_t<Ts>>> || ...);

}  // namespace dlbridge::detail
