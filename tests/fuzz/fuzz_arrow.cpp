// Arrow's codec: any bytes become a schema, its metadata and arrays, with true memory behind each pointer. What is read
// lies within that memory, a refusal has a reason, and every struct is released once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "dlbridge/arrow_codec.h"
#include "tests/fuzz/check.h"

namespace {

using namespace dlbridge;
using namespace dlbridge::arrow_c;

constexpr std::int64_t kElements = 64;  // behind each buffer, of 8 bytes
constexpr int kDepth = 4;

int released = 0;
void release_schema(ArrowSchema* s) {
  for (std::int64_t i = 0; s->children != nullptr && i < 1; ++i)
    if (s->children[i] != nullptr && s->children[i]->release != nullptr) s->children[i]->release(s->children[i]);
  s->release = nullptr;
  ++released;
}
void release_array(ArrowArray* a) {
  a->release = nullptr;
  ++released;
}

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::uint8_t byte() { return size_ == 0 ? 0 : (--size_, *data_++); }
  // Mostly a small number, sometimes one at the edge of what 64 bits hold.
  std::int64_t number() {
    constexpr std::int64_t kEdges[] = {INT64_MAX, INT64_MIN, -1, INT64_MAX / 8, std::int64_t{1} << 62, INT32_MAX};
    const std::uint8_t b = byte();
    return b < 200 ? b % 33 : b < 240 ? kEdges[b % 6] : static_cast<std::int8_t>(byte());
  }
  std::string text(std::size_t most) {
    const std::size_t n = std::min<std::size_t>({byte() % (most + 1), size_, most});
    std::string out(reinterpret_cast<const char*>(data_), n);
    data_ += n;
    size_ -= n;
    return out;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

// One level of nested lists, with memory of its own.
struct Level {
  std::string format, json, block;
  std::vector<std::uint8_t> values = std::vector<std::uint8_t>(kElements * 8);
  std::vector<std::uint8_t> bits;
  const void* buffers[2];
  ArrowSchema schema{};
  ArrowArray array{};
  ArrowSchema* schema_children[1];
  ArrowArray* array_children[1];
};

std::string block_of(const std::string& json) {
  std::string block;
  const auto put = [&](const std::string& text) {
    const auto n = static_cast<std::int32_t>(text.size());
    block.append(reinterpret_cast<const char*>(&n), 4).append(text);
  };
  const std::int32_t pairs = 2;
  block.append(reinterpret_cast<const char*>(&pairs), 4);
  put(std::string(kExtensionName)), put(std::string(kTensorExtension));
  put(std::string(kExtensionMetadata)), put(json);
  return block;
}

void fill(Level& level, Bytes& bytes, Level* child) {
  static constexpr const char* kFormats[] = {"g", "l", "b", "c", "e", "tsu:UTC", "+w:2", "+w:3", "+w:1", "+w:0", "u"};
  const std::uint8_t pick = bytes.byte();
  level.format = child != nullptr ? (pick < 230 ? kFormats[6 + pick % 4] : "+w:" + bytes.text(6))
                                  : (pick < 230 ? kFormats[pick % 6] : bytes.text(6));
  level.schema.format = pick == 255 ? nullptr : level.format.c_str();
  level.schema.release = release_schema;
  level.schema.n_children = child != nullptr ? 1 : bytes.byte() < 4 ? bytes.number() : 0;
  level.schema_children[0] = child != nullptr ? &child->schema : nullptr;
  level.array_children[0] = child != nullptr ? &child->array : nullptr;
  level.schema.children = level.schema_children;
  if (const std::uint8_t kind = bytes.byte(); kind < 60) {
    level.json = kind < 20 ? "{\"shape\":[" + std::to_string(kind % 4) + ",1],\"permutation\":[1,0]}" : bytes.text(40);
    level.block = block_of(level.json);
    level.schema.metadata = level.block.c_str();
  }
  level.bits.assign(static_cast<std::size_t>(kElements / 8 + 1), bytes.byte());
  level.buffers[0] = bytes.byte() < 100 ? level.bits.data() : nullptr;
  level.buffers[1] = bytes.byte() < 250 ? level.values.data() : nullptr;
  level.array.length = bytes.number();
  level.array.offset = bytes.number();
  level.array.null_count = bytes.byte() < 100 ? 0 : bytes.number();
  level.array.n_buffers = child != nullptr ? 1 : bytes.byte() < 250 ? 2 : bytes.number();
  level.array.n_children = child != nullptr ? 1 : 0;
  level.array.buffers = bytes.byte() < 252 ? level.buffers : nullptr;
  level.array.children = level.array_children;
  level.array.release = bytes.byte() < 252 ? release_array : nullptr;
}

// The ABI says no length of a buffer: what a struct claims to have is believed. So claims that no memory backs are kept
// from the reader here, and everything else is its own to check.
bool is_backed(const Level& level) {
  std::int64_t end;
  return __builtin_add_overflow(level.array.offset, level.array.length, &end) || level.array.offset < 0 ||
         level.array.length < 0 || end <= kElements;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  {
    const std::string block = bytes.text(60);
    Extension extension;
    TensorShape shape;
    const std::vector<char> exact(block.begin(), block.end());
    static_cast<void>(read_extension(exact.empty() ? nullptr : exact.data(), extension, exact.size()));
    static_cast<void>(read_tensor_shape(block, shape));
  }
  std::vector<Level> levels(1 + bytes.byte() % kDepth);
  for (std::size_t i = levels.size(); i-- > 0;)
    fill(levels[i], bytes, i + 1 < levels.size() ? &levels[i + 1] : nullptr);
  for (const Level& level : levels)
    if (!is_backed(level)) return 0;
  const ArrowSchema& schema = levels[0].schema;
  static_cast<void>(type_name(schema));
  ColumnType type;
  Status status = read_type(schema, type);
  const Part part{&levels[0].array, bytes.byte() % 4 == 0 ? bytes.number() : 0, levels[0].array.length};
  const std::vector<Part> parts(1 + bytes.byte() % 2, part);
  const ReadOptions options{static_cast<Nulls>(bytes.byte() % 3), static_cast<Copies>(bytes.byte() % 3)};
  Tensor values, mask;
  const Part* shared = nullptr;
  if (status.ok()) status = read_column({schema, type, parts}, options, values, &mask, &shared);
  if (!status.ok()) {
    DLBRIDGE_CHECK(!status.message().empty());
    return 0;
  }
  DLBRIDGE_CHECK(options.nulls != Nulls::kMask || mask.size == values.size);
  std::int64_t product = 1;
  for (std::int32_t i = 0; i < values.dl.ndim; ++i) product *= values.dl.shape[i];
  DLBRIDGE_CHECK(product == values.size);
  const Level& leaf = levels[static_cast<std::size_t>(type.lists)];
  if (shared != nullptr && values.size != 0) {
    const auto* first = static_cast<const std::uint8_t*>(values.dl.data);
    DLBRIDGE_CHECK(first >= leaf.values.data());
    DLBRIDGE_CHECK(first + values.nbytes() <= leaf.values.data() + leaf.values.size());
  }
  // Every element is read once: the sanitizers watch.
  volatile std::uint8_t sum = 0;
  for (std::int64_t i = 0; i < values.nbytes(); ++i)
    sum = static_cast<std::uint8_t>(sum + static_cast<const std::uint8_t*>(values.dl.data)[i]);
  return 0;
}
