// Arrow C++: std::shared_ptr<arrow::Tensor> and std::shared_ptr<arrow::Array>, through Arrow's own DLPack import. CPU.
#pragma once

// Arrow carries DLPack's header under a name of its own and with the same guard: ours stands first.
#include "dlbridge/dlpack.h"

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/c/dlpack.h>
#include <arrow/tensor.h>
#include <arrow/type.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge {

namespace detail {
struct ArrowType {
  arrow::Type::type arrow;
  DType dtype;
};
inline constexpr ArrowType kArrowTypes[] = {
    {arrow::Type::INT8, DType::kInt8},          {arrow::Type::UINT8, DType::kUInt8},
    {arrow::Type::INT16, DType::kInt16},        {arrow::Type::UINT16, DType::kUInt16},
    {arrow::Type::INT32, DType::kInt32},        {arrow::Type::UINT32, DType::kUInt32},
    {arrow::Type::INT64, DType::kInt64},        {arrow::Type::UINT64, DType::kUInt64},
    {arrow::Type::HALF_FLOAT, DType::kFloat16}, {arrow::Type::FLOAT, DType::kFloat32},
    {arrow::Type::DOUBLE, DType::kFloat64},
};
constexpr DTypeSet arrow_cpp_dtypes() {
  DTypeSet set = 0;
  for (const ArrowType& row : kArrowTypes) set |= dtypes(row.dtype);
  return set;
}
inline Status find_arrow_dtype(const arrow::DataType& type, const DTypeInfo*& out) {
  for (const ArrowType& row : kArrowTypes)
    if (row.arrow == type.id()) {
      out = &info(row.dtype);
      return {};
    }
  return refused("expected fixed-width numbers, got arrow type " + type.ToString() +
                 ". Hint: booleans are bit-packed in Arrow; cast to uint8 first");
}

// Arrow's import consumes the struct, also where it fails: from the call on the tensor is not ours any more.
template <class X, class Import>
X import_by_arrow(Tensor&& t, const caps& c, Import import) {
  arrow::Result<X> made = import(std::move(t).release());
  if (!made.ok())
    throw_conversion("to", c,
                     {ErrorCode::kRefused, "Arrow's import failed with " + made.status().ToString() +
                                               " Hint: the tensor is released; Arrow consumes it on error"});
  return std::move(made).ValueUnsafe();
}

constexpr caps arrow_caps(std::string_view name, std::int32_t max_rank, std::int32_t min_rank, stride_rule strides) {
  return {.name = name,
          .dtypes = arrow_cpp_dtypes(),
          .devices = kOnCpu,
          .min_rank = min_rank,
          .max_rank = max_rank,
          .strides = strides,
          .read_only = true,
          .source = source_kind::handle,
          .result = result_kind::owner,
          .consumes_on_error = true};
}
}  // namespace detail

template <>
struct converter<std::shared_ptr<arrow::Tensor>> {
  using X = std::shared_ptr<arrow::Tensor>;
  static constexpr caps capabilities =
      detail::arrow_caps("std::shared_ptr<arrow::Tensor>", kMaxDims, 1, stride_rule::non_negative);

  static Status describe(const X& x, Tensor& out) {
    if (x == nullptr) return malformed("the shared_ptr<arrow::Tensor> is null");
    const DTypeInfo* dtype = nullptr;
    DLBRIDGE_TRY(detail::find_arrow_dtype(*x->type(), dtype));
    if (x->data() != nullptr && !x->data()->is_cpu())
      return refused("expected memory of the CPU, got a buffer on " + x->data()->device()->ToString() +
                     ". Hint: arrow::Buffer::Copy, or the C Device interface (ArrowCDevice)");
    out.set_dtype(*dtype);
    out.dl.data = const_cast<std::uint8_t*>(x->raw_data());
    out.flags = x->is_mutable() ? 0 : kFlagReadOnly;
    return build_layout<StrideUnit::kBytes>(out, detail::as(x->shape().size()), x->shape().data(), x->strides().data());
  }
  static X to(Tensor&& t, const options&) {
    return detail::import_by_arrow<X>(std::move(t), capabilities, &arrow::dlpack::ImportTensorVersioned);
  }
};

template <>
struct converter<std::shared_ptr<arrow::Array>> {
  using X = std::shared_ptr<arrow::Array>;
  static constexpr caps capabilities = detail::arrow_caps("std::shared_ptr<arrow::Array>", 1, 1, stride_rule::c_contig);

  static Status describe(const X& x, Tensor& out) {
    if (x == nullptr) return malformed("the shared_ptr<arrow::Array> is null");
    const DTypeInfo* dtype = nullptr;
    DLBRIDGE_TRY(detail::find_arrow_dtype(*x->type(), dtype));
    if (x->null_count() != 0)
      return refused("the arrow::Array has " + std::to_string(x->null_count()) +
                     " nulls, and a tensor has no place for them. Hint: fill_null() or drop_null()");
    const auto& buffer = x->data()->buffers[1];
    if (buffer != nullptr && !buffer->is_cpu())
      return refused("expected memory of the CPU, got a buffer on " + buffer->device()->ToString() +
                     ". Hint: the C Device interface (ArrowCDevice)");
    const std::int64_t length = x->length();
    const std::uint8_t* data = buffer == nullptr ? nullptr : buffer->data() + x->offset() * dtype->itemsize;
    return describe_memory(out, *dtype, data, kCpuDevice, 1, &length, nullptr, true);  // arrays are immutable
  }
  static X to(Tensor&& t, const options&) {
    t.dl.strides[0] = 1;  // of a single element it may be anything, and Arrow looks at it all the same
    return detail::import_by_arrow<X>(std::move(t), capabilities, &arrow::dlpack::ImportArrayVersioned);
  }
};

}  // namespace dlbridge
