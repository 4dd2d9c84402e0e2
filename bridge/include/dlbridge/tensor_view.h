// TensorView: a typed window on a tensor that was checked once. Cheap to copy, owns nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <type_traits>

#include "dlbridge/check.h"
#include "dlbridge/exception.h"
#include "dlbridge/half.h"
#include "dlbridge/strided_iterator.h"
#include "dlbridge/tensor.h"

// Views are passed to CUDA kernels by value: inside a translation unit of nvcc their accessors are for both sides.
#if defined(__CUDACC__)
#define DLBRIDGE_HOST_DEVICE __host__ __device__
#else
#define DLBRIDGE_HOST_DEVICE
#endif

// Whether v(i, j) of host code looks at its indices, and ends the process where one lies outside: in builds without
// optimisation and without NDEBUG, and where it is set to 1.
#if !defined(DLBRIDGE_CHECK_BOUNDS)
#if defined(NDEBUG) || defined(__OPTIMIZE__)
#define DLBRIDGE_CHECK_BOUNDS 0
#else
#define DLBRIDGE_CHECK_BOUNDS 1
#endif
#endif

namespace dlbridge {

namespace detail {
// Extents and strides in the view itself, or, with a rank that is known at run time only, those of the tensor.
template <int Rank>
struct ViewDims {
  static_assert(Rank >= 0 && Rank <= kMaxDims, "a rank is between 0 and 64, or dyn");
  static constexpr std::size_t kCount = Rank == 0 ? 1 : static_cast<std::size_t>(Rank);
  std::int64_t extents[kCount];
  std::int64_t stride_elems[kCount];

  ViewDims() noexcept : extents{}, stride_elems{} {}  // of an iterator that is of no view yet
  explicit ViewDims(const DLTensor& t) noexcept : extents{}, stride_elems{} {
    for (std::size_t i = 0; i < static_cast<std::size_t>(Rank); ++i) {
      extents[i] = alone(t.shape[i]);
      stride_elems[i] = alone(t.strides[i]);
    }
  }
  DLBRIDGE_HOST_DEVICE static constexpr std::int32_t rank() noexcept { return Rank; }
};
template <>
struct ViewDims<dyn> {
  static constexpr std::size_t kCount = kMaxDims;
  std::int32_t ndim;
  const std::int64_t* extents;
  const std::int64_t* stride_elems;

  ViewDims() noexcept : ndim(0), extents(nullptr), stride_elems(nullptr) {}
  explicit ViewDims(const DLTensor& t) noexcept : ndim(t.ndim), extents(t.shape), stride_elems(t.strides) {}
  DLBRIDGE_HOST_DEVICE constexpr std::int32_t rank() const noexcept { return ndim; }
};

// The extents or strides of a view that is about to go.
template <int Rank>
auto kept_dims(const std::int64_t* dims, std::size_t count) noexcept {
  if constexpr (Rank == dyn) {
    return std::span<const std::int64_t>(dims, count);  // the tensor's
  } else {
    std::array<std::int64_t, static_cast<std::size_t>(Rank)> kept{};
    for (std::size_t i = 0; i < count; ++i) kept[i] = dims[i];
    return kept;
  }
}

template <class Layout, class To>
inline constexpr bool kLayoutWidens = std::is_same_v<Layout, To> || std::is_same_v<To, any_layout>;
template <class Device, class To>
inline constexpr bool kDeviceWidens = (Device::kSet & ~To::kSet) == 0;
}  // namespace detail

// `T` is the element type: const T for reading, T for writing (never of a read-only tensor, nor of one in which two
// indices reach one element). `Rank` may be dyn: then the view reads the extents of the tensor, which must stay where
// it is. The tensor, or whoever owns the memory, must outlive the view. Device data is ready on the tensor's ordering
// token, see ready(): a view orders nothing by itself.
template <class T, int Rank, class Layout = any_layout, class Device = on_host>
class TensorView {
  static_assert(LayoutTag<Layout>, "Layout is any_layout, c_contig or f_contig");
  static_assert(DeviceTag<Device>, "Device is on_cpu, on_host, on_cuda or any_device");
  static_assert(sizeof(detail::element<T>) > 0);
  static_assert(!detail::kIsAnyOf<T>,
                "a view is of one element type: any_of<...> is for Arg, and visit(a, [](auto view) "
                "{ ... }) gives the view of the one that the array is of");
  static_assert(!std::is_void_v<T>, "a view has elements, and void is no type of any: name it, or take a Tensor, which "
                                    "is of any dtype");

 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using reference = std::add_lvalue_reference_t<T>;
  static constexpr Requirement kRequirement = requirement_of<T, dlbridge::rank<Rank>, Layout, Device>();

  // Checks; throws Error. Implicit, so that a function may take a view and be called with a tensor.
  TensorView(Tensor& t) : TensorView(checked(t).dl, t.ready) {}  // NOLINT(google-explicit-constructor)
  TensorView(const Tensor& t)                                    // NOLINT(google-explicit-constructor)
    requires std::is_const_v<T>
      : TensorView(checked(t).dl, t.ready) {}
  TensorView(const Tensor&&) = delete;  // the memory would be freed before the view is used
  TensorView(Tensor&&) = delete;

  // From a view that promises as much or more.
  template <class U, class L, class D>
    requires(std::is_same_v<U, std::remove_const_t<T>> || std::is_same_v<U, T>) && detail::kLayoutWidens<L, Layout> &&
                detail::kDeviceWidens<D, Device>
  TensorView(const TensorView<U, Rank, L, D>& other) noexcept  // NOLINT(google-explicit-constructor)
      : data_(other.data()), dims_(other.dims()), device_(other.device()), ready_(other.ready()) {}

  // For whoever has checked already: `t` meets kRequirement.
  static TensorView unchecked(const Tensor& t) noexcept { return TensorView(t.dl, t.ready); }
  static TensorView unchecked(const DLTensor& t, Ordering ready) noexcept { return TensorView(t, ready); }
  static TensorView unchecked(const Tensor&&) = delete;

  DLBRIDGE_HOST_DEVICE T* data() const noexcept { return data_; }
  DLBRIDGE_HOST_DEVICE constexpr std::int32_t rank() const noexcept { return dims_.rank(); }
  DLBRIDGE_HOST_DEVICE std::int64_t extent(std::int32_t axis) const noexcept { return dims_.extents[axis]; }
  // In elements.
  DLBRIDGE_HOST_DEVICE std::int64_t stride(std::int32_t axis) const noexcept { return dims_.stride_elems[axis]; }
  std::span<const std::int64_t> extents() const& noexcept { return {dims_.extents, count()}; }
  std::span<const std::int64_t> strides() const& noexcept { return {dims_.stride_elems, count()}; }
  // Of a view that is a temporary: by value, for with a fixed rank they lie in the view.
  auto extents() const&& noexcept { return detail::kept_dims<Rank>(dims_.extents, count()); }
  auto strides() const&& noexcept { return detail::kept_dims<Rank>(dims_.stride_elems, count()); }
  DLBRIDGE_HOST_DEVICE std::int64_t size() const noexcept {
    std::int64_t n = 1;
    for (std::int32_t i = 0; i < rank(); ++i) n *= dims_.extents[i];
    return n;
  }
  DLBRIDGE_HOST_DEVICE bool empty() const noexcept { return size() == 0; }
  DLDevice device() const noexcept { return device_; }
  Ordering ready() const noexcept { return ready_; }
  const detail::ViewDims<Rank>& dims() const& noexcept { return dims_; }
  detail::ViewDims<Rank> dims() const&& noexcept { return dims_; }

  // The element at an index, checked in debug builds only (DLBRIDGE_CHECK_BOUNDS). From host code for host memory only;
  // in a translation unit of nvcc for any, since kernels are meant.
  template <class... I>
    requires(Rank == dyn || sizeof...(I) == static_cast<std::size_t>(Rank)) &&
            (std::is_convertible_v<I, std::int64_t> && ...)
  DLBRIDGE_HOST_DEVICE reference operator()(I... index) const noexcept {
#if !defined(__CUDACC__)
    static_assert(Device::kHost,
                  "elements of device memory cannot be reached from host code: copy to the host, or pass "
                  "the view to a kernel");
#if DLBRIDGE_CHECK_BOUNDS
    abort_if_outside(static_cast<std::int64_t>(index)...);
#endif
#endif
    return data_[offset(static_cast<std::int64_t>(index)...)];
  }
  template <class... I>
    requires(Rank != dyn && sizeof...(I) != static_cast<std::size_t>(Rank))
  reference operator()(I...) const noexcept {
    static_assert(sizeof...(I) == Rank, "v(i, j, ...) takes one index for each axis: as many as the view's rank");
    return *data_;
  }
  // The same, checked.
  template <class... I>
  reference at(I... index) const {
    const std::int64_t given[sizeof...(I) + 1] = {static_cast<std::int64_t>(index)..., 0};
    if (sizeof...(I) != static_cast<std::size_t>(rank())) throw_bad_index(given, sizeof...(I));
    for (std::int32_t i = 0; i < rank(); ++i)
      if (given[i] < 0 || given[i] >= extent(i)) throw_bad_index(given, sizeof...(I));
    return (*this)(index...);
  }

  // The view as a descriptor that owns nothing; read-only where T is const.
  Tensor descriptor() const {
    Tensor t;
    t.reserve_dims(rank());
    t.set_dtype(info(dtype_of_v<T>));
    t.dl.data = const_cast<value_type*>(data_);
    t.dl.device = device_;
    for (std::int32_t i = 0; i < rank(); ++i) {
      t.dl.shape[i] = extent(i);
      t.dl.strides[i] = stride(i);
    }
    t.size = size();
    t.flags = std::is_const_v<T> ? kFlagReadOnly : 0;
    t.ready = ready_;
    return t;
  }

  // All elements as one run, in the order of the memory.
  std::span<T> span() const noexcept
    requires(!std::is_same_v<Layout, any_layout>)
  {
    return {data_, static_cast<std::size_t>(size())};
  }
  T* begin() const noexcept
    requires(!std::is_same_v<Layout, any_layout>)
  {
    return data_;
  }
  T* end() const noexcept
    requires(!std::is_same_v<Layout, any_layout>)
  {
    return data_ + size();
  }
  // All elements as one run, the last index fastest. Throws Error where they are none: a layout that is known when the
  // program is compiled is asked for, c_contig, and has span().
  std::span<T> flat() const {
    if constexpr (!std::is_same_v<Layout, c_contig>) {
      constexpr Requirement kDense = requirement_of<const T, c_contig, Device>();
      const Tensor t = descriptor();
      if (const Violation v = find_violation(t, kDense); v != Violation::kNone)
        throw_issue("flat", explain(v, t, kDense));
    }
    return {data_, static_cast<std::size_t>(size())};
  }
  // The elements of any layout, one by one, the last index fastest: for (float& x : view). Of host memory.
  auto begin() const noexcept
    requires std::is_same_v<Layout, any_layout>
  {
    static_assert(Device::kHost, "elements of device memory cannot be reached from host code: copy to the host, or "
                                 "pass the view to a kernel");
    return detail::StridedIterator<T, detail::ViewDims<Rank>>(data_, dims_, size());
  }
  auto end() const noexcept
    requires std::is_same_v<Layout, any_layout>
  {
    return detail::StridedIterator<T, detail::ViewDims<Rank>>(data_, dims_, 0);
  }

 private:
  TensorView(const DLTensor& t, Ordering ready) noexcept
      : data_(static_cast<T*>(t.data)), dims_(t), device_(t.device), ready_(ready) {}

  static const Tensor& checked(const Tensor& t) {
    const Violation v = find_violation(t, kRequirement);
    if (v != Violation::kNone) [[unlikely]]
      throw_issue("view", explain(v, t, kRequirement));
    return t;
  }

  std::size_t count() const noexcept { return static_cast<std::size_t>(rank()); }

  // A contiguous view multiplies by extents, so that the compiler sees the unit stride.
  template <class... I>
  DLBRIDGE_HOST_DEVICE std::int64_t offset(I... index) const noexcept {
    std::int64_t at = 0;
    std::int32_t axis = 0;
    if constexpr (std::is_same_v<Layout, c_contig>) {
      ((at = at * dims_.extents[axis++] + index), ...);
    } else if constexpr (std::is_same_v<Layout, f_contig>) {
      std::int64_t step = 1;
      ((at += index * step, step *= dims_.extents[axis++]), ...);
    } else {
      ((at += index * dims_.stride_elems[axis++]), ...);
    }
    return at;
  }

#if DLBRIDGE_CHECK_BOUNDS
  template <class... I>
  void abort_if_outside(I... index) const noexcept {
    const std::int64_t given[sizeof...(I) + 1] = {index..., 0};
    constexpr auto kCount = static_cast<std::int32_t>(sizeof...(I));
    bool inside = kCount == rank();
    for (std::int32_t i = 0; inside && i < kCount; ++i) inside = given[i] >= 0 && given[i] < extent(i);
    if (inside) [[likely]]
      return;
    const std::string shape = tuple_text(dims_.extents, rank()), got = tuple_text(given, kCount, false);
    static_cast<void>(
        std::fprintf(stderr, "dlbridge: view%s is outside of a view of shape %s\n", got.c_str(), shape.c_str()));
    std::abort();
  }
#endif

  [[noreturn, gnu::cold]] void throw_bad_index(const std::int64_t* index, std::size_t n) const {
    throw Error(ErrorCode::kMalformed, "at: expected an index within " +
                                           tuple_text(dims_.extents, static_cast<std::int32_t>(rank())) + ", got " +
                                           tuple_text(index, static_cast<std::int32_t>(n), false) +
                                           ". Hint: indices count from 0, one per axis");
  }

  T* data_;
  detail::ViewDims<Rank> dims_;
  DLDevice device_;
  Ordering ready_;
};

template <class T, int Rank, class Layout, class Device>
TensorView<T, Rank, Layout, Device> Tensor::view() & {
  return TensorView<T, Rank, Layout, Device>(*this);
}
template <class T, int Rank, class Layout, class Device>
TensorView<T, Rank, Layout, Device> Tensor::view() const& {
  static_assert(std::is_const_v<T>, "a const Tensor gives views of const elements only: view<const T, ...>()");
  return TensorView<T, Rank, Layout, Device>(*this);
}
template <class T, int Rank, class Layout, class Device>
TensorView<T, Rank, Layout, Device> Tensor::view() const&& {
  static_assert(!sizeof(T*),
                "a temporary gives no view, as nobody would keep the memory. Keep the tensor in a variable");
  return TensorView<T, Rank, Layout, Device>::unchecked(*this);
}

}  // namespace dlbridge
