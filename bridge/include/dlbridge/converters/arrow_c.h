// Arrow's C Data and C Device interfaces, with no Arrow library: fixed-width numbers without nulls. From a tensor: 1-D.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "dlbridge/arrow_abi.h"
#include "dlbridge/arrow_codec.h"
#include "dlbridge/arrow_export.h"
#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge {

// A schema and an array that own what their release callbacks free. To hand one over, move the structs out with
// export_to(); to take one, construct from the two structs, which are marked released.
template <class Array>
class ArrowC {
 public:
  ArrowSchema schema{};
  Array array{};

  ArrowC() noexcept = default;
  // Moves both out of the caller's structs (the specification: copy, then null the source's release).
  ArrowC(ArrowSchema* s, Array* a) noexcept { take(*s, *a); }
  ArrowC(ArrowC&& other) noexcept { take(other.schema, other.array); }
  ArrowC& operator=(ArrowC&& other) noexcept {
    if (this != &other) {
      reset();
      take(other.schema, other.array);
    }
    return *this;
  }
  ArrowC(const ArrowC&) = delete;
  ArrowC& operator=(const ArrowC&) = delete;
  ~ArrowC() { reset(); }

  // The receiver's structs are overwritten; it releases them.
  void export_to(ArrowSchema* s, Array* a) && noexcept {
    *s = std::exchange(schema, ArrowSchema{});
    *a = std::exchange(array, Array{});
  }
  ArrowArray& data() noexcept {
    if constexpr (requires { array.array; }) return array.array;
    else return array;
  }

 private:
  void take(ArrowSchema& s, Array& a) noexcept {
    schema = s;
    array = a;
    s.release = nullptr;
    if constexpr (requires { a.array; }) a.array.release = nullptr;
    else a.release = nullptr;
  }
  void reset() noexcept {
    if (schema.release != nullptr) schema.release(&schema);
    if (data().release != nullptr) data().release(&data());
  }
};
using ArrowCData = ArrowC<ArrowArray>;
using ArrowCDevice = ArrowC<ArrowDeviceArray>;

namespace detail {
constexpr DTypeSet arrow_dtypes() {
  DTypeSet set = 0;
  for (const DTypeInfo& d : kDTypes)
    if (d.arrow != 0) set |= dtypes(d.id);
  return set;
}

inline Status describe_arrow_c(const ArrowSchema& s, const ArrowArray& a, DLDevice device, Tensor& out) {
  arrow_c::ColumnType type;
  DLBRIDGE_TRY(arrow_c::read_type(s, type));
  if (a.release == nullptr) return malformed("the Arrow array is released already. Hint: each may be imported once");
  const arrow_c::Part part{&a, 0, a.length};
  const arrow_c::Part* shared = nullptr;
  return arrow_c::read_column({s, type, {&part, 1}, device}, {}, out, nullptr, &shared);
}

constexpr caps arrow_c_caps(std::string_view name, DeviceSet devices) {
  return {.name = name,
          .dtypes = arrow_dtypes(),
          .devices = devices,
          .min_rank = 1,
          .max_rank = 1,
          .strides = stride_rule::c_contig,
          .read_only = true,
          .source = source_kind::container,
          .result = result_kind::owner};
}
}  // namespace detail

template <>
struct converter<ArrowCData> {
  static constexpr caps capabilities = detail::arrow_c_caps("ArrowArray (C Data)", kOnHost);
  static Status describe(const ArrowCData& x, Tensor& out) {
    return detail::describe_arrow_c(x.schema, x.array, kCpuDevice, out);
  }
  static ArrowCData to(Tensor&& t, const options&) {
    ArrowCData out;
    arrow_c::export_schema(t, out.schema);
    arrow_c::export_array(std::move(t), out.array);
    return out;
  }
};

// The event of the producer is the tensor's ordering token; an exported array carries an event of its own.
template <>
struct converter<ArrowCDevice> {
  static constexpr caps capabilities = detail::arrow_c_caps("ArrowDeviceArray (C Device)", kOnHost | kOnCuda);
  static Status describe(const ArrowCDevice& x, Tensor& out) {
    DLDevice device;
    DLBRIDGE_TRY(arrow_c::device_of(x.array, device));
    DLBRIDGE_TRY(detail::describe_arrow_c(x.schema, x.array.array, device, out));
    out.ready = arrow_c::ordering_of(x.array);
    return {};
  }
  static ArrowCDevice to(Tensor&& t, const options& o) {
    ArrowCDevice out;
    arrow_c::export_schema(t, out.schema);
    throw_if_failed("to<ArrowDeviceArray>",
                    arrow_c::export_device_array(std::move(t), o.sync == sync::event, out.array));
    return out;
  }
};

}  // namespace dlbridge
