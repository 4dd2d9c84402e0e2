// What the caller of an extension function can do about an array that was refused, in words of the array's own library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dlbridge/requirement.h"

namespace dlbridge::detail {

// The argument: its name, the type of what was given for it, and what was read of that.
struct Given {
  const Tensor& tensor;
  const std::string& name;
  std::string_view type;

  bool is_torch() const noexcept { return type.starts_with("torch."); }
  // The module whose functions work on arrays of this type as NumPy's do; empty: none that is known.
  std::string module() const {
    for (const std::string_view known : {"numpy", "cupy", "dlbridge.nd"})
      if (type.starts_with(known) && type.substr(known.size()).starts_with('.')) return std::string(known);
    return type.starts_with("jaxlib.") || type.starts_with("jax.") ? "jax.numpy" : "";
  }
  bool on_host() const noexcept { return is_host(tensor.dl.device); }
  // As an array of `module`, whatever it is.
  std::string as_array(std::string_view module) const {
    return std::string(module) + ".asarray(dlbridge.asdlpack(" + name + "))";
  }
};

// Something that the function takes; `copies`: in memory of its own.
struct Remedy {
  std::string expression;
  bool copies = true;
};

inline bool is_numpys(DType id) noexcept { return info(id).numpy_type >= 0; }

[[gnu::cold]] inline Remedy cast_remedy(const Given& a, const Requirement& r) {
  DType wanted = DType::kUInt8;
  for (const DTypeInfo& d : kDTypes)
    if ((r.dtypes >> static_cast<unsigned>(d.id) & 1) != 0) {
      wanted = d.id;
      break;
    }
  const std::string dtype(info(wanted).name);
  if (a.is_torch()) return {a.name + ".to(torch." + dtype + ")"};
  const std::string module = a.module();
  const std::string array = !module.empty() ? a.name : a.as_array(a.on_host() ? "numpy" : "dlbridge.nd");
  const bool in_numpy = module == "numpy" || (module.empty() && a.on_host());
  return {array + ".astype(" + (in_numpy && !is_numpys(wanted) ? "ml_dtypes." + dtype : "'" + dtype + "'") + ")"};
}

[[gnu::cold]] inline Remedy dense_remedy(const Given& a, stride_rule rule) {
  const bool fortran = rule == stride_rule::f_contig;
  if (a.is_torch()) {
    if (!fortran) return {a.name + ".contiguous()"};
    std::string axes = ".permute(";
    for (std::int32_t i = a.tensor.dl.ndim - 1; i >= 0; --i) axes += std::to_string(i) + (i > 0 ? ", " : ")");
    return {a.name + axes + ".contiguous()" + axes};
  }
  const std::string known = a.module();
  const std::string module = known == "jax.numpy" || known.empty() ? "numpy" : known;
  if (!a.on_host() && module == "numpy") return {"dlbridge.asdlpack(" + a.name + ", copy=True)"};
  return {module + (fortran ? ".asfortranarray(" : ".ascontiguousarray(") +
          (known.empty() ? "dlbridge.asdlpack(" + a.name + ")" : a.name) + ")"};
}

// A copy keeps the order of axes, which may be the next thing to be refused.
[[gnu::cold]] inline Remedy in_layout(const Remedy& copy, const Given& a, const Requirement& r) {
  if (strides_follow(a.tensor.dl, r.strides)) return copy;
  return dense_remedy(Given{a.tensor, copy.expression, a.type}, r.strides);
}

[[gnu::cold]] inline Remedy copy_remedy(const Given& a) {
  if (a.is_torch()) return {a.name + ".clone()"};
  if (const std::string module = a.module(); a.on_host() && (module == "numpy" || module == "jax.numpy"))
    return {"numpy.array(" + a.name + ")"};
  return {"dlbridge.asdlpack(" + a.name + ", copy=True)"};
}

// For a wrong rank or extent, where there is a usual one.
[[gnu::cold]] inline Remedy shape_remedy(const Given& a, const Requirement& r) {
  const DLTensor& t = a.tensor.dl;
  const std::int32_t wanted = r.max_rank, got = t.ndim;
  const std::string module = a.module();
  const bool indexable = r.min_rank == wanted && (a.is_torch() || !module.empty());
  if (indexable && got == wanted + 1 && (t.shape[0] == 1 || t.shape[got - 1] == 1))
    return {a.name + (t.shape[0] == 1 ? "[0]" : "[..., 0]"), false};
  if (!indexable || got + 1 != wanted)
    return {r.writable ? "pass a view of " + a.name + " that has that shape"
                       : "reshape or slice " + a.name + " before the call",
            false};
  const std::int64_t last = r.extents ? r.extents[wanted - 1] : dyn;
  const std::string widened = a.name + "[..., None]";
  if (last == dyn || last == 1) return {widened, false};
  const bool dense = r.writable || r.strides > stride_rule::non_negative;  // no element may be there several times
  std::string torch_shape = "(", shape = "(";
  for (std::int32_t i = 0; i < got; ++i) {
    torch_shape += dense ? "1, " : "-1, ";
    shape += std::to_string(t.shape[i]) + ", ";
  }
  const std::string count = std::to_string(last);
  if (a.is_torch()) return {widened + (dense ? ".repeat" : ".expand") + torch_shape + count + ")"};
  if (dense) return {(module == "jax.numpy" ? "numpy" : module) + ".repeat(" + widened + ", " + count + ", -1)"};
  return {module + ".broadcast_to(" + widened + ", " + shape + count + "))"};
}

[[gnu::cold]] inline Remedy device_remedy(const Given& a, const Requirement& r) {
  const std::string device = (r.devices & kOnHost) != 0 ? "cpu" : (r.devices & kOnCuda) != 0 ? "cuda" : "";
  if (device.empty()) return {"copy it there with its own library first", false};
  return {a.is_torch() ? a.name + "." + device + "()" : "dlbridge.asdlpack(" + a.name + ", device='" + device + "')"};
}

[[gnu::cold]] inline Remedy remedy_for(Violation v, const Given& a, const Requirement& r) {
  switch (v) {
    case Violation::kDType: return in_layout(cast_remedy(a, r), a, r);
    case Violation::kRank:
    case Violation::kExtent: return shape_remedy(a, r);
    case Violation::kDevice: return device_remedy(a, r);
    case Violation::kReadOnly:
    case Violation::kOverlap: return in_layout(copy_remedy(a), a, r);
    case Violation::kStrides: return dense_remedy(a, r.strides);
    case Violation::kAlignment: return {"dlbridge.asdlpack(" + a.name + ", copy=True)"};
    case Violation::kNone: break;
  }
  return {};
}

// What a function writes into a copy is lost to its caller, unless the caller knows: says where the result is.
[[gnu::cold]] inline std::string argument_hint(Violation v, const Tensor& t, const Requirement& r,
                                               const std::string& name, std::string_view type) {
  const Given a{t, name, type};
  const Remedy remedy = remedy_for(v, a, r);
  if (!r.writable || !remedy.copies) return remedy.expression;
  const std::string pass = "the function writes to " + name + ": pass copy = " + remedy.expression;
  const bool shape = v == Violation::kRank || v == Violation::kExtent;
  if (t.readonly() || may_overlap(t.dl) || shape) return pass + ", which then has the result";
  if (a.is_torch()) return pass + ", then " + name + ".copy_(copy)";
  const bool assigns = !a.module().empty() && v != Violation::kDevice;
  return pass + ", then " + (assigns ? name + "[...] = copy" : "copy it back into " + name);
}

}  // namespace dlbridge::detail
