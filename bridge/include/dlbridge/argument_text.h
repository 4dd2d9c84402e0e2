// What an extension function says about its array arguments: the type in its signature, and why an array was refused,
// with a remedy in the caller's words. Knows no Python; dlbridge/pybind11.h uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

consteval void add_shape(ConstText& out, const Requirement& r, bool has_extents) {
  if (r.min_rank != r.max_rank) return out.add("...");
  out.add("(");
  for (std::int32_t i = 0; i < r.max_rank; ++i) {
    if (i > 0) out.add(", ");
    if (!has_extents || r.extents[i] == dyn)
      out.add("*");
    else
      out.add_number(r.extents[i]);
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
  }
  return "";
}

// "Tensor[float32, (*, *, 3), C, cuda, writable]". `has_extents`: r.extents is not null, which GCC with
// -fsanitize=undefined cannot ask in a constant expression.
consteval ConstText signature_text(const Requirement& r, bool has_extents) {
  ConstText out;
  out.add("Tensor[");
  add_dtypes(out, r.dtypes);
  out.add(", ");
  add_shape(out, r, has_extents);
  out.add(short_text(r.strides));
  add_devices(out, r.devices);
  if (r.writable) out.add(", writable");
  if (r.alignment > 1) {
    out.add(", aligned ");
    out.add_number(r.alignment);
  }
  out.add("]");
  return out;
}

// --- refusals -------------------------------------------------------------------------------------------------------

inline bool is_torch(std::string_view type) noexcept { return type.starts_with("torch."); }

// The remedy for a wrong rank or extent, where there is a usual one.
[[gnu::cold]] inline std::string shape_hint(const Tensor& t, const Requirement& r, const std::string& name,
                                            std::string_view type) {
  const std::int32_t wanted = r.max_rank, got = t.dl.ndim;
  if (r.min_rank == wanted && got == wanted + 1 && (t.dl.shape[0] == 1 || t.dl.shape[got - 1] == 1))
    return name + (t.dl.shape[0] == 1 ? "[0]" : "[..., 0]");
  if (r.min_rank != wanted || got + 1 != wanted) return "reshape or slice " + name + " before the call";
  const std::int64_t last = r.extents != nullptr ? r.extents[wanted - 1] : dyn;
  const std::string widened = name + "[..., None]";
  if (last == dyn || last == 1) return widened;
  if (is_torch(type)) {
    std::string out = widened + ".expand(";
    for (std::int32_t i = 0; i < got; ++i) out += "-1, ";
    return out + std::to_string(last) + ")";
  }
  std::string shape = "(";
  for (std::int32_t i = 0; i < got; ++i) shape += std::to_string(t.dl.shape[i]) + ", ";
  return "numpy.broadcast_to(" + widened + ", " + shape + std::to_string(last) + "))";
}

[[gnu::cold]] inline std::string dtype_hint(const Requirement& r, const std::string& name, std::string_view type) {
  std::string_view wanted = "one of them";
  for (const DTypeInfo& d : kDTypes)
    if (r.dtypes == dtypes(d.id)) wanted = d.name;
  if (is_torch(type)) return name + ".to(torch." + std::string(wanted) + ")";
  return name + ".astype('" + std::string(wanted) + "')";
}

[[gnu::cold]] inline std::string copy_hint(const Requirement& r, const std::string& name, std::string_view type) {
  const bool fortran = r.strides == stride_rule::f_contig;
  if (is_torch(type)) return fortran ? name + ".T.contiguous().T" : name + ".contiguous()";
  return (fortran ? "numpy.asfortranarray(" : "numpy.ascontiguousarray(") + name + ")";
}

// What a caller in Python can do about it; `name` is the argument's.
[[gnu::cold]] inline std::string caller_hint(Violation v, const Tensor& t, const Requirement& r,
                                             const std::string& name, std::string_view type) {
  switch (v) {
    case Violation::kDType: return dtype_hint(r, name, type);
    case Violation::kRank:
    case Violation::kExtent: return shape_hint(t, r, name, type);
    case Violation::kDevice: {
      const std::string device = (r.devices & kOnHost) != 0 ? "cpu" : (r.devices & kOnCuda) != 0 ? "cuda" : "";
      if (device.empty()) return "copy it there with its own library first";
      return is_torch(type) ? name + "." + device + "()" : "dlbridge.asdlpack(" + name + ", device='" + device + "')";
    }
    case Violation::kReadOnly:
    case Violation::kOverlap: return is_torch(type) ? name + ".clone()" : "numpy.array(" + name + ")";
    case Violation::kStrides: return copy_hint(r, name, type);
    case Violation::kAlignment: return "dlbridge.asdlpack(" + name + ", copy=True)";
    case Violation::kNone: break;
  }
  return {};
}

// "expected shape (*, *, 3), got (480, 640) [torch.Tensor, float32, strides (640, 1), cuda:0, writable]. Hint: …"
[[gnu::cold, gnu::noinline]] inline std::string refusal_text(Violation v, const Tensor& t, const Requirement& r,
                                                             const std::string& name, std::string_view type) {
  return "expected " + expected_text(v, t, r) + ", got " + describe(t, type) + ". Hint: " +
         caller_hint(v, t, r, name, type);
}

}  // namespace dlbridge::detail
