// Why an object is no argument: the package is asked, which words it, and so none of that is compiled into extensions.
// What is here depends on no type of argument: it is compiled once for a module.
#pragma once

#include <array>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

#include "dlbridge/python/api.h"
#include "dlbridge/python/refusals.h"

namespace dlbridge::detail {

// An argument's type, for code that is the same for all of them.
struct ArgKind {
  const Requirement* r;
  bool may_convert;
  bool overloaded;
};

constexpr bool conversion_may_help(Violation v) noexcept {
  return v == Violation::kDType || v == Violation::kDevice || copy_repairs(v);
}
[[gnu::cold]] inline c_api::Wanted wanted_of(const Requirement& r) noexcept {
  c_api::Wanted wanted{{0, 0, 0}, 0, 'A'};
  for (const DTypeInfo& d : kDTypes)
    if (r.dtypes == dtypes(d.id)) wanted.dtype = to_dl(d.id);
  if (r.devices != kAnyDevice)
    wanted.device_type = (r.devices & kOnHost) != 0 ? kDLCPU : (r.devices & kOnCuda) != 0 ? kDLCUDA : 0;
  if (r.strides != stride_rule::any) wanted.order = r.strides == stride_rule::f_contig ? 'F' : 'C';
  return wanted;
}

struct Refused {
  std::string why;
  std::int32_t distance = Refusal::kFarthest;
};

// The rule that is broken, and, where `out` is there, what to say of it. `record`: null for a capsule, which is left as
// it is.
[[gnu::cold, gnu::noinline]] inline Violation examine(const ArgKind& kind, PyObject* object,
                                                      const c_api::Record* record, const char* argument = nullptr,
                                                      Refused* out = nullptr) {
  const Requirement& r = *kind.r;
  std::array<DLDataType, kDTypes.size()> dtypes;
  std::int32_t count = 0;
  if (r.dtypes != kAnyDType)
    for (const DTypeInfo& d : kDTypes)
      if ((r.dtypes >> static_cast<unsigned>(d.id) & 1) != 0)
        dtypes[static_cast<std::size_t>(count++)] = {d.code, d.bits, d.lanes};
  const c_api::Rules rules{
      dtypes.data(), count,      r.devices,         r.extents.values,
      r.min_rank,    r.max_rank, r.alignment,       static_cast<std::uint8_t>(r.strides),
      r.writable,    r.distinct, r.element_aligned, kind.may_convert};  // no conversion repairs a shape
  PyObject* why = nullptr;
  const int rule = api_table->examine(object, record, &rules, argument, out != nullptr ? &why : nullptr,
                                      out != nullptr ? &out->distance : nullptr);
  if (rule < 0) {
    PyErr_Clear();
    throw std::bad_alloc();
  }
  if (why != nullptr) out->why = PythonError::utf8(why);
  Py_XDECREF(why);
  return static_cast<Violation>(rule);
}

// The pending error, and what it says where the readers or the producer's own C code have raised it. What Python code
// of the producer's raises is its own affair (it has a traceback), as is what is no plain message.
class [[gnu::visibility("hidden")]] Unreadable {
 public:
  enum class From : std::uint8_t { kReader, kConversion };  // the latter is Python code of the package's
  [[gnu::cold, gnu::noinline]] explicit Unreadable(From from = From::kReader) {
    if (from == From::kReader && error_.has_trace()) return;
    PyObject* arguments = PyObject_GetAttrString(error_.value(), "args");
    PyObject* first = arguments != nullptr && PyTuple_CheckExact(arguments) && PyTuple_Size(arguments) == 1
                          ? PyTuple_GetItem(arguments, 0)
                          : nullptr;
    if (first != nullptr && PyUnicode_CheckExact(first)) reason_ = PythonError::utf8(first);
    Py_XDECREF(arguments);
    PyErr_Clear();
    for (const std::string_view operation : {"asdlpack(): ", "stream: "})
      if (reason_.starts_with(operation)) reason_.erase(0, operation.size());
  }
  // Another overload may be asked, as the object is no fitting array; KeyboardInterrupt, MemoryError and the like end
  // the call.
  bool is_refusal() const { return error_.matches(PyExc_Exception) && !error_.matches(PyExc_MemoryError); }
  [[gnu::cold, gnu::noinline]] std::string text() const { return reason_.empty() ? error_.text() : reason_; }

  template <class Place>
  [[noreturn, gnu::cold]] void raise(const Place& place, const Requirement* r = nullptr) {
    if (is_refusal() && !reason_.empty()) {
      place.throw_if_others_refused(reason_);
      std::string text = place.prefix() + reason_;
      if (r != nullptr && r->writable && error_.matches(PyExc_BufferError))
        text += ". The function writes to it: what it writes to a copy has to be copied back";
      put(text);
    }
    error_.restore();
    Place::throw_pending();
  }

 private:
  [[gnu::cold, gnu::noinline]] void put(const std::string& text) noexcept {
    PyObject* arguments = Py_BuildValue("(s)", text.c_str());
    if (arguments == nullptr || PyObject_SetAttrString(error_.value(), "args", arguments) != 0) PyErr_Clear();
    Py_XDECREF(arguments);
  }

  PythonError error_;
  std::string reason_;
};

[[gnu::cold, gnu::noinline]] inline void set_type_error(const std::string& text) noexcept {
  PyErr_SetString(PyExc_TypeError, text.c_str());
}

template <class Place>
[[noreturn, gnu::cold, gnu::noinline]] void throw_reason(const Place& place, const std::string& reason,
                                                         int distance = Refusal::kFarthest) {
  place.throw_if_others_refused(reason, distance);
  set_type_error(joined({place.prefix(), reason}));
  Place::throw_pending();
}

// These return false where another overload may be asked, and else throw the reason.
//
// An array that does not fit; `record` as for examine().
template <class Place>
[[gnu::cold, gnu::noinline]] bool refuse(const ArgKind& kind, PyObject* object, const c_api::Record* record,
                                         const Place& place) {
  if (place.first_pass || kind.overloaded) return false;
  Refused refused;
  examine(kind, object, record, std::string(place.argument()).c_str(), &refused);
  if (place.another_follows(refused.why, refused.distance)) return false;
  throw_reason(place, refused.why, refused.distance);
}
// What cannot be read: a Python error is set.
template <class Place>
[[gnu::cold, gnu::noinline]] bool refuse_unreadable(const ArgKind& kind, PyObject* object, const Place& place,
                                                    Unreadable::From from = Unreadable::From::kReader) {
  Unreadable error(from);
  if (error.is_refusal()) {
    if (place.first_pass || kind.overloaded || place.another_follows(error.text())) return false;
    if (object == Py_None && place.default_is_none())
      throw_reason(place, "None, its default, is not an array. The function has to take std::optional<Arg<...>>");
  }
  error.raise(place, kind.r);
}
// A capsule that does not fit.
template <class Place>
[[gnu::cold, gnu::noinline]] bool fits(const ArgKind& kind, PyObject* capsule, bool convert, const Place& place) {
  const Violation v = examine(kind, capsule, nullptr);
  if (v == Violation::kNone || (convert && kind.may_convert && conversion_may_help(v))) return true;
  return refuse(kind, capsule, nullptr, place);
}

}  // namespace dlbridge::detail
