// The metadata of an Arrow field, and the extension type arrow.fixed_shape_tensor in it: read and written.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "dlbridge/errors.h"
#include "dlbridge/tensor.h"

namespace dlbridge::arrow_c {

inline constexpr std::string_view kExtensionName = "ARROW:extension:name";
inline constexpr std::string_view kExtensionMetadata = "ARROW:extension:metadata";
inline constexpr std::string_view kTensorExtension = "arrow.fixed_shape_tensor";

// Empty where the field is of no extension type.
struct Extension {
  std::string_view name;
  std::string_view metadata;
};

// The block holds an int32 count and, for each pair, an int32 length and the bytes of key and value, in native order.
// `limit`: how many bytes may be read. The ABI says no length; a producer's numbers are believed as they are there.
inline Status read_extension(const char* metadata, Extension& out, std::size_t limit = INT32_MAX) {
  out = {};
  if (metadata == nullptr) return {};
  std::size_t at = 0;
  const auto take_length = [&](std::int32_t& value) {
    if (limit - at < sizeof(value)) return false;
    std::memcpy(&value, metadata + at, sizeof(value));
    at += sizeof(value);
    return value >= 0;
  };
  const auto take_text = [&](std::string_view& text) {
    std::int32_t length = 0;
    if (!take_length(length) || limit - at < static_cast<std::size_t>(length)) return false;
    text = {metadata + at, static_cast<std::size_t>(length)};
    at += static_cast<std::size_t>(length);
    return true;
  };
  std::int32_t count = 0;
  bool good = take_length(count);
  for (std::int32_t i = 0; good && i < count; ++i) {
    std::string_view key, value;
    good = take_text(key) && take_text(value);
    if (good && key == kExtensionName) out.name = value;
    if (good && key == kExtensionMetadata) out.metadata = value;
  }
  return good ? Status()
              : malformed("the metadata of the Arrow schema has a negative or an impossible length. This "
                          "must be fixed in the producer");
}

namespace detail {
// As much of JSON as the metadata of arrow.fixed_shape_tensor is made of. Every function returns false for anything
// that is not well formed.
class Json {
 public:
  explicit Json(std::string_view text) noexcept : text_(text) {}

  bool take(char c) noexcept {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool ended() noexcept {
    skip_blanks();
    return at_ == text_.size();
  }
  bool take_word(std::string_view word) noexcept {
    skip_blanks();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  // The text between the quotes, escapes as they are: no key that is looked for has one.
  bool take_string(std::string_view& out) noexcept {
    if (!take('"')) return false;
    const std::size_t first = at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) return false;
    out = text_.substr(first, at_++ - first);
    return true;
  }
  bool take_integer(std::int64_t& out) noexcept {
    skip_blanks();
    out = 0;
    const std::size_t first = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(out, 10, &out) || __builtin_add_overflow(out, text_[at_] - '0', &out)) return false;
    return at_ > first;
  }
  // `take_item` for each item of a list.
  template <class TakeItem>
  bool take_list(TakeItem take_item) {
    if (!take('[')) return false;
    if (take(']')) return true;
    do
      if (!take_item()) return false;
    while (take(','));
    return take(']');
  }

 private:
  void skip_blanks() noexcept {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

struct Dims {
  std::int64_t values[kMaxDims];
  std::int32_t count = 0;

  bool take_from(Json& json) {
    count = 0;
    return json.take_list([&] { return count < kMaxDims && json.take_integer(values[count++]); });
  }
};
}  // namespace detail

// What arrow.fixed_shape_tensor says of one element: extents as they lie in memory, row-major, and which of them each
// axis of the tensor is.
struct TensorShape {
  detail::Dims extents;
  detail::Dims order;
};

inline Status read_tensor_shape(std::string_view metadata, TensorShape& out) {
  using detail::Json;
  Json json(metadata);
  bool has_shape = false, has_order = false;
  detail::Dims names;
  const auto take_names = [&] {
    std::string_view name;
    return json.take_list([&] { return ++names.count <= kMaxDims && json.take_string(name); });
  };
  const auto take_pair = [&] {
    std::string_view key;
    if (!json.take_string(key) || !json.take(':')) return false;
    if (key == "shape") return has_shape = out.extents.take_from(json);
    if (key == "permutation") return json.take_word("null") || (has_order = out.order.take_from(json));
    return key == "dim_names" && (json.take_word("null") || take_names());
  };
  bool good = json.take('{');
  if (good && !json.take('}')) {
    do good = take_pair();
    while (good && json.take(','));
    good = good && json.take('}');
  }
  good = good && json.ended() && has_shape && (names.count == 0 || names.count == out.extents.count);
  if (good && has_order) {
    std::array<bool, kMaxDims> seen{};
    good = out.order.count == out.extents.count;
    for (std::int32_t i = 0; good && i < out.order.count; ++i) {
      const std::int64_t axis = out.order.values[i];
      good = axis >= 0 && axis < out.order.count && !std::exchange(seen[static_cast<std::size_t>(axis)], true);
    }
  } else {
    out.order.count = out.extents.count;
    for (std::int32_t i = 0; i < out.order.count; ++i) out.order.values[i] = i;
  }
  if (good) return {};
  return malformed("the metadata of arrow.fixed_shape_tensor is '" + std::string(metadata.substr(0, 200)) +
                   "', not JSON with a shape, and a permutation and dim_names of that length where they are there. "
                   "This must be fixed in the producer");
}

// The block for a field of arrow.fixed_shape_tensor.
inline std::string tensor_metadata(const std::int64_t* extents, std::int32_t count) {
  std::string json = "{\"shape\":[";
  for (std::int32_t i = 0; i < count; ++i) json += (i > 0 ? "," : "") + std::to_string(extents[i]);
  json += "]}";
  std::string block;
  const auto put_length = [&](std::size_t length) {
    const auto value = static_cast<std::int32_t>(length);
    block.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  put_length(2);
  for (const std::string_view text : {kExtensionName, kTensorExtension, kExtensionMetadata, std::string_view(json)}) {
    put_length(text.size());
    block.append(text);
  }
  return block;
}

}  // namespace dlbridge::arrow_c
