// An argument between nanobind's question whether it fits and the call: casters of nanobind do not throw, so the reason
// why one does not fit is given afterwards, by whoever can name the function.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "dlbridge/nanobind/place.h"
#include "dlbridge/python/loaded.h"
#include "dlbridge/python/result.h"

namespace dlbridge::detail {

[[gnu::visibility("hidden")]] inline bool is_connected = false;

// False with a Python error set. Each caster's first act: functions may run before the module calls connect().
[[gnu::cold, gnu::noinline]] inline bool connect_now() {
  if (fetch_api() == nullptr) return false;
  ::nanobind::register_exception_translator([](const std::exception_ptr& pending, void*) {
    try {
      std::rethrow_exception(pending);
    } catch (const Error& error) {
      api_table->raise(static_cast<std::uint8_t>(error.code()), error.what_for_caller().c_str());
    }
  });
  return is_connected = true;
}
inline bool connected() { return is_connected || connect_now(); }

class WithGil {
 public:
  WithGil() noexcept : state_(PyGILState_Ensure()) {}
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  ~WithGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

// What is read of an object for a parameter of type X. kHasCapsules: reading may use the object up.
template <class X>
struct Read;
template <class T, Constraint... Constraints>
struct Read<Arg<T, Constraints...>> : Loaded<Arg<T, Constraints...>> {};
template <>
struct Read<Tensor> {
  using Any = Arg<const void, any_device>;

  template <class Place>
  bool load(PyObject* object, bool convert, const Place& place) {
    Loaded<Any> any;
    if (!any.load(object, convert, place)) return false;
    tensor = any.get().tensor();
    return true;
  }
  template <class Place>
  static bool fits(PyObject* capsule, bool convert, const Place& place) {
    return Loaded<Any>::fits(capsule, convert, place);
  }
  Tensor& get() noexcept { return tensor; }

  Tensor tensor;
};
template <>
struct Read<stream_arg> {
  template <class Place>
  bool load(PyObject* object, bool, const Place& place) {
    return load_stream(object, place, stream);
  }
  template <class Place>
  static bool fits(PyObject*, bool, const Place&) noexcept {
    return true;
  }
  stream_arg& get() noexcept { return stream; }

  stream_arg stream;
};

// What the casters of arrays refuse that lie within another's, as that of Arg in std::optional<Arg<…>>: that caster
// tells nobody, so it is asked again once the names are known.
struct RefusedWithin {
  void (*explain)(PyObject*, const NanobindPlace&);  // throws the reason
  ::nanobind::object object;
  std::exception_ptr failure;  // of the object's own code, or the like
};
[[gnu::visibility("hidden")]] inline constinit thread_local std::vector<RefusedWithin>* refused_within = nullptr;

template <class X>
class Pending {
 public:
  // Whether it fits; or, with `convert`, whether it may be told later why it does not.
  bool from_python(PyObject* object, bool convert) noexcept {
    object_ = object;
    convert_ = convert;
    try {
      if (!connected()) NanobindPlace::throw_pending();
      const NanobindPlace quiet{nullptr, 0, true};
      if (PyCapsule_CheckExact(object)) [[unlikely]] {
        state_ = read_.fits(object, convert, quiet) ? State::kCapsule : State::kRefused;
      } else {
        state_ = read_.load(object, convert, quiet) ? State::kTaken : State::kRefused;
      }
    } catch (...) {  // KeyboardInterrupt, MemoryError and the like
      failure_ = std::current_exception();
      state_ = State::kFailed;
    }
    if (state_ != State::kRefused) [[likely]]
      return true;
    if constexpr (requires { X::kOverloaded; }) {
      if (X::kOverloaded) return false;
    }
    if (!convert) refusals().begin(nullptr);
    return convert;
  }

  // Throws where it does not fit. Reads no capsule: that is done once all of the arguments fit.
  void require(const NanobindPlace& place) {
    if (state_ > State::kCapsule) [[unlikely]]
      refuse(place);
  }
  X& get(const NanobindPlace& place) {
    if (state_ != State::kTaken) [[unlikely]] {
      require(place);
      if (state_ == State::kCapsule) read_capsule(place);
    }
    return read_.get();
  }
  // For casters that hold this one and do not throw.
  bool can_get() noexcept {
    try {
      get(NanobindPlace{});
      return true;
    } catch (...) {
      const bool refused = state_ != State::kFailed;
      state_ = State::kFailed;
      failure_ = std::current_exception();
      if (refused_within != nullptr) note(refused ? nullptr : failure_);
      return false;
    }
  }
  const std::exception_ptr& failure() const noexcept { return failure_; }

 private:
  enum class State : std::uint8_t { kTaken, kCapsule, kRefused, kFailed };

  void note(std::exception_ptr failure) const {
    refused_within->push_back({explain, ::nanobind::borrow(object_), std::move(failure)});
  }
  static void explain(PyObject* object, const NanobindPlace& place) {
    Pending again;
    if (again.from_python(object, true)) again.get(place);
  }

  [[gnu::cold, gnu::noinline]] void refuse(const NanobindPlace& place) {
    const WithGil gil;  // a call_guard may have released it
    if (failure_) std::rethrow_exception(failure_);
    const bool fits = !PyCapsule_CheckExact(object_) || read_.fits(object_, convert_, place);
    if (!fits || !read_.load(object_, convert_, place)) throw ::nanobind::next_overload();
    state_ = State::kTaken;  // it has changed its mind
  }
  [[gnu::cold, gnu::noinline]] void read_capsule(const NanobindPlace& place) {
    const WithGil gil;
    if (!read_.load(object_, convert_, place)) throw ::nanobind::next_overload();
    state_ = State::kTaken;
  }

  Read<X> read_;
  PyObject* object_ = nullptr;  // the call's
  std::exception_ptr failure_;
  State state_ = State::kRefused;
  bool convert_ = false;
};

template <class X>
struct is_pending_kind : std::bool_constant<kIsArg<X> || std::is_same_v<X, Tensor> || std::is_same_v<X, stream_arg>> {};
template <class P>
inline constexpr bool kIsPending = is_pending_kind<std::remove_cvref_t<P>>::value;

}  // namespace dlbridge::detail
