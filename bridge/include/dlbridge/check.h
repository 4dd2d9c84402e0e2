// Constraints as types, and check<...>: does this tensor meet them, and if not, why. Nothing here throws.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "dlbridge/dtype.h"
#include "dlbridge/requirement.h"

namespace dlbridge {

// A constraint is a type with `static constexpr void apply(Requirement&)` and a `name` for signatures; write more of
// them in the same way.
template <std::int64_t... Extents>
struct shape {
  static_assert(((Extents >= 0 || Extents == dyn) && ...), "an extent is a number >= 0, or dyn");
  static constexpr std::int32_t kRank = static_cast<std::int32_t>(sizeof...(Extents));
  static constexpr std::int64_t kExtents[sizeof...(Extents) + 1] = {Extents..., 0};
  static constexpr ExtentList kList{kExtents, kRank};
  static constexpr void apply(Requirement& r) noexcept {
    r.min_rank = r.max_rank = kRank;
    if constexpr (!((Extents == dyn) && ...)) r.extents = kList;
  }
};
template <int Rank>
struct rank {
  static_assert(Rank == dyn || (Rank >= 0 && Rank <= kMaxDims), "a rank is between 0 and 64, or dyn");
  static constexpr void apply(Requirement& r) noexcept {
    if constexpr (Rank != dyn) r.min_rank = r.max_rank = Rank;
  }
};

struct any_layout {
  static constexpr std::string_view name = "";
  static constexpr void apply(Requirement&) noexcept {}
};
struct c_contig {
  static constexpr std::string_view name = "C";
  static constexpr void apply(Requirement& r) noexcept { r.strides = stride_rule::c_contig; }
};
struct f_contig {
  static constexpr std::string_view name = "F";
  static constexpr void apply(Requirement& r) noexcept { r.strides = stride_rule::f_contig; }
};

// `kHost`: elements may be read and written from ordinary host code.
struct any_device {
  static constexpr std::string_view name = "";
  static constexpr bool kHost = false;
  static constexpr DeviceSet kSet = kAnyDevice;
  static constexpr void apply(Requirement& r) noexcept { r.devices = kSet; }
};
struct on_cpu {
  static constexpr std::string_view name = "cpu";
  static constexpr bool kHost = true;
  static constexpr DeviceSet kSet = kOnCpu;
  static constexpr void apply(Requirement& r) noexcept { r.devices = kSet; }
};
struct on_host {  // the CPU's memory, pinned or not
  static constexpr std::string_view name = "host";
  static constexpr bool kHost = true;
  static constexpr DeviceSet kSet = kOnHost;
  static constexpr void apply(Requirement& r) noexcept { r.devices = kSet; }
};
struct on_cuda {  // not `cuda`: that is a namespace here and in CCCL
  static constexpr std::string_view name = "cuda";
  static constexpr bool kHost = false;
  static constexpr DeviceSet kSet = kOnCuda;
  static constexpr void apply(Requirement& r) noexcept { r.devices = kSet; }
};

// Not read-only, and no element reached twice.
struct writable {
  static constexpr std::string_view name = "writable";
  static constexpr void apply(Requirement& r) noexcept { r.writable = r.distinct = true; }
};
template <std::uint32_t Bytes>
struct aligned {
  static_assert(std::has_single_bit(Bytes), "an alignment is a power of two");
  static constexpr void apply(Requirement& r) noexcept { r.alignment = Bytes; }
};

template <class C>
concept Constraint = requires(Requirement& r) { C::apply(r); };
template <class L>
concept LayoutTag = std::is_same_v<L, any_layout> || std::is_same_v<L, c_contig> || std::is_same_v<L, f_contig>;
template <class D>
concept DeviceTag = Constraint<D> && requires {
  { D::kHost } -> std::convertible_to<bool>;
  { D::kSet } -> std::convertible_to<DeviceSet>;
};

// In place of an element type: one of these, which one is known at run time. `const any_of<float, double>` for reading.
template <class... Elements>
struct any_of {
  static constexpr DTypeSet kSet = dtypes(dtype_of_v<Elements>...);
  static_assert(!(std::is_const_v<Elements> || ...), "any_of<const float, ...>: the const belongs to the set, "
                                                     "const any_of<float, ...>");
  static_assert(static_cast<std::size_t>(std::popcount(kSet)) == sizeof...(Elements),
                "any_of<...>: two of the element types are of one dtype, or there are none");
};

namespace detail {
template <class T>
inline constexpr bool kIsAnyOf = false;
template <class... Elements>
inline constexpr bool kIsAnyOf<any_of<Elements...>> = true;
template <class... Elements>
inline constexpr bool kIsAnyOf<const any_of<Elements...>> = true;

template <class T>
constexpr Requirement requirement_of_element() {
  Requirement r;
  if constexpr (kIsAnyOf<T>) r.dtypes = T::kSet;
  else if constexpr (!std::is_void_v<T>) r.dtypes = dtypes(dtype_of_v<T>);
  if constexpr (!std::is_void_v<T>) r.element_aligned = true;
  if constexpr (!std::is_const_v<T>) writable::apply(r);
  return r;
}
// Instantiated by whatever takes an element type, so that what is wrong with it is said near the line that names it.
template <class T>
struct element_of {
  using type = element_dtype<std::remove_cv_t<T>>;
};
template <class T>
  requires(std::is_void_v<T> || kIsAnyOf<T>)
struct element_of<T> {
  using type = std::conditional_t<std::is_void_v<T>, char, std::remove_const_t<T>>;
};
template <class T>
using element = typename element_of<T>::type;

template <class C>
constexpr void add_constraint(Intersection& all) {
  Requirement r;
  C::apply(r);
  if (all.conflict == Conflict::kNone) all = intersect(all.both, r);
}
template <class T, class... Constraints>
consteval Intersection intersection_of() {
  Intersection all{requirement_of_element<T>()};
  (add_constraint<Constraints>(all), ...);
  return all;
}
// The same for constraints.
template <Conflict conflict, class... Of>
struct agreeing {
  static_assert(conflict != Conflict::kRank, "constraints contradict each other: no rank meets all of shape<...>, "
                                             "rank<...> and the rank of the view. Name the rank once");
  static_assert(conflict != Conflict::kExtents, "constraints contradict each other: two of them ask for different "
                                                "extents. Name the extents in one shape<...>");
  static_assert(conflict != Conflict::kDType, "constraints contradict each other: no dtype meets all of them. "
                                              "The element type must be one of those that they allow");
  static_assert(conflict != Conflict::kDevice, "constraints contradict each other: no device meets all of them. "
                                               "Name one of on_host, on_cpu, on_cuda and any_device");
  static_assert(conflict != Conflict::kLayout, "constraints contradict each other: no layout meets all of them. "
                                               "Name one of c_contig and f_contig");
  static constexpr bool value = true;
};
}  // namespace detail

// The constraints as a value: all of them together. T is the element type, void for any; a T that is not const also
// asks for `writable`, const void or const T do not. Elements are aligned for T.
template <class T, Constraint... Constraints>
consteval Requirement requirement_of() {
  constexpr Intersection kAll = detail::intersection_of<T, Constraints...>();
  static_assert(detail::agreeing<kAll.conflict, T, Constraints...>::value);
  return kAll.both;
}

namespace detail {
template <class T, Constraint... Constraints>
inline constexpr Requirement kRequirement = requirement_of<T, Constraints...>();
}

// One test per constraint, nothing built: for hot paths.
template <class T, Constraint... Constraints>
bool meets(const Tensor& t) noexcept {
  static_assert(sizeof(detail::element<T>) > 0);
  return find_violation(t, detail::kRequirement<T, Constraints...>) == Violation::kNone;
}

// Why `t` does not meet the constraints; nullopt where it does. `source` names what the tensor came from.
//   if (std::optional<Issue> why = check<float, 2, c_contig, on_cuda>(t)) log(why->message);
template <class T, Constraint... Constraints>
std::optional<Issue> check(const Tensor& t, std::string_view source = {}) {
  static_assert(sizeof(detail::element<T>) > 0);
  const Violation v = find_violation(t, detail::kRequirement<T, Constraints...>);
  if (v == Violation::kNone) [[likely]]
    return std::nullopt;
  return explain(v, t, detail::kRequirement<T, Constraints...>, source);
}
template <class T, int Rank, Constraint... Constraints>
std::optional<Issue> check(const Tensor& t, std::string_view source = {}) {
  return check<T, rank<Rank>, Constraints...>(t, source);
}

}  // namespace dlbridge
