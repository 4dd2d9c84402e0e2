// What convert() does to a tensor before it goes in: another order of its axes, another dtype.
#include <cstring>
#include <string>

#include "dlbridge/validate.h"
#include "ndarray/core/promotion.h"
#include "protocols/common/boundary.h"
#include "python/src/bridge.h"
#include "python/src/convert.h"
#include "python/src/kit/tables.h"
#include "python/src/nd/array.h"

namespace dlbridge::py {

namespace {

constexpr char kLayoutForm[] =
    "Give the axes as they are and as they shall be, a letter each: layout='HWC->CHW'; a letter that is new on the "
    "right is an axis of extent 1";

[[noreturn, gnu::cold]] void refuse_layout(const char* operation, std::string_view text, const std::string& why) {
  throw_issue(operation, ErrorCode::kMalformed, "layout is '" + std::string(text) + "': " + why + ". " + kLayoutForm);
}

void check_letters(std::string_view side, std::string_view text, const char* operation) {
  if (side.empty() || side.size() > kMaxDims) refuse_layout(operation, text, "one side of '->' names no axes");
  for (std::size_t i = 0; i < side.size(); ++i) {
    const bool is_letter = (side[i] >= 'A' && side[i] <= 'Z') || (side[i] >= 'a' && side[i] <= 'z');
    if (!is_letter) refuse_layout(operation, text, "'" + std::string(1, side[i]) + "' is no letter");
    if (side.find(side[i], i + 1) != std::string_view::npos)
      refuse_layout(operation, text, "'" + std::string(1, side[i]) + "' stands twice on one side");
  }
}

Status permute(const Tensor& source, const AxisOrder& order, Tensor& out) {
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  for (int k = 0; k < order.ndim; ++k) {
    const int axis = order.axes[k];
    shape[k] = axis < 0 ? 1 : source.dl.shape[axis];
    strides[k] = axis < 0 ? 1 : source.dl.strides[axis];
  }
  out.dl.data = source.dl.data;
  out.dl.device = source.dl.device;
  out.dl.byte_offset = source.dl.byte_offset;
  out.set_dtype(source.dtype());
  out.flags = source.flags;
  out.ready = source.ready;
  return build_layout<StrideUnit::kElements>(out, order.ndim, shape, strides);
}

}  // namespace

AxisOrder parse_layout(PyObject* layout, const char* operation) {
  Py_ssize_t size = 0;
  if (!PyUnicode_Check(layout))
    throw_issue(operation, ErrorCode::kWrongType, "layout is of type " + type_name(layout) + ". " + kLayoutForm);
  const char* utf8 = PyUnicode_AsUTF8AndSize(layout, &size);
  checked(utf8 != nullptr);
  AxisOrder out;
  out.text = {utf8, static_cast<std::size_t>(size)};
  const std::size_t arrow = out.text.find("->");
  if (arrow == std::string_view::npos) refuse_layout(operation, out.text, "it does not say what the axes are now");
  const std::string_view from = out.text.substr(0, arrow), to = out.text.substr(arrow + 2);
  check_letters(from, out.text, operation);
  check_letters(to, out.text, operation);
  for (const char letter : from)
    if (to.find(letter) == std::string_view::npos)
      refuse_layout(operation, out.text, "axis '" + std::string(1, letter) + "' is lost");
  out.source_ndim = static_cast<int>(from.size());
  out.ndim = static_cast<int>(to.size());
  for (int k = 0; k < out.ndim; ++k) {
    const std::size_t axis = from.find(to[static_cast<std::size_t>(k)]);
    out.axes[k] = static_cast<std::int8_t>(axis == std::string_view::npos ? -1 : static_cast<int>(axis));
  }
  return out;
}

Ref with_axes(Ref tensor, const AxisOrder& order, const char* operation) {
  const TensorObject* source = as_tensor(tensor.get());
  if (source->tensor.dl.ndim != order.source_ndim)
    throw_issue(operation, ErrorCode::kMalformed,
                "layout='" + std::string(order.text) + "' is of " + std::to_string(order.source_ndim) +
                    " axes, and the array has " + std::to_string(source->tensor.dl.ndim) +
                    ". Name the axes that the array has");
  Tensor view;
  throw_if_bad(permute(source->tensor, order, view), operation);
  return owned(as_object(wrap_tensor(std::move(view), source->protocol, tensor.get())));
}

DLDataType parse_cast(PyObject* dtype, const char* operation) {
  static PythonFunction make("dlbridge._dtype", "make");
  DLDataType out;
  if (read_dtype(dtype, out)) return out;
  Py_ssize_t size = 0;
  if (PyUnicode_Check(dtype)) {
    const char* text = PyUnicode_AsUTF8AndSize(dtype, &size);
    checked(text != nullptr);
    if (const DTypeInfo* row = find_dtype_by_name({text, static_cast<std::size_t>(size)}); row != nullptr)
      return to_dl(row->id);
  }
  const Ref made(make(dtype));
  if (!read_dtype(made.get(), out))
    throw_issue(operation, ErrorCode::kWrongType, "dtype is of type " + type_name(dtype) + "; give its name");
  return out;
}

Ref cast_tensor(Ref tensor, DLDataType dtype, const char* operation) {
  static PythonFunction package("dlbridge.nd", "ndarray");  // imported once: the copies are arrays of its
  package.get();
  const Tensor& source = as_tensor(tensor.get())->tensor;
  const DTypeInfo* const target = find_dtype(dtype);
  const auto casts = [](const DTypeInfo* row) { return row != nullptr && nd::core::is_supported(row->id); };
  if (!casts(target) || !casts(&source.dtype()))
    throw_issue(operation, ErrorCode::kRefused,
                "a cast from " + std::string(source.dtype().name) + " to " + dtype_name(dtype) +
                    " is none of dlbridge.nd's, which casts bool, integers, float16, bfloat16, float32, float64, "
                    "complex64 and complex128. Cast it in its own framework first");
  if (source.dl.dtype.code == kDLComplex && dtype.code != kDLComplex && dtype.code != kDLBool)
    throw_issue(operation, ErrorCode::kRefused,
                "a cast from " + std::string(source.dtype().name) + " to " + dtype_name(dtype) +
                    " drops the imaginary parts. Take x.real first if that is meant");
  const Ref array = owned(nd::adopt(as_tensor(tensor.get())));
  nd::NewArray out;
  throw_if_bad(nd::core::copy_as(nd::tensor_of(array.get()), target->id, nd::core::CopyOrder::kKeep, out.tensor()),
               operation);
  return Ref(out.commit());
}

}  // namespace dlbridge::py
