// libtorch: at::Tensor, both ways, sharing memory and owner, with no allocation besides torch's own. CPU and CUDA.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"
#include "dlbridge/torch_caps.h"

namespace dlbridge {

namespace detail {
struct TorchDType {
  at::ScalarType torch;
  DType dtype;
};
inline constexpr std::array<TorchDType, 22> kTorchDTypes{{
    {at::kBool, DType::kBool},
    {at::kChar, DType::kInt8},
    {at::kShort, DType::kInt16},
    {at::kInt, DType::kInt32},
    {at::kLong, DType::kInt64},
    {at::kByte, DType::kUInt8},
    {at::kUInt16, DType::kUInt16},
    {at::kUInt32, DType::kUInt32},
    {at::kUInt64, DType::kUInt64},
    {at::kHalf, DType::kFloat16},
    {at::kBFloat16, DType::kBFloat16},
    {at::kFloat, DType::kFloat32},
    {at::kDouble, DType::kFloat64},
    {at::kComplexHalf, DType::kComplex32},
    {at::kComplexFloat, DType::kComplex64},
    {at::kComplexDouble, DType::kComplex128},
    {at::kFloat8_e4m3fn, DType::kFloat8E4M3FN},
    {at::kFloat8_e4m3fnuz, DType::kFloat8E4M3FNUZ},
    {at::kFloat8_e5m2, DType::kFloat8E5M2},
    {at::kFloat8_e5m2fnuz, DType::kFloat8E5M2FNUZ},
    {at::kFloat8_e8m0fnu, DType::kFloat8E8M0FNU},
    {at::kFloat4_e2m1fn_x2, DType::kFloat4E2M1FNx2},
}};

struct TorchTables {
  std::array<std::int8_t, 64> dtype_of{};                 // by ScalarType; -1: none
  std::array<at::ScalarType, kDTypes.size()> torch_of{};  // by DType
  DTypeSet known = 0;
};
consteval TorchTables make_torch_tables() {
  TorchTables tables;
  for (auto& d : tables.dtype_of) d = -1;
  for (const TorchDType& row : kTorchDTypes) {
    tables.dtype_of[static_cast<std::size_t>(row.torch)] = static_cast<std::int8_t>(row.dtype);
    tables.torch_of[static_cast<std::size_t>(row.dtype)] = row.torch;
    tables.known |= dtypes(row.dtype);
  }
  return tables;
}
inline constexpr TorchTables kTorch = make_torch_tables();

// The stream that torch works on, on this thread: of any torch, without CUDA headers.
inline StreamHandle torch_stream(c10::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  const auto handle = reinterpret_cast<StreamHandle>(guard.getStream(device).native_handle());
  return handle == 0 ? kLegacyStream : handle;
}

// Why a tensor's elements are not what its memory says; null: they are. Torch's own DLPack export lets some pass.
inline const char* torch_obstacle(const at::Tensor& x) {
  if (!x.defined()) return "an undefined tensor";
  if (x.layout() != at::kStrided) return "a tensor that is not strided (sparse or opaque). Hint: x.to_dense()";
  if (x.requires_grad()) return "a tensor that requires grad; its writes would escape autograd. Hint: x.detach()";
  if (x.is_conj()) return "a lazily conjugated tensor. Hint: x.resolve_conj()";
  if (x.is_neg()) return "a lazily negated tensor. Hint: x.resolve_neg()";
  if (x._is_zerotensor()) return "a tensor of symbolic zeros, which has no memory. Hint: x.clone()";
  if (!x.has_storage()) return "a tensor without storage. Hint: unwrap the subclass first";
  return nullptr;
}
}  // namespace detail

template <>
struct converter<at::Tensor> {
  static constexpr caps capabilities = kTorchCaps;
  static_assert(capabilities.dtypes == detail::kTorch.known);

  static Status describe(const at::Tensor& x, Tensor& out) {
    if (const char* obstacle = detail::torch_obstacle(x))
      return refused(std::string("expected a plain tensor, got ") + obstacle);
    const auto scalar = static_cast<std::size_t>(x.scalar_type());
    const std::int8_t id = scalar < detail::kTorch.dtype_of.size() ? detail::kTorch.dtype_of[scalar] : std::int8_t{-1};
    if (id < 0)
      return refused(std::string("expected a dtype of DLPack, got ") + c10::toString(x.scalar_type()) +
                     ". Hint: x.to(another dtype), or x.int_repr() of a quantized tensor");
    DLDevice device = kCpuDevice;
    if (x.device().is_cuda()) {
      device = {kDLCUDA, x.device().index()};
      out.ready = Ordering::on_stream(detail::torch_stream(x.device()));
    } else if (!x.device().is_cpu()) {
      return refused("expected memory of the CPU or of CUDA, got " + x.device().str() + ". Hint: x.to(at::kCPU)");
    }
    return describe_memory(out, kDTypes[static_cast<std::size_t>(id)], x.data_ptr(), device, x.dim(), x.sizes().data(),
                           x.strides().data(), false);
  }

  // The tensor's own count is the owner: nothing is allocated.
  static Tensor from(at::Tensor&& x, const options&) {
    Tensor out;
    detail::check_described(capabilities, describe(x, out));
    out.owner = Owner(x.unsafeReleaseTensorImpl(), &release);
    return out;
  }

  // torch does not consume on error: the tensor it makes owns nothing until all that may throw is done.
  static at::Tensor to(Tensor&& t, const options& o) {
    const at::Device device = is_cuda(t.dl.device)
                                  ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(t.dl.device.device_id))
                                  : at::Device(at::kCPU);
    // torch works on its own current stream, which need not be the caller's.
    if (is_cuda(t.dl.device) && !o.stream && o.sync == sync::event)
      order_for_use(t, {.stream = stream_ref::from_handle(detail::torch_stream(device))});
    const auto rank = static_cast<std::size_t>(t.dl.ndim);
    at::Tensor out =
        at::for_blob(t.dl.data, {t.dl.shape, rank})
            .strides(at::IntArrayRef(t.dl.strides, rank))
            .options(at::TensorOptions(detail::kTorch.torch_of[static_cast<std::size_t>(t.dtype().id)]).device(device))
            .target_device(device)
            .make_tensor();
    if (t.owner)
      out.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
          at::DataPtr(t.dl.data, t.owner.context(), t.owner.release_function(), device));
    t.owner.forget();
    t = Tensor();
    return out;
  }

 private:
  static void release(void* impl) noexcept {
    // Reclaims the reference that unsafeReleaseTensorImpl() gave up.
    c10::raw::intrusive_ptr::decref(static_cast<c10::intrusive_ptr_target*>(static_cast<at::TensorImpl*>(impl)));
  }
};

}  // namespace dlbridge
