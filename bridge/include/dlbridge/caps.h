// What a converter can carry: one constexpr value a converter. The shared validator, the table in docs/converters.md
// and the conformance tests all read it.
#pragma once

#include <cstdint>
#include <string_view>

#include "dlbridge/requirement.h"

namespace dlbridge {

// What from() does with a value of the framework.
enum class source_kind : std::uint8_t {
  none,       // there is no from()
  container,  // owns its memory by value: moved in; an lvalue does not compile
  handle,     // counts references: one reference is taken
  view,       // owns nothing: needs borrow(view, keepalive)
};

// What to<Framework>() makes of a tensor.
enum class result_kind : std::uint8_t {
  none,   // there is no to()
  owner,  // takes the tensor's owner with it
  view,   // owns nothing: comes as Held<Framework>, with its owner beside it
  copy,   // has elements of its own
};

// Designated initialisers in this order. The first part is the validator's, for to(), which takes what the type can
// hold and nothing else: a converter that says nothing of strides gets dense elements in C order, one whose to() takes
// a TensorView gets what that view asks for. The rest says who owns what.
struct caps {
  std::string_view name = "user type";
  DTypeSet dtypes = kAnyDType;
  DeviceSet devices = kOnCpu;
  std::int32_t min_rank = 0;
  std::int32_t max_rank = kMaxDims;
  ExtentList extents = {};  // shape<dyn, dyn, 3>::kList: the rank, and extents that are fixed
  stride_rule strides = stride_rule::c_contig;
  std::uint32_t alignment = 0;  // bytes; 0: that of the element
  bool misaligned = false;      // takes elements at any address
  bool overlap = false;         // takes elements that two indices reach, and guards writes to them itself
  bool read_only = false;       // can say that elements may not be written, and so takes read-only tensors
  source_kind source = source_kind::container;
  result_kind result = result_kind::view;
  bool consumes_on_error = false;  // the framework's import function releases the tensor also when it fails
};

// The framework's needs as the validator's.
constexpr Requirement requirement_of(const caps& c) noexcept {
  Requirement r;
  r.dtypes = c.dtypes;
  r.devices = c.devices;
  r.min_rank = c.extents ? c.extents.count : c.min_rank;
  r.max_rank = c.extents ? c.extents.count : c.max_rank;
  r.extents = c.extents;
  r.strides = c.strides;
  const bool writes = !c.read_only && c.result != result_kind::copy;
  r.writable = writes;
  r.distinct = writes && !c.overlap;
  r.element_aligned = !c.misaligned;
  r.alignment = c.alignment;
  return r;
}

}  // namespace dlbridge
