// Arrow's C Data and C Device interfaces, with no Arrow library: 1-D arrays of fixed-width numbers without nulls.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

// The ABI structs, under the guards that the specification gives them: whoever defines them first wins.
extern "C" {
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
#endif
#ifndef ARROW_C_DEVICE_DATA_INTERFACE
#define ARROW_C_DEVICE_DATA_INTERFACE
typedef int32_t ArrowDeviceType;
#define ARROW_DEVICE_CPU 1
#define ARROW_DEVICE_CUDA 2
#define ARROW_DEVICE_CUDA_HOST 3
#define ARROW_DEVICE_CUDA_MANAGED 13
struct ArrowDeviceArray {
  struct ArrowArray array;
  int64_t device_id;
  ArrowDeviceType device_type;
  void* sync_event;
  int64_t reserved[3];
};
#endif
}

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
struct ArrowFormat {
  char format;
  DType dtype;
};
inline constexpr ArrowFormat kArrowFormats[] = {
    {'c', DType::kInt8},    {'C', DType::kUInt8},   {'s', DType::kInt16},   {'S', DType::kUInt16},
    {'i', DType::kInt32},   {'I', DType::kUInt32},  {'l', DType::kInt64},   {'L', DType::kUInt64},
    {'e', DType::kFloat16}, {'f', DType::kFloat32}, {'g', DType::kFloat64},
};
constexpr DTypeSet arrow_dtypes() {
  DTypeSet set = 0;
  for (const ArrowFormat& row : kArrowFormats) set |= dtypes(row.dtype);
  return set;
}
inline const DTypeInfo* arrow_dtype(const char* format) {
  if (format == nullptr || format[0] == 0 || format[1] != 0) return nullptr;
  for (const ArrowFormat& row : kArrowFormats)
    if (row.format == format[0]) return &info(row.dtype);
  return nullptr;
}

// True where a validity bitmap marks a null within the array.
inline bool has_null(const ArrowArray& a, bool on_host) {
  if (a.null_count == 0 || a.n_buffers < 1 || a.buffers[0] == nullptr) return false;
  if (a.null_count > 0 || !on_host) return true;  // -1: unknown; a device's bitmap is not read here
  const auto* bits = static_cast<const unsigned char*>(a.buffers[0]);
  for (std::int64_t i = a.offset; i < a.offset + a.length; ++i)
    if ((bits[i / 8] >> (i % 8) & 1) == 0) return true;
  return false;
}

inline Status describe_arrow_c(const ArrowSchema& s, const ArrowArray& a, DLDevice device, Tensor& out) {
  if (s.release == nullptr || a.release == nullptr)
    return malformed("the Arrow schema or array is released already. Hint: each may be imported once");
  const DTypeInfo* dtype = arrow_dtype(s.format);
  if (dtype == nullptr || s.dictionary != nullptr || a.dictionary != nullptr)
    return refused(std::string("expected an array of plain fixed-width numbers, got Arrow format '") +
                   (s.format != nullptr ? s.format : "") + (s.dictionary != nullptr ? "', dictionary-encoded" : "'") +
                   ". Hint: booleans are bit-packed in Arrow; cast to uint8 first");
  if (a.length < 0 || a.offset < 0 || a.n_buffers != 2 || a.buffers == nullptr)
    return malformed("the Arrow array has length " + std::to_string(a.length) + ", offset " + std::to_string(a.offset) +
                     " and " + std::to_string(a.n_buffers) +
                     " buffers; a primitive array has two, and no negative "
                     "numbers. The producer's struct is damaged");
  if (has_null(a, is_host(device)))
    return refused("the Arrow array has nulls, and a tensor has no place for them. Hint: fill_null() or drop_null()");
  const auto* data = static_cast<const char*>(a.buffers[1]);
  if (data != nullptr) data += a.offset * dtype->itemsize;
  return describe_memory(out, *dtype, data, device, 1, &a.length, nullptr, true);  // Arrow data is immutable
}

// What the release callbacks of an exported array free.
struct ArrowExport {
  Tensor tensor;
  const void* buffers[2] = {nullptr, nullptr};
  cuda::CUevent event = nullptr;

  ~ArrowExport() {
    if (event != nullptr) static_cast<void>(cuda::functions().event_destroy(event));
  }
  static void release_array(ArrowArray* a) noexcept {
    delete static_cast<ArrowExport*>(a->private_data);
    a->release = nullptr;
  }
  static void release_schema(ArrowSchema* s) noexcept { s->release = nullptr; }  // its strings are static
};

inline const char* arrow_format(DType id) {
  static constexpr auto kText = [] {
    std::array<std::array<char, 2>, kDTypes.size()> text{};
    for (const ArrowFormat& row : kArrowFormats) text[static_cast<std::size_t>(row.dtype)] = {row.format, 0};
    return text;
  }();
  return kText[static_cast<std::size_t>(id)].data();
}

// Fills the structs and takes the tensor; nothing can throw any more.
inline void export_arrow(ArrowExport* kept, Tensor&& t, ArrowSchema& s, ArrowArray& a) noexcept {
  s.format = arrow_format(t.dtype().id);
  s.name = "";
  s.release = &ArrowExport::release_schema;
  a.length = t.dl.shape[0];
  a.n_buffers = 2;
  kept->buffers[1] = t.dl.data;
  kept->tensor = std::move(t);
  a.buffers = kept->buffers;
  a.private_data = kept;
  a.release = &ArrowExport::release_array;
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
    detail::export_arrow(new detail::ArrowExport, std::move(t), out.schema, out.array);
    return out;
  }
};

// The event of the producer is the tensor's ordering token; an exported array carries an event of its own.
template <>
struct converter<ArrowCDevice> {
  static constexpr caps capabilities = detail::arrow_c_caps("ArrowDeviceArray (C Device)", kOnHost | kOnCuda);
  static Status describe(const ArrowCDevice& x, Tensor& out) {
    const DLDevice device{static_cast<DLDeviceType>(x.array.device_type), static_cast<std::int32_t>(x.array.device_id)};
    if (!is_host(device) && !is_cuda(device))
      return refused("expected memory of the CPU or of CUDA, got " + device_name(device));
    DLBRIDGE_TRY(detail::describe_arrow_c(x.schema, x.array.array,
                                          is_host(device) ? DLDevice{device.device_type, 0} : device, out));
    // The specification: for CUDA, sync_event points to a cudaEvent_t; null means that nothing is to be waited for.
    if (x.array.sync_event != nullptr)
      out.ready = Ordering::at_event(*static_cast<const std::uintptr_t*>(x.array.sync_event));
    return {};
  }
  static ArrowCDevice to(Tensor&& t, const options& o) {
    auto kept = std::make_unique<detail::ArrowExport>();
    ArrowCDevice out;
    out.array.device_id = is_host(t.dl.device) ? -1 : t.dl.device.device_id;
    out.array.device_type = static_cast<ArrowDeviceType>(t.dl.device.device_type);
    if (is_cuda(t.dl.device) && !t.ready.is_ready() && o.sync == sync::event) {
      throw_if_failed("to<ArrowDeviceArray>", record_event(t, kept->event));
      out.array.sync_event = &kept->event;
    }
    detail::export_arrow(kept.release(), std::move(t), out.schema, out.array.array);
    return out;
  }

 private:
  // An event that happens when the tensor's data is ready.
  static Status record_event(const Tensor& t, cuda::CUevent& event) {
    const int device = t.dl.device.device_id;
    const cuda::Functions& fn = cuda::functions();
    cuda::DeviceGuard guard;
    DLBRIDGE_TRY(guard.enter(device));
    DLBRIDGE_TRY(cuda::check(fn.event_create(&event, cuda::kEventDisableTiming), "cuEventCreate"));
    StreamHandle relay = 0;
    DLBRIDGE_TRY(cuda::relay_stream(device, relay));
    DLBRIDGE_TRY(cuda::order(relay, t.ready, device));
    return cuda::check(fn.event_record(event, cuda::detail::as_stream(relay)), "cuEventRecord");
  }
};

}  // namespace dlbridge
