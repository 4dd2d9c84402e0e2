// What an extension function says about its array arguments: the type in its signature, and why an array was refused,
// with a remedy in the caller's words. Knows no Python; dlbridge/pybind11.h uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "dlbridge/argument_hint.h"
#include "dlbridge/requirement.h"

namespace dlbridge::detail {

// Text made by the compiler, of at most `kCapacity` characters.
struct ConstText {
  static constexpr std::size_t kCapacity = 512;
  char text[kCapacity] = {};
  std::size_t size = 0;

  constexpr void add(std::string_view s) {
    for (const char c : s) text[size++] = c;  // an overrun does not compile: the caller is consteval
  }
  constexpr void add_number(std::int64_t n) {
    char digits[20] = {};
    std::size_t count = 0;
    do digits[count++] = static_cast<char>('0' + n % 10);
    while ((n /= 10) != 0);
    while (count > 0) text[size++] = digits[--count];
  }
};

consteval void add_shape(ConstText& out, const Requirement& r) {
  if (r.min_rank != r.max_rank) return out.add("...");
  out.add("(");
  for (std::int32_t i = 0; i < r.max_rank; ++i) {
    if (i > 0) out.add(", ");
    if (!r.extents || r.extents[i] == dyn) out.add("*");
    else out.add_number(r.extents[i]);
  }
  out.add(r.max_rank == 1 ? ",)" : ")");
}

consteval void add_dtypes(ConstText& out, DTypeSet set) {
  if (set == kAnyDType) return out.add("any");
  bool first = true;
  for (const DTypeInfo& d : kDTypes) {
    if ((set >> static_cast<unsigned>(d.id) & 1) == 0) continue;
    if (!first) out.add(" | ");
    first = false;
    out.add(d.name);
  }
}

consteval void add_devices(ConstText& out, DeviceSet set) {
  if (set == kAnyDevice) return;
  if ((set & ~kOnHost) == 0) return out.add(", cpu");
  if (set == kOnCuda) return out.add(", cuda");
  bool first = true;
  for (const DeviceTypeInfo& d : kDeviceTypes) {
    if ((set >> static_cast<unsigned>(d.type) & 1) == 0) continue;
    out.add(first ? ", " : " | ");
    first = false;
    out.add(d.name);
  }
}

constexpr std::string_view short_text(stride_rule rule) noexcept {
  switch (rule) {
    case stride_rule::any: return "";
    case stride_rule::c_contig: return ", C";
    case stride_rule::f_contig: return ", F";
    case stride_rule::non_negative: return ", strides >= 0";
    case stride_rule::positive: return ", strides > 0";
    case stride_rule::pitched: return ", pitched";
    case stride_rule::dense: return ", dense";
  }
  return "";
}

// "typing.Annotated[dlbridge.AnyArray, "Tensor[float32, (*, *, 3), C, cuda, writable]"]": Python, for stub generators.
// Between @ and @ both binding libraries find what arguments are, then what results are: Any, as whoever has given the
// array knows of which framework it is, and its methods.
consteval ConstText signature_text(const Requirement& r) {
  ConstText out;
  out.add("typing.Annotated[@dlbridge.AnyArray@typing.Any@, \"Tensor[");
  add_dtypes(out, r.dtypes);
  out.add(", ");
  add_shape(out, r);
  out.add(short_text(r.strides));
  add_devices(out, r.devices);
  if (r.writable) out.add(", writable");
  if (r.alignment > 1) {
    out.add(", aligned ");
    out.add_number(r.alignment);
  }
  out.add("]\"]");
  return out;
}

// How far an array is from `r`: by how many rules it breaks, and of as many, by how early the first of them comes. Of
// several functions, that of the smallest distance came closest.
[[gnu::cold, gnu::noinline]] inline int distance(const Tensor& t, Requirement r) {
  constexpr int kRules = static_cast<int>(Violation::kAlignment) + 1;
  for (int out = -static_cast<int>(find_violation(t, r));; out += kRules) {
    switch (find_violation(t, r)) {
      case Violation::kNone: return out;
      case Violation::kDType: r.dtypes = kAnyDType; break;
      case Violation::kRank: r.min_rank = 0, r.max_rank = kMaxDims, r.extents = {}; break;
      case Violation::kExtent: r.extents = {}; break;
      case Violation::kDevice: r.devices = kAnyDevice; break;
      case Violation::kReadOnly: r.writable = false; break;
      case Violation::kStrides: r.strides = stride_rule::any; break;
      case Violation::kOverlap: r.distinct = false; break;
      case Violation::kAlignment: r.element_aligned = false, r.alignment = 0; break;
    }
  }
}

// --- refusals -------------------------------------------------------------------------------------------------------

// "expected shape (*, *, 3), got (480, 640) [torch.Tensor, float32, strides (640, 1), cuda:0, writable]. Hint: …"
[[gnu::cold, gnu::noinline]] inline std::string refusal_text(Violation v, const Tensor& t, const Requirement& r,
                                                             const std::string& name, std::string_view type) {
  return "expected " + expected_text(v, t, r) + ", got " + describe(t, type) +
         ". Hint: " + argument_hint(v, t, r, name, type);
}

}  // namespace dlbridge::detail
