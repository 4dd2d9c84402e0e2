// Arrow's format strings <-> the dtype table: what a column's elements are, and how many axes they have.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "dlbridge/arrow_abi.h"
#include "dlbridge/arrow_metadata.h"
#include "dlbridge/dtype.h"
#include "dlbridge/errors.h"
#include "dlbridge/tensor.h"

namespace dlbridge::arrow_c {

// A column as its schema describes it. Axis 0 is that of the rows; fixed-size lists and tensors add the others.
struct ColumnType {
  const DTypeInfo* dtype = nullptr;  // of an element as the tensor has it
  bool packed = false;               // eight to the byte in memory: Arrow's bool
  std::int32_t lists = 0;            // fixed-size lists around the elements, the outermost first
  std::int64_t list_sizes[kMaxDims];
  std::int32_t ndim = 1;
  std::int64_t extents[kMaxDims];  // as they lie in memory, row-major; [0] is not used
  std::int64_t order[kMaxDims];    // axis i of the tensor is axis order[i] in memory
};

namespace detail {
inline constexpr char kFixProducer[] = "This must be fixed in the producer";

// What is stored as an integer, with its meaning beside it. A format that ends with ':' goes on (a time zone follows).
struct TimeFormat {
  std::string_view format;
  std::string_view name;
  DType dtype;
};
inline constexpr TimeFormat kTimes[] = {
    {"tdD", "date32[day]", DType::kInt32},   {"tdm", "date64[ms]", DType::kInt64},
    {"tts", "time32[s]", DType::kInt32},     {"ttm", "time32[ms]", DType::kInt32},
    {"ttu", "time64[us]", DType::kInt64},    {"ttn", "time64[ns]", DType::kInt64},
    {"tss:", "timestamp[s", DType::kInt64},  {"tsm:", "timestamp[ms", DType::kInt64},
    {"tsu:", "timestamp[us", DType::kInt64}, {"tsn:", "timestamp[ns", DType::kInt64},
    {"tDs", "duration[s]", DType::kInt64},   {"tDm", "duration[ms]", DType::kInt64},
    {"tDu", "duration[us]", DType::kInt64},  {"tDn", "duration[ns]", DType::kInt64},
};

inline constexpr char kCastRemedy[] = "Cast the column to numbers first";
inline constexpr char kListRemedy[] =
    "A tensor is rectangular: cast to a fixed-size list, or take the flattened values";
inline constexpr char kDecodeRemedy[] = "Decode the column to its values first, or take its parts";

struct NoTensor {
  std::string_view format;
  std::string_view name;
  const char* remedy;
};
inline constexpr NoTensor kNoTensors[] = {
    {"n", "null", "Give the column a type, or drop it"},
    {"u", "string", kCastRemedy},
    {"U", "large_string", kCastRemedy},
    {"vu", "string_view", kCastRemedy},
    {"z", "binary", kCastRemedy},
    {"Z", "large_binary", kCastRemedy},
    {"vz", "binary_view", kCastRemedy},
    {"w:", "fixed_size_binary", kCastRemedy},
    {"d:", "decimal", "Cast it to float64, or to int64 of the smallest unit"},
    {"tiM", "interval[month]", "Cast it to a duration, or take its fields"},
    {"tiD", "interval[day_time]", "Cast it to a duration, or take its fields"},
    {"tin", "interval[month_day_nano]", "Cast it to a duration, or take its fields"},
    {"+l", "list", kListRemedy},
    {"+L", "large_list", kListRemedy},
    {"+vl", "list_view", kListRemedy},
    {"+vL", "large_list_view", kListRemedy},
    {"+m", "map", kDecodeRemedy},
    {"+s", "struct", "It has a column for each field: dlbridge.columns(table) gives them as a dict of tensors"},
    {"+ud:", "dense_union", kDecodeRemedy},
    {"+us:", "sparse_union", kDecodeRemedy},
    {"+r", "run_end_encoded", kDecodeRemedy},
};

// Formats that end with ':' match what begins with them.
template <class Row, std::size_t kSize>
const Row* find_format(const Row (&rows)[kSize], std::string_view format) noexcept {
  for (const Row& row : rows)
    if (row.format.back() == ':' ? format.starts_with(row.format) : format == row.format) return &row;
  return nullptr;
}

constexpr std::string_view kListFormat = "+w:";
inline bool is_fixed_list(std::string_view format) noexcept { return format.starts_with(kListFormat); }

inline Status read_list_size(std::string_view format, std::int64_t& out) {
  Json digits(format.substr(kListFormat.size()));
  if (digits.take_integer(out) && digits.ended() && out <= INT32_MAX) return {};
  return malformed("the Arrow format '" + std::string(format) + "' gives no list size that fits in 31 bits. " +
                   kFixProducer);
}

inline std::string_view format_of(const ArrowSchema& s) noexcept { return s.format != nullptr ? s.format : ""; }

inline Status check_schema(const ArrowSchema* s) {
  if (s == nullptr || s->release == nullptr)
    return malformed("the Arrow schema, or a child of it, is released already. Hint: each may be imported once");
  if (s->format == nullptr) return malformed(std::string("the Arrow schema has no format ''. ") + kFixProducer);
  return {};
}

inline Status check_children(const ArrowSchema& s, std::int64_t wanted) {
  const bool there = wanted == 0 || (s.children != nullptr && s.children[0] != nullptr);
  if (s.n_children == wanted && there) return {};
  return malformed("the Arrow schema of format '" + std::string(format_of(s)) + "' has " +
                   std::to_string(s.n_children) + (there ? " children" : " children at a null address") +
                   "; it must have " + std::to_string(wanted) + ". " + kFixProducer);
}
}  // namespace detail

// The type as Arrow's documentation spells it: "timestamp[ns, UTC]", "fixed_size_list<float>[3]". For messages, and for
// what a tensor's dtype does not say.
inline std::string type_name(const ArrowSchema& s, int depth = 0) {
  const std::string_view format = detail::format_of(s);
  Extension extension;
  std::string text;
  if (s.dictionary != nullptr && depth < kMaxDims) {
    text = "dictionary<" + type_name(*s.dictionary, depth + 1) + ">";
  } else if (detail::is_fixed_list(format)) {
    const bool inner = s.n_children == 1 && s.children != nullptr && s.children[0] != nullptr && depth < kMaxDims;
    text = "fixed_size_list<" + (inner ? type_name(*s.children[0], depth + 1) : "?") + ">[" +
           std::string(format.substr(detail::kListFormat.size())) + "]";
  } else if (const auto* time = detail::find_format(detail::kTimes, format)) {
    text = time->name;
    if (time->format.back() == ':') {
      const std::string_view zone = format.substr(time->format.size());
      text += (zone.empty() ? "" : ", " + std::string(zone)) + "]";
    }
  } else if (const auto* other = detail::find_format(detail::kNoTensors, format)) {
    text = other->name;
    if (format.starts_with("d:")) text += "(" + std::string(format.substr(2)) + ")";
  } else if (format == "b") {
    text = "bool";
  } else if (const DTypeInfo* dtype = format.size() == 1 ? find_dtype_by_arrow(format[0]) : nullptr) {
    text = dtype->name;
  } else {
    text = "of format '" + std::string(format) + "'";
  }
  if (read_extension(s.metadata, extension).ok() && !extension.name.empty())
    text = std::string(extension.name) + " (stored as " + text + ")";
  return text;
}

namespace detail {
[[gnu::cold]] inline Status refuse_type(const ArrowSchema& s) {
  const std::string_view format = format_of(s);
  const NoTensor* row = s.dictionary != nullptr ? nullptr : find_format(kNoTensors, format);
  const std::string what = "Arrow type " + type_name(s) + " (format '" + std::string(format) + "')";
  if (s.dictionary != nullptr)
    return {ErrorCode::kWrongType, what + ", dictionary-encoded, is no array of numbers. " + kDecodeRemedy};
  if (row == nullptr)
    return malformed("expected an array of plain fixed-width numbers, got Arrow format '" + std::string(format) +
                     "', which the specification does not have. " + kFixProducer);
  return {ErrorCode::kWrongType, what + " is no array of fixed-width numbers. " + row->remedy};
}

[[gnu::cold]] inline Status refuse_depth() {
  return refused("the fixed-size lists are nested deeper than the " + std::to_string(kMaxDims) +
                 " axes that a tensor has. Flatten some of them first");
}

inline Status append_axis(ColumnType& out, std::int64_t extent) {
  if (out.ndim == kMaxDims) return refuse_depth();
  out.order[out.ndim] = out.ndim;
  out.extents[out.ndim++] = extent;
  return {};
}

inline Status append_tensor(ColumnType& out, std::string_view metadata, std::int64_t list_size) {
  TensorShape shape;
  DLBRIDGE_TRY(read_tensor_shape(metadata, shape));
  std::int64_t product = 1;
  bool overflows = false;
  const std::int32_t first = out.ndim;
  for (std::int32_t i = 0; i < shape.extents.count; ++i) {
    overflows |= __builtin_mul_overflow(product, shape.extents.values[i], &product);
    DLBRIDGE_TRY(append_axis(out, shape.extents.values[i]));
  }
  for (std::int32_t i = 0; i < shape.order.count; ++i) out.order[first + i] = first + shape.order.values[i];
  if (!overflows && product == list_size) return {};
  return malformed("the shape of arrow.fixed_shape_tensor '" + std::string(metadata.substr(0, 200)) +
                   "' has another number of elements than its lists of " + std::to_string(list_size) + ". " +
                   kFixProducer);
}

inline Status read_leaf(const ArrowSchema& s, ColumnType& out) {
  const std::string_view format = format_of(s);
  DLBRIDGE_TRY(check_children(s, 0));
  if (s.dictionary != nullptr) return refuse_type(s);
  out.packed = format == "b";
  const TimeFormat* time = find_format(kTimes, format);
  out.dtype = out.packed           ? &info(DType::kBool)
              : time != nullptr    ? &info(time->dtype)
              : format.size() == 1 ? find_dtype_by_arrow(format[0])
                                   : nullptr;
  return out.dtype != nullptr ? Status() : refuse_type(s);
}
}  // namespace detail

// Reads a column's type. TypeError for what is no array of numbers, by its name and with what to do.
inline Status read_type(const ArrowSchema& column, ColumnType& out) {
  out.order[0] = 0;
  out.extents[0] = 0;
  const ArrowSchema* s = &column;
  for (;; s = s->children[0]) {
    DLBRIDGE_TRY(detail::check_schema(s));
    if (s->dictionary != nullptr || !detail::is_fixed_list(s->format)) break;
    std::int64_t size = 0;
    DLBRIDGE_TRY(detail::read_list_size(s->format, size));
    DLBRIDGE_TRY(detail::check_children(*s, 1));
    Extension extension;
    DLBRIDGE_TRY(read_extension(s->metadata, extension));
    if (out.lists == kMaxDims) return detail::refuse_depth();
    out.list_sizes[out.lists++] = size;
    if (extension.name == kTensorExtension) DLBRIDGE_TRY(detail::append_tensor(out, extension.metadata, size));
    else DLBRIDGE_TRY(detail::append_axis(out, size));
  }
  if (detail::find_format(detail::kNoTensors, s->format) != nullptr) return detail::refuse_type(*s);
  return detail::read_leaf(*s, out);
}

// Static text: schemas keep the pointer. Empty where Arrow has no such elements.
inline const char* format_of(DType id) noexcept {
  static constexpr auto kText = [] {
    std::array<std::array<char, 2>, kDTypes.size()> text{};
    for (const DTypeInfo& d : kDTypes) text[static_cast<std::size_t>(d.id)] = {d.arrow, 0};
    return text;
  }();
  return kText[static_cast<std::size_t>(id)].data();
}

}  // namespace dlbridge::arrow_c
