// What a receiver needs of a tensor, as a value, and the one validator that decides and explains. Typed views, check<>,
// the arguments of extension functions and every converter build a Requirement and come here.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dlbridge/errors.h"
#include "dlbridge/layout.h"
#include "dlbridge/tensor.h"
#include "dlbridge/validate.h"

namespace dlbridge {

// Sets of dtypes and of device types, as bits.
using DTypeSet = std::uint32_t;
using DeviceSet = std::uint32_t;
static_assert(kDTypes.size() <= 32);

template <class... Ids>
constexpr DTypeSet dtypes(Ids... ids) noexcept {
  return (DTypeSet{0} | ... | (DTypeSet{1} << static_cast<unsigned>(ids)));
}
template <class... Types>
constexpr DeviceSet devices(Types... types) noexcept {
  return (DeviceSet{0} | ... | (DeviceSet{1} << static_cast<unsigned>(types)));
}
inline constexpr DTypeSet kAnyDType = (DTypeSet{1} << kDTypes.size()) - 1;
inline constexpr DeviceSet kAnyDevice = ~DeviceSet{0};
inline constexpr DeviceSet kOnCpu = devices(kDLCPU);
inline constexpr DeviceSet kOnHost = devices(kDLCPU, kDLCUDAHost, kDLROCMHost);
inline constexpr DeviceSet kOnCuda = devices(kDLCUDA, kDLCUDAManaged);

inline constexpr std::int64_t dyn = -1;  // any extent, any rank

// Which strides are taken. Those of axes with extent 1 and of empty tensors never matter.
enum class stride_rule : std::uint8_t {
  any,           // zero and negative ones too
  non_negative,  // no negative ones
  positive,      // neither zero nor negative
  pitched,       // dense but for the outermost stride, which may be larger: a picture with padded rows
  c_contig,
  f_contig,
  dense,  // no gaps and no overlap, the axes in any order
};

// Extents that are asked for, each one a number or dyn; none: any. In static storage.
struct ExtentList {
  const std::int64_t* values = nullptr;
  std::int32_t count = 0;

  constexpr explicit operator bool() const noexcept { return count > 0; }
  constexpr std::int64_t operator[](std::int32_t i) const noexcept { return values[i]; }
  constexpr bool operator==(const ExtentList& other) const noexcept {
    bool same = count == other.count;
    for (std::int32_t i = 0; same && i < count; ++i) same = values[i] == other.values[i];
    return same;
  }
};

struct Requirement {
  DTypeSet dtypes = kAnyDType;
  DeviceSet devices = kAnyDevice;
  std::int32_t min_rank = 0;
  std::int32_t max_rank = kMaxDims;
  ExtentList extents;  // as many as there are axes
  stride_rule strides = stride_rule::any;
  bool writable = false;
  bool distinct = false;         // no element is reached by two indices: what a writer needs
  std::uint32_t alignment = 0;   // bytes; 0: none
  bool element_aligned = false;  // what loads and stores of the element type need

  constexpr bool operator==(const Requirement&) const noexcept = default;
};

// Why nothing can meet two requirements.
enum class Conflict : std::uint8_t { kNone, kDType, kRank, kExtents, kDevice, kLayout };

// What meets both `a` and `b`.
struct Intersection {
  Requirement both;
  Conflict conflict = Conflict::kNone;
};
namespace detail {
// Each rule up to c_contig holds what the ones before it hold.
constexpr bool add_strides(Requirement& to, stride_rule rule) noexcept {
  if (to.strides == stride_rule::dense || rule == stride_rule::dense) {
    const stride_rule other = to.strides == stride_rule::dense ? rule : to.strides;
    to.strides = other <= stride_rule::positive  ? stride_rule::dense
                 : other == stride_rule::pitched ? stride_rule::c_contig
                                                 : other;
    return true;
  }
  const auto fortran = [](stride_rule a, stride_rule b) {
    return a == stride_rule::f_contig && (b == stride_rule::c_contig || b == stride_rule::pitched);
  };
  if (fortran(to.strides, rule) || fortran(rule, to.strides)) return false;
  if (rule > to.strides) to.strides = rule;
  return true;
}
constexpr bool add_extents(Requirement& to, const ExtentList& extents) noexcept {
  if (!extents) return true;
  if (!to.extents) return to.extents = extents, true;
  bool first = true, second = true;  // this one says all that the other one does
  for (std::int32_t i = 0; i < extents.count && i < to.extents.count; ++i) {
    first = first && (extents[i] == dyn || extents[i] == to.extents[i]);
    second = second && (to.extents[i] == dyn || extents[i] == to.extents[i]);
  }
  if (!first) to.extents = extents;
  return first || second;
}
}  // namespace detail
constexpr Intersection intersect(const Requirement& a, const Requirement& b) noexcept {
  Intersection out{a};
  Requirement& r = out.both;
  r.dtypes &= b.dtypes;
  r.devices &= b.devices;
  if (b.min_rank > r.min_rank) r.min_rank = b.min_rank;
  if (b.max_rank < r.max_rank) r.max_rank = b.max_rank;
  r.writable |= b.writable;
  r.distinct |= b.distinct;
  r.element_aligned |= b.element_aligned;
  if (b.alignment > r.alignment) r.alignment = b.alignment;
  if (r.dtypes == 0) out.conflict = Conflict::kDType;
  else if (r.devices == 0) out.conflict = Conflict::kDevice;
  else if (r.min_rank > r.max_rank) out.conflict = Conflict::kRank;
  else if (!detail::add_extents(r, b.extents)) out.conflict = Conflict::kExtents;
  else if (r.extents && (r.min_rank != r.max_rank || r.extents.count != r.max_rank)) out.conflict = Conflict::kRank;
  else if (!detail::add_strides(r, b.strides)) out.conflict = Conflict::kLayout;
  return out;
}

// Whatever meets `a` meets `b`.
constexpr bool implies(const Requirement& a, const Requirement& b) noexcept {
  const Intersection all = intersect(a, b);
  return all.conflict == Conflict::kNone && all.both == a;
}

enum class Violation : std::uint8_t {
  kNone,
  kDType,
  kRank,
  kExtent,
  kDevice,
  kReadOnly,
  kStrides,
  kOverlap,
  kAlignment
};

namespace detail {
// Everything inside one index of the outermost axis is dense: what cv::Mat can say.
inline bool is_pitched(const DLTensor& t) noexcept {
  std::int64_t inside = 1;
  for (std::int32_t i = t.ndim - 1; i >= 1; --i) {
    if (t.shape[i] != 1 && t.strides[i] != inside) return has_zero_extent(t);
    inside *= t.shape[i];
  }
  return t.ndim == 0 || t.shape[0] <= 1 || t.strides[0] >= inside || has_zero_extent(t);
}

// True where two different indices may reach one element: a zero stride, or axes that run into one another. Sound for
// every layout that a framework makes by slicing, transposing and broadcasting; other interleavings count as overlap.
inline bool may_overlap(const DLTensor& t) noexcept {
  if (is_c_contiguous(t)) [[likely]]
    return false;
  std::int64_t reach = 0;  // elements between the first and the last one of the axes taken so far
  std::uint64_t taken = 0;
  for (std::int32_t round = 0; round < t.ndim; ++round) {
    std::int32_t next = -1;
    std::int64_t smallest = 0;
    for (std::int32_t i = 0; i < t.ndim; ++i) {
      if ((taken >> i & 1) != 0 || t.shape[i] <= 1) continue;
      const std::int64_t stride = t.strides[i] < 0 ? -t.strides[i] : t.strides[i];
      if (next < 0 || stride < smallest) next = i, smallest = stride;
    }
    if (next < 0) return false;
    if (smallest <= reach) return !has_zero_extent(t);
    taken |= std::uint64_t{1} << next;
    reach += smallest * (t.shape[next] - 1);
  }
  return false;
}

inline bool is_dense(const DLTensor& t) noexcept {
  std::int64_t size = 1;
  for (std::int32_t i = 0; i < t.ndim; ++i) size *= t.shape[i];
  return size == 0 || (!has_negative_stride(t) && !may_overlap(t) && element_span(t).high == size);
}

inline bool strides_follow(const DLTensor& t, stride_rule rule) noexcept {
  switch (rule) {
    case stride_rule::any: return true;
    case stride_rule::non_negative: return !has_negative_stride(t);
    case stride_rule::positive: return !has_negative_stride(t) && !has_zero_stride(t);
    case stride_rule::pitched: return is_pitched(t);
    case stride_rule::c_contig: return is_c_contiguous(t);
    case stride_rule::f_contig: return is_f_contiguous(t);
    case stride_rule::dense: return is_dense(t);
  }
  return false;
}

inline bool address_is_multiple(const DLTensor& t, std::uint64_t alignment) noexcept {
  return ((reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset) & (alignment - 1)) == 0;
}
}  // namespace detail

// The first rule that an array breaks of which these are the fields of a Tensor. Inline with a constant `r`, so that
// only what is asked for is compiled in.
[[gnu::always_inline]] inline Violation find_violation(const DLTensor& t, const DTypeInfo& dtype, std::uint64_t flags,
                                                       const Requirement& r) noexcept {
  if (r.dtypes != kAnyDType && (r.dtypes >> static_cast<unsigned>(dtype.id) & 1) == 0) return Violation::kDType;
  if (t.ndim < r.min_rank || t.ndim > r.max_rank) return Violation::kRank;
  if (r.extents)
    for (std::int32_t i = 0; i < r.extents.count; ++i)
      if (r.extents[i] != dyn && r.extents[i] != t.shape[i]) return Violation::kExtent;
  if (r.devices != kAnyDevice && (r.devices >> static_cast<unsigned>(t.device.device_type) & 1) == 0)
    return Violation::kDevice;
  if (r.writable && (flags & kFlagReadOnly) != 0) return Violation::kReadOnly;
  if (r.strides != stride_rule::any && !detail::strides_follow(t, r.strides)) return Violation::kStrides;
  if (r.distinct && r.strides != stride_rule::c_contig && r.strides != stride_rule::f_contig && detail::may_overlap(t))
    return Violation::kOverlap;
  if (r.element_aligned && !detail::address_is_multiple(t, alignment_of(dtype))) return Violation::kAlignment;
  if (r.alignment > 1 && !detail::address_is_multiple(t, r.alignment)) return Violation::kAlignment;
  return Violation::kNone;
}
[[gnu::always_inline]] inline Violation find_violation(const Tensor& t, const Requirement& r) noexcept {
  return find_violation(t.dl, t.dtype(), t.flags, r);
}

// True where a dense copy in place of the tensor, on its own device, repairs it.
constexpr bool copy_repairs(Violation v) noexcept {
  return v == Violation::kReadOnly || v == Violation::kStrides || v == Violation::kOverlap ||
         v == Violation::kAlignment;
}

// "(2, 3)", "(3,)", "()"; of extents, dyn is "*".
inline std::string tuple_text(const std::int64_t* values, std::int32_t count, bool are_extents = true) {
  std::string out = "(";
  for (std::int32_t i = 0; i < count; ++i) {
    if (i > 0) out += ", ";
    out += are_extents && values[i] == dyn ? "*" : std::to_string(values[i]);
  }
  return out += count == 1 ? ",)" : ")";
}

// "(480, 640) [torch.Tensor, float32, strides (640, 1), cuda:0, writable]"; `source` says what the tensor came from,
// empty: unsaid.
inline std::string describe(const Tensor& t, std::string_view source = {}) {
  const std::string strides = tuple_text(t.dl.strides, t.dl.ndim, false);
  std::string out = tuple_text(t.dl.shape, t.dl.ndim) + " [";
  if (!source.empty()) out.append(source).append(", ");
  out.append(t.dtype().name).append(", strides ").append(strides).append(", ").append(device_name(t.dl.device));
  return out += t.readonly() ? ", read-only]" : ", writable]";
}

inline std::string dtypes_text(DTypeSet set) {
  if (set == kAnyDType) return "any dtype";
  std::string out;
  for (const DTypeInfo& d : kDTypes)
    if ((set >> static_cast<unsigned>(d.id) & 1) != 0) out.append(out.empty() ? "" : " or ").append(d.name);
  return out;
}
inline std::string devices_text(DeviceSet set) {
  if (set == kAnyDevice) return "any device";
  std::string out;
  for (const DeviceTypeInfo& d : kDeviceTypes)
    if ((set >> static_cast<unsigned>(d.type) & 1) != 0) out.append(out.empty() ? "" : " or ").append(d.name);
  return out;
}
constexpr std::string_view stride_rule_text(stride_rule rule) noexcept {
  switch (rule) {
    case stride_rule::any: return "any strides";
    case stride_rule::non_negative: return "no negative strides";
    case stride_rule::positive: return "positive strides";
    case stride_rule::pitched: return "dense but for a larger outermost stride";
    case stride_rule::c_contig: return "C-contiguous";
    case stride_rule::f_contig: return "Fortran-contiguous";
    case stride_rule::dense: return "dense, the axes in any order";
  }
  return {};
}

// What the broken rule wants: "float32", "shape (*, *, 3)", "cuda", "C-contiguous".
[[gnu::cold]] inline std::string expected_text(Violation v, const Tensor& t, const Requirement& r) {
  switch (v) {
    case Violation::kDType: return "dtype " + dtypes_text(r.dtypes);
    case Violation::kRank:
      if (r.extents) return "shape " + tuple_text(r.extents.values, r.extents.count);
      if (r.min_rank == r.max_rank) return "rank " + std::to_string(r.max_rank);
      return "rank " + std::to_string(r.min_rank) + " to " + std::to_string(r.max_rank);
    case Violation::kExtent: return "shape " + tuple_text(r.extents.values, r.extents.count);
    case Violation::kDevice: return "device " + devices_text(r.devices);
    case Violation::kReadOnly: return "writable memory";
    case Violation::kStrides: return std::string(stride_rule_text(r.strides));
    case Violation::kOverlap: return "distinct elements to write to (no zero or overlapping strides)";
    case Violation::kAlignment:
      return "data aligned to " +
             std::to_string(r.alignment > alignment_of(t.dtype()) ? r.alignment : alignment_of(t.dtype())) + " bytes";
    case Violation::kNone: break;
  }
  return {};
}

// What a C++ caller can do about it.
[[gnu::cold]] inline std::string hint_text(Violation v, const Tensor& t) {
  switch (v) {
    case Violation::kDType: return "cast with the producer's own function first; dlbridge never converts elements";
    case Violation::kRank:
    case Violation::kExtent: return "reshape, slice or expand in the producer first; dlbridge never changes a shape";
    case Violation::kDevice: return "copy it there first, to_device(tensor, device), from " + device_name(t.dl.device);
    case Violation::kReadOnly: return "ask for const elements, or allow a copy with {.copy = copy::if_needed}";
    case Violation::kStrides:
    case Violation::kOverlap:
    case Violation::kAlignment: return "allow a dense copy with {.copy = copy::if_needed}, or dense_copy(tensor)";
    case Violation::kNone: break;
  }
  return {};
}

// What the caller of a function can do whose body, in C++, wants `r` of his array x.
[[gnu::cold]] inline std::string caller_hint_text(Violation v, const Requirement& r) {
  std::string hint;
  switch (v) {
    case Violation::kDType: return "cast it before the call: x.astype(...), in PyTorch x.to(...)";
    case Violation::kRank:
    case Violation::kExtent: return "reshape, slice or expand it before the call";
    case Violation::kDevice: hint = "copy it there before the call: dlbridge.asdlpack(x, device=...)"; break;
    case Violation::kReadOnly: return "pass a copy, numpy.array(x), in which you then find what was written";
    case Violation::kOverlap: return "pass a dense copy, numpy.array(x), in which you then find what was written";
    case Violation::kStrides:
      hint = r.strides == stride_rule::f_contig ? "pass a copy in Fortran order: numpy.asfortranarray(x)"
                                                : "pass a dense copy: dlbridge.asdlpack(x, copy=True)";
      break;
    case Violation::kAlignment: hint = "pass an aligned copy: dlbridge.asdlpack(x, copy=True)"; break;
    case Violation::kNone: return hint;
  }
  return r.writable ? hint + ". It is written to, so copy it back after the call" : hint;
}

constexpr ErrorCode code_of(Violation v) noexcept {
  return v == Violation::kRank || v == Violation::kExtent ? ErrorCode::kMalformed
         : v == Violation::kDType                         ? ErrorCode::kWrongType
         : copy_repairs(v)                                ? ErrorCode::kCopyRefused
                                                          : ErrorCode::kRefused;
}

// `v` is what find_violation() said of the two.
[[gnu::cold, gnu::noinline]] inline Issue explain(Violation v, const Tensor& t, const Requirement& r,
                                                  std::string_view source = {}) {
  return {code_of(v),
          "expected " + expected_text(v, t, r) + ", got " +
              (v == Violation::kAlignment
                   ? "the address " + std::to_string(reinterpret_cast<std::uintptr_t>(t.dl.data)) + " of "
                   : std::string()) +
              describe(t, source) + ". Hint: " + hint_text(v, t),
          caller_hint_text(v, r)};
}

}  // namespace dlbridge
