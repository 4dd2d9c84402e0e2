// Devices: names and properties of DLPack's device types, in one table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dlbridge/dlpack.h"

namespace dlbridge {

struct DeviceTypeInfo {
  std::int32_t type;  // DLDeviceType
  std::string_view name;
  bool host_readable;   // ordinary loads from the CPU work
  bool cuda;            // CUDA streams order access to it, and __cuda_array_interface__ may offer it
  bool direct_address;  // `data` is an address: byte_offset may be folded in (not so for Metal, OpenCL, …)
};

inline constexpr std::array<DeviceTypeInfo, 16> kDeviceTypes{{
    {kDLCPU, "cpu", true, false, true},
    {kDLCUDA, "cuda", false, true, true},
    {kDLCUDAHost, "cuda_host", true, false, true},
    {kDLOpenCL, "opencl", false, false, false},
    {kDLVulkan, "vulkan", false, false, false},
    {kDLMetal, "metal", false, false, false},
    {kDLVPI, "vpi", false, false, false},
    {kDLROCM, "rocm", false, false, true},
    {kDLROCMHost, "rocm_host", true, false, true},
    {kDLExtDev, "ext_dev", false, false, false},
    {kDLCUDAManaged, "cuda_managed", false, true, true},
    {kDLOneAPI, "oneapi", false, false, true},
    {kDLWebGPU, "webgpu", false, false, false},
    {kDLHexagon, "hexagon", false, false, false},
    {kDLMAIA, "maia", false, false, false},
    {kDLTrn, "trn", false, false, false},
}};

constexpr const DeviceTypeInfo* find_device_type(std::int32_t type) noexcept {
  for (const DeviceTypeInfo& d : kDeviceTypes)
    if (d.type == type) return &d;
  return nullptr;
}

constexpr bool is_host(DLDevice d) noexcept {
  return d.device_type == kDLCPU || d.device_type == kDLCUDAHost || d.device_type == kDLROCMHost;
}
constexpr bool is_cuda(DLDevice d) noexcept { return d.device_type == kDLCUDA || d.device_type == kDLCUDAManaged; }
constexpr bool same_device(DLDevice a, DLDevice b) noexcept {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}

// "cpu", "cuda:0", "cuda_host"; an unknown type prints its number.
inline std::string device_name(DLDevice d) {
  const DeviceTypeInfo* t = find_device_type(d.device_type);
  if (t == nullptr) return "device_type_" + std::to_string(d.device_type) + ":" + std::to_string(d.device_id);
  if (is_host(d)) return std::string(t->name);
  return std::string(t->name) + ":" + std::to_string(d.device_id);
}

// Reads "cpu", "cuda", "cuda:1"; nullopt where the text is not a device.
inline std::optional<DLDevice> parse_device(std::string_view text) noexcept {
  const std::size_t colon = text.find(':');
  std::int32_t id = 0;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    if (digits.empty()) return std::nullopt;
    for (const char c : digits)
      if (c < '0' || c > '9' || __builtin_mul_overflow(id, 10, &id) || __builtin_add_overflow(id, c - '0', &id))
        return std::nullopt;
  }
  for (const DeviceTypeInfo& d : kDeviceTypes)
    if (d.name == text.substr(0, colon)) return DLDevice{static_cast<DLDeviceType>(d.type), id};
  return std::nullopt;
}

namespace detail {
consteval bool device_table_matches_predicates() {
  for (const DeviceTypeInfo& d : kDeviceTypes) {
    const DLDevice device{static_cast<DLDeviceType>(d.type), 0};
    if (is_host(device) != d.host_readable || is_cuda(device) != d.cuda) return false;
  }
  return true;
}
static_assert(device_table_matches_predicates());
}  // namespace detail

}  // namespace dlbridge
