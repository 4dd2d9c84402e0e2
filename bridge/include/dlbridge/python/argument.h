// Arg, an array argument of a function that Python calls, and stream_arg.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "dlbridge/check.h"
#include "dlbridge/options.h"
#include "dlbridge/python/refuse.h"
#include "dlbridge/tensor_view.h"

namespace dlbridge {

// Constraints of Arg that are no demands on the array.
//
// A copy is made where the array does not fit: another dtype (by NumPy's "same_kind" rule), another layout, another
// device. Only for const elements: what a function writes into a copy would be lost.
struct may_convert {
  static constexpr void apply(Requirement&) noexcept {}
};
// The function has overloads that take other things: an array that does not fit leaves the choice to pybind11, whose
// error then lists all signatures. Without it the reason is raised at once, by the first overload that is asked twice.
struct overloaded {
  static constexpr void apply(Requirement&) noexcept {}
};

namespace detail {

template <class... Constraints>
inline constexpr bool kAreConstraints = (Constraint<Constraints> && ...);
template <class T, class... Constraints>
inline constexpr Conflict kConflict = Conflict::kNone;
template <class T, Constraint... Constraints>
inline constexpr Conflict kConflict<T, Constraints...> = intersection_of<T, Constraints...>().conflict;
template <class T, class... Constraints>
consteval Requirement requirement_of_argument() {
  if constexpr (kAreConstraints<Constraints...>) return intersection_of<T, Constraints...>().both;
  else return {};
}

template <template <class> class Is, class Default, class... Constraints>
struct first_of {
  using type = Default;
};
template <template <class> class Is, class Default, class C, class... Rest>
struct first_of<Is, Default, C, Rest...>
    : std::conditional_t<Is<C>::value, std::type_identity<C>, first_of<Is, Default, Rest...>> {};
template <class C>
struct is_layout : std::bool_constant<LayoutTag<C>> {};
template <class C>
struct is_device : std::bool_constant<DeviceTag<C>> {};

// std::construct_at(), whose header takes half as long to compile as all of this.
template <class T, class... From>
void make_at(T* place, const From&... from) noexcept {
  ::new (static_cast<void*>(place)) T(from...);
}

// What the reader fills for one array.
template <int Capacity>
struct Reading {
  c_api::Record record;
  std::int64_t dims[2 * Capacity + 1];

  Reading() noexcept {}  // filled by the reader
  Reading(const Reading& other) noexcept : record(other.record) {
    if (record.dl.shape != other.dims) return;
    std::memcpy(dims, other.dims, sizeof dims);
    record.dl.shape = dims;
    record.dl.strides = dims + Capacity;
  }
  Reading& operator=(const Reading&) = delete;
};

// What an argument of any rank keeps: the reading as it is, for nothing is copied twice. Extents lie here, where the
// reader has written them, or with the holder.
class AnyRank {
 public:
  using Space = Reading<kInlineDims>;

  AnyRank() noexcept {}  // space() may be written to; adopt() does the rest
  AnyRank(const AnyRank& other) noexcept {
    const c_api::Record& from = other.space_.record;
    c_api::Record& to = space_.record;
    to.dl.data = alone(from.dl.data);
    to.dl.device = from.dl.device;
    to.dl.ndim = alone(from.dl.ndim);
    to.dl.dtype = from.dl.dtype;
    to.dl.shape = alone(from.dl.shape);
    to.dl.strides = alone(from.dl.strides);
    to.dl.byte_offset = alone(from.dl.byte_offset);
    to.flags = alone(from.flags);
    to.size = alone(from.size);
    to.ready_handle = alone(from.ready_handle);
    to.ready_kind = alone(from.ready_kind);
    if (to.dl.shape != nullptr) return;
    for (std::int32_t i = 0; i < to.dl.ndim; ++i) {
      space_.dims[i] = alone(other.space_.dims[i]);
      space_.dims[kInlineDims + i] = alone(other.space_.dims[kInlineDims + i]);
    }
  }
  AnyRank& operator=(const AnyRank&) = delete;

  Space& space() noexcept { return space_; }
  void adopt() noexcept {
    DLTensor& dl = space_.record.dl;
    if (dl.shape == space_.dims) dl.shape = nullptr;  // here, wherever this is moved to
  }
  DLDevice device() const noexcept { return space_.record.dl.device; }
  Ordering ready() const noexcept { return ready_of(space_.record); }

  // Points `t` at this: it owns nothing, and this must stay where it is while `t` is used.
  void describe(Tensor& t) const noexcept {
    point_at_record(t, space_.record, *find_dtype(space_.record.dl.dtype));
    if (t.dl.shape != nullptr) return;
    t.dl.shape = const_cast<std::int64_t*>(space_.dims);
    t.dl.strides = t.dl.shape + kInlineDims;
  }
  Tensor descriptor() const {
    Tensor seen;
    describe(seen);
    return alias_of(seen);
  }

 private:
  Space space_;
};

template <class T, int Rank, class Layout, class Device>
struct kept_of {
  using type = TensorView<T, Rank, Layout, Device>;
};
template <class T, int Rank, class Layout, class Device>
  requires(std::is_void_v<T> || kIsAnyOf<T> || Rank == dyn)
struct kept_of<T, Rank, Layout, Device> {
  using type = AnyRank;
};

}  // namespace detail

namespace detail {
struct Visit;  // visit.h
template <class A>
class Loaded;  // what the casters of a binding library hold
template <class A>
struct Handed;
}  // namespace detail

// The stream that the thread's work on a CUDA device goes to, as dlbridge's Python side knows it.
inline stream_ref current_stream(std::int32_t device_id) {
  return stream_ref::from_handle(detail::api().current_stream(device_id));
}

// An argument `stream=`: None (the legacy default stream), a handle as int, or an object with __cuda_stream__.
class stream_arg {
 public:
  constexpr stream_arg() noexcept = default;
  constexpr stream_arg(stream_ref stream) noexcept : handle_(stream ? stream.handle() : kLegacyStream) {}
  // Never 0; what cudaStream_t and CUstream take, cast to a pointer.
  constexpr StreamHandle handle() const noexcept { return handle_; }
  constexpr operator stream_ref() const noexcept { return stream_ref::from_handle(handle_); }

 private:
  StreamHandle handle_ = kLegacyStream;
};

// An array argument: any framework's array that meets the constraints, without a copy. T is the element type; const T
// takes read-only arrays, T asks for writable memory, const void takes any dtype, any_of<float, double> one of these.
// Constraints: shape<…> or rank<…>, c_contig or f_contig, on_host (where no device is named), on_cpu, on_cuda,
// any_device, aligned<…>, writable, may_convert, overloaded, and types of your own with apply(Requirement&).
//
// Move-only; keeps the memory alive as long as it lives, on any thread, with the GIL or without.
template <class T, class... Constraints>
class Arg {
  static_assert(sizeof(detail::element<T>) > 0);
  static_assert(detail::kAreConstraints<Constraints...>,
                "Arg<T, ...> takes constraints behind T: c_contig, f_contig, shape<...>, rank<...>, on_cpu, on_cuda, "
                "any_device, may_convert, ..., or a type of yours with static constexpr void apply(Requirement&)");

 public:
  using Layout = typename detail::first_of<detail::is_layout, any_layout, Constraints...>::type;
  using Device = typename detail::first_of<detail::is_device, on_host, Constraints...>::type;
  static_assert(detail::agreeing<detail::kConflict<T, Device, Constraints...>, T, Constraints...>::value);
  static constexpr Requirement kRequirement = detail::requirement_of_argument<T, Device, Constraints...>();
  static constexpr int kRank =
      kRequirement.min_rank == kRequirement.max_rank ? static_cast<int>(kRequirement.max_rank) : static_cast<int>(dyn);
  static constexpr bool kMayConvert = (std::is_same_v<Constraints, may_convert> || ...);
  static constexpr bool kOverloaded = (std::is_same_v<Constraints, overloaded> || ...);
  static_assert(!kMayConvert || !kRequirement.writable,
                "a writable argument is never converted: what is written to a copy is lost. Take const elements");

  // There is no Arg without an array.
  template <class Never = void>
  Arg() {
    static_assert(!sizeof(Never*), "an Arg is made of an argument, and never empty. An array or struct of Args holds "
                                   "std::optional<Arg<...>>");
  }
  Arg(Arg&& other) noexcept : Arg(std::move(other), false) {}
  ~Arg() {
    if (ends_with_gil_) {
      holder_.reset_with_gil();
      given_.reset_with_gil();
    } else {
      detail::Reference::reset(holder_, given_);
    }
  }
  Arg& operator=(Arg&& other) noexcept {
    holder_ = std::move(other.holder_);
    given_ = std::move(other.given_);
    flags_ = other.flags_;
    converted_ = other.converted_;
    keep(other.kept_);
    return *this;
  }

  // The elements. Host memory is ready. The argument must outlive the view, and with a rank that is known at run time
  // only it must stay where it is. A temporary gives no view.
  auto view() const& noexcept {
    static_assert(Device::kHost, "device memory may still be written to by its producer: name the stream that you use "
                                 "it on, view(stream), which is made to wait");
    return make_view();
  }
  // The same, ready for work that is queued on `stream` later. Throws Error. Needs no GIL.
  auto view(stream_ref stream) const& {
    order(stream);
    return make_view();
  }
  template <class Never = void>
  void view(stream_ref = {}) const&& {
    static_assert(!sizeof(Never*), "a temporary gives no view, as nobody would keep the memory. Keep the argument in a "
                                   "variable");
  }

  // A tensor of the same memory, which may outlive the call. Takes the GIL for a moment where it is not held.
  Tensor tensor() const {
    Tensor t = kept_.descriptor();
    t.flags = flags_;
    t.owner = holder_.share();
    return t;
  }

  DLDevice device() const noexcept { return kept_.device(); }
  Ordering ready() const noexcept { return kept_.ready(); }
  bool readonly() const noexcept { return (flags_ & kFlagReadOnly) != 0; }

  // Makes `stream` wait for the data. Throws Error.
  void order(stream_ref stream) const {
    const Ordering ready = kept_.ready();
    if (ready.is_ready()) return;
    char reason[512];
    if (detail::api_table->order(kept_.device(), static_cast<std::uint8_t>(ready.kind), ready.handle, stream.handle(),
                                 reason, sizeof reason) != 0)
      throw Error(ErrorCode::kCuda, std::string("view(stream): ") + reason);
  }

 private:
  template <class>
  friend class detail::Loaded;
  template <class>
  friend struct detail::Handed;
  friend class Result;
  friend struct detail::Visit;

  explicit Arg(std::nullptr_t) noexcept : ends_with_gil_(true) {}  // Loaded's; load() makes it one
  Arg(Arg&& other, bool ends_with_gil) noexcept
      : holder_(std::move(other.holder_)),
        flags_(other.flags_),
        given_(std::move(other.given_)),
        converted_(other.converted_),
        ends_with_gil_(ends_with_gil) {
    keep(other.kept_);
  }

  static constexpr bool kTyped = !std::is_void_v<T> && !detail::kIsAnyOf<T>;
  static constexpr detail::ArgKind kKind{&kRequirement, kMayConvert, kOverloaded};
  using Kept = typename detail::kept_of<T, kRank, Layout, Device>::type;
  static_assert(std::is_nothrow_copy_constructible_v<Kept> && std::is_trivially_destructible_v<Kept>);
  static constexpr bool kAnyRank = std::is_same_v<Kept, detail::AnyRank>;
  static constexpr int kCapacity = kAnyRank ? kInlineDims : kRank <= kInlineDims ? kRank : 0;

  // For any rank the reader writes to where it stays.
  using Reading = detail::Reading<kCapacity>;
  auto& space([[maybe_unused]] Reading& local) noexcept {
    if constexpr (kAnyRank) return kept_.space();
    else return local;
  }

  enum class Outcome : std::uint8_t { kTaken, kUnreadable, kUnfit };  // kUnreadable: a Python error is set

  // The caster's. False: this is no fitting array, and the binding library may look for another overload. `convert`:
  // may_convert is heard. `Place`: what is known of the argument, and how a Python error is thrown.
  template <class Place>
  bool load(PyObject* object, bool convert, const Place& place) {
    Reading local;
    const Outcome outcome = take(object, local);
    if (outcome == Outcome::kTaken) [[likely]] {
      remember(object);
      return true;
    }
    return recover(object, convert, place, outcome, space(local));
  }
  // For results that are to be like it. A NumPy array is its own holder, and a capsule has nothing more to give.
  void remember(PyObject* object) noexcept {
    if (object != holder_.get() && !PyCapsule_CheckExact(object)) given_ = detail::Reference(Py_NewRef(object));
  }
  // What Python gave, or what was read of it. Borrowed.
  PyObject* given() const noexcept { return given_.get() != nullptr ? given_.get() : holder_.get(); }

  // Reads `object`. kUnfit: it stays held, and space(local) describes it.
  Outcome take(PyObject* object, Reading& local) {
    if constexpr (kAnyRank) detail::make_at(&kept_);
    auto& [record, dims] = space(local);
    if (detail::api_table->read(object, &record, dims, kCapacity) != 0) [[unlikely]]
      return Outcome::kUnreadable;
    holder_ = detail::Reference(record.holder);
    const DTypeInfo* row = nullptr;
    if constexpr (kTyped) {
      constexpr DType kDType = dtype_of_v<T>;
      if (!same_dtype(record.dl.dtype, to_dl(kDType))) [[unlikely]]
        return Outcome::kUnfit;
      row = &info(kDType);
    } else {
      row = &detail::known_dtype(record.dl.dtype);
    }
    if (find_violation(record.dl, *row, record.flags, kRequirement) != Violation::kNone) [[unlikely]]
      return Outcome::kUnfit;
    flags_ = record.flags;
    if constexpr (kAnyRank) kept_.adopt();
    else detail::make_at(&kept_, Kept::unchecked(record.dl, detail::ready_of(record)));
    return Outcome::kTaken;
  }

  // After a failed take(): a conversion where that is allowed, else the reason, or false.
  template <class Place>
  [[gnu::cold, gnu::noinline]] bool recover(PyObject* object, bool convert, const Place& place, Outcome outcome,
                                            const Reading& reading) {
    const detail::Reference read = std::move(holder_);
    const c_api::Record* record = outcome == Outcome::kUnfit ? &reading.record : nullptr;
    if constexpr (kMayConvert) {
      // A copy may be of the native byte order, and aligned. A capsule cannot be read twice.
      const bool may_help = record != nullptr
                                ? detail::conversion_may_help(detail::examine(kKind, object, record))
                                : PyErr_ExceptionMatches(PyExc_BufferError) != 0 && !PyCapsule_CheckExact(object);
      if (convert && may_help) {
        if (record == nullptr) PyErr_Clear();
        // What was read, not `object`: a capsule has nothing more to give.
        return take_converted(record != nullptr ? read.get() : object, object, record != nullptr ? &reading : nullptr,
                              place);
      }
    }
    return record != nullptr ? detail::refuse(kKind, object, record, place)
                             : detail::refuse_unreadable(kKind, object, place);
  }

  // `given`: what `object` is as it stands; null where it cannot be read as it stands.
  template <class Place>
  bool take_converted(PyObject* source, PyObject* object, const Reading* given, const Place& place) {
    const Reading seen = given != nullptr ? *given : Reading();
    const c_api::Wanted wanted = detail::wanted_of(kRequirement);
    const detail::Reference converted(detail::api_table->adapt(source, &wanted));
    Reading local;
    const Outcome outcome = converted.get() == nullptr ? Outcome::kUnreadable : take(converted.get(), local);
    if (outcome == Outcome::kTaken) {
      remember(object);
      converted_ = true;
      return true;
    }
    if (outcome == Outcome::kUnreadable)
      return detail::refuse_unreadable(kKind, object, place, detail::Unreadable::From::kConversion);
    const detail::Reference made = std::move(holder_);
    return detail::refuse(kKind, object, given != nullptr ? &seen.record : &space(local).record, place);
  }

  // A copy, extent by extent (alone()).
  void keep(const Kept& other) noexcept {
    if constexpr (kAnyRank) {
      detail::make_at(&kept_, other);
    } else {
      const auto& dims = other.dims();
      const DLTensor dl{const_cast<void*>(static_cast<const void*>(other.data())),
                        other.device(),
                        kRank,
                        {},
                        const_cast<std::int64_t*>(dims.extents),
                        const_cast<std::int64_t*>(dims.stride_elems),
                        0};
      detail::make_at(&kept_, Kept::unchecked(dl, other.ready()));
    }
  }

  auto make_view() const noexcept {
    static_assert(!detail::kIsAnyOf<T>, "one of several dtypes: visit(a, [](auto view) { ... }) gives the view of the "
                                        "one that it is of");
    static_assert(kTyped || detail::kIsAnyOf<T>,
                  "any dtype: an Arg<void> has no elements to view. Keep the tensor, Tensor t = a.tensor(), "
                  "and ask it for those of one type: t.view<const float, 2>()");
    if constexpr (!kTyped) {
      return;
    } else if constexpr (kAnyRank) {
      Tensor t;
      kept_.describe(t);
      return TensorView<T, dyn, Layout, Device>::unchecked(t);
    } else {
      return kept_;
    }
  }

  // Apart, or compilers move the two references by one vector, which has to wait for what was stored in halves.
  detail::Reference holder_;
  std::uint64_t flags_ = 0;
  detail::Reference given_;  // what Python gave, where that is another object
  bool converted_ = false;
  bool ends_with_gil_;  // of this object, wherever its array goes: a parameter of a function that holds the GIL
  union {
    Kept kept_;  // set by take()
  };
};

}  // namespace dlbridge
