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

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

void check_letters(std::string_view side, std::string_view text, const char* operation) {
  if (side.empty() || side.size() > kMaxDims) refuse_layout(operation, text, "one side of '->' names no axes");
  for (std::size_t i = 0; i < side.size(); ++i) {
    const bool is_letter = (side[i] >= 'A' && side[i] <= 'Z') || (side[i] >= 'a' && side[i] <= 'z');
    if (!is_letter) refuse_layout(operation, text, quoted(side.substr(i, 1)) + " is no letter");
    if (side.find(side[i], i + 1) != std::string_view::npos)
      refuse_layout(operation, text, quoted(side.substr(i, 1)) + " stands twice on one side");
  }
}

void check_none_lost(std::string_view from, const AxisLayout& layout, const char* operation) {
  for (std::size_t i = 0; i < from.size(); ++i)
    if (layout.to.find(from[i]) == std::string_view::npos)
      refuse_layout(operation, layout.text, "axis " + quoted(from.substr(i, 1)) + " of " + quoted(from) + " is lost");
}

std::string_view text_of(PyObject* string) {
  Py_ssize_t size = 0;
  const char* const utf8 = PyUnicode_AsUTF8AndSize(string, &size);
  checked(utf8 != nullptr);
  return {utf8, static_cast<std::size_t>(size)};
}

// What the array's own framework says of its axes; it lives as long as `kept`.
std::string_view own_axes(PyObject* array, const AxisLayout& layout, Ref& kept, const char* operation) {
  static PythonFunction axes_of("dlbridge._axes", "axes_of");
  kept = axes_of(array);
  const std::string_view said = text_of(kept.get());
  if (said.empty())
    refuse_layout(operation, layout.text,
                  "it does not say what the axes are now, and neither does an array of type " + type_name(array));
  check_letters(said, layout.text, operation);
  check_none_lost(said, layout, operation);
  return said;
}

// An axis that is new lies nowhere in the source: extent 1.
Status permute(const Tensor& source, std::string_view from, std::string_view to, Tensor& out) {
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  for (std::size_t k = 0; k < to.size(); ++k) {
    const std::size_t axis = from.find(to[k]);
    shape[k] = axis == std::string_view::npos ? 1 : source.dl.shape[axis];
    strides[k] = axis == std::string_view::npos ? 1 : source.dl.strides[axis];
  }
  out.dl.data = source.dl.data;
  out.dl.device = source.dl.device;
  out.dl.byte_offset = source.dl.byte_offset;
  out.set_dtype(source.dtype());
  out.flags = source.flags;
  out.ready = source.ready;
  return build_layout<StrideUnit::kElements>(out, static_cast<int>(to.size()), shape, strides);
}

}  // namespace

AxisLayout parse_layout(PyObject* layout, const char* operation) {
  if (!PyUnicode_Check(layout))
    throw_issue(operation, ErrorCode::kWrongType, "layout is of type " + type_name(layout) + ". " + kLayoutForm);
  AxisLayout out;
  out.text = out.to = text_of(layout);
  if (const std::size_t arrow = out.text.find("->"); arrow != std::string_view::npos) {
    out.from = out.text.substr(0, arrow);
    out.to = out.text.substr(arrow + 2);
    check_letters(out.from, out.text, operation);
  }
  check_letters(out.to, out.text, operation);
  check_none_lost(out.from, out, operation);
  return out;
}

Ref with_axes(Ref tensor, const AxisLayout& layout, PyObject* array, const char* operation) {
  const TensorObject* source = as_tensor(tensor.get());
  Ref kept;
  const std::string_view from = layout.from.empty() ? own_axes(array, layout, kept, operation) : layout.from;
  if (source->tensor.dl.ndim != static_cast<int>(from.size()))
    throw_issue(operation, ErrorCode::kMalformed,
                "layout='" + std::string(layout.text) + "' is of " + std::to_string(from.size()) +
                    " axes, and the array has " + std::to_string(source->tensor.dl.ndim) +
                    ". Name the axes that the array has");
  Tensor view;
  throw_if_bad(permute(source->tensor, from, layout.to, view), operation);
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
