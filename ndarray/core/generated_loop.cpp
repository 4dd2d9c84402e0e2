#include "ndarray/core/generated_loop.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "ndarray/kernels/functors/divider.h"

namespace dlbridge::nd {

namespace {

constexpr std::int64_t kVectorBytes = 16;  // of one load

struct LoopDims {
  std::size_t arrays = 0;
  int ndim = 0;
  std::int64_t shape[kMaxDims];                             // innermost first
  std::vector<std::array<std::int64_t, kMaxDims>> strides;  // bytes, one row an array
  std::vector<std::uint64_t> addresses;

  std::vector<std::int64_t*> rows() {
    std::vector<std::int64_t*> out;
    for (auto& row : strides) out.push_back(row.data());
    return out;
  }
};

void collect(std::span<const KernelOperand> operands, Dims shape, LoopDims& dims) {
  const int n = static_cast<int>(shape.size());
  for (int axis = n - 1; axis >= 0; --axis)
    if (shape[static_cast<std::size_t>(axis)] != 1) dims.shape[dims.ndim++] = shape[static_cast<std::size_t>(axis)];
  for (const KernelOperand& operand : operands) {
    if (operand.array == nullptr || operand.raw) continue;
    auto& row = dims.strides.emplace_back();
    dims.addresses.push_back(reinterpret_cast<std::uint64_t>(operand.array->dl.data));
    int d = 0;
    for (int axis = n - 1; axis >= 0; --axis) {
      if (shape[static_cast<std::size_t>(axis)] == 1) continue;
      row[static_cast<std::size_t>(d++)] = broadcast_stride(*operand.array, axis, n) * operand.array->itemsize();
    }
  }
  dims.arrays = dims.strides.size();
}

// Walks each dimension upwards as the last array, an output, lies; then the smallest stride innermost.
void reorder(LoopDims& dims) {
  if (dims.arrays == 0) return;
  const auto& leader = dims.strides.back();
  for (std::size_t d = 0; d < static_cast<std::size_t>(dims.ndim); ++d) {
    if (leader[d] >= 0) continue;
    for (std::size_t k = 0; k < dims.arrays; ++k) {
      std::int64_t& stride = dims.strides[k][d];
      dims.addresses[k] += static_cast<std::uint64_t>(stride * (dims.shape[d] - 1));
      stride = -stride;
    }
  }
  const std::vector<std::int64_t*> rows = dims.rows();
  const int count = static_cast<int>(rows.size());
  sort_dims(dims.shape, dims.ndim, rows.data(), count, count - 1);
}

void merge(LoopDims& dims) {
  const std::vector<std::int64_t*> rows = dims.rows();
  dims.ndim = merge_dims(dims.shape, dims.ndim, rows.data(), static_cast<int>(rows.size()));
}

// The most elements that one load of every array can take.
int choose_vector(const LoopDims& dims, std::span<const std::int64_t> itemsizes, const std::string& walks) {
  std::int64_t widest = 0;
  for (std::size_t k = 0; k < dims.arrays; ++k) {
    if (walks[k] == static_cast<char>(Walk::kStrided)) return 1;
    if (walks[k] == static_cast<char>(Walk::kDense)) widest = std::max(widest, itemsizes[k]);
  }
  if (widest == 0) return 1;
  std::int64_t vector = std::max<std::int64_t>(1, kVectorBytes / widest);
  while (vector > dims.shape[0]) vector /= 2;
  const auto fits = [&](std::int64_t v) {
    if (dims.ndim > 1 && dims.shape[0] % v != 0) return false;
    for (std::size_t k = 0; k < dims.arrays; ++k) {
      if (walks[k] != static_cast<char>(Walk::kDense)) continue;
      std::uint64_t all = dims.addresses[k];
      for (std::size_t d = 1; d < static_cast<std::size_t>(dims.ndim); ++d)
        all |= static_cast<std::uint64_t>(dims.strides[k][d]);
      if (all % static_cast<std::uint64_t>(v * itemsizes[k]) != 0) return false;
    }
    return true;
  };
  while (vector > 1 && !fits(vector)) vector /= 2;
  return static_cast<int>(vector);
}

void push_divisor(std::int64_t extent, bool wide, std::vector<std::uint64_t>& words) {
  const auto divisor = static_cast<std::uint64_t>(extent);
  const Divider magic = wide ? Divider{} : Divider::of(extent);
  words.push_back(divisor | std::uint64_t{magic.magic} << 32);
  words.push_back(magic.shift);
}

void push_raw(const Tensor& t, std::vector<std::uint64_t>& words) {
  words.push_back(reinterpret_cast<std::uint64_t>(t.dl.data));
  words.push_back(static_cast<std::uint64_t>(t.size));
  for (int k = 0; k < t.dl.ndim; ++k) words.push_back(static_cast<std::uint64_t>(t.dl.shape[k]));
  for (int k = 0; k < t.dl.ndim; ++k) words.push_back(static_cast<std::uint64_t>(t.dl.strides[k] * t.itemsize()));
}

void choose_variant(std::span<const KernelOperand> operands, LoopDims& dims, GeneratedLoop& plan) {
  LoopVariant& variant = plan.variant;
  if (dims.ndim == 0) {  // one element
    dims.ndim = 1;
    dims.shape[0] = 1;
    for (auto& row : dims.strides) row[0] = 0;
  }
  std::vector<std::int64_t> itemsizes;
  for (const KernelOperand& operand : operands) {
    if (operand.array == nullptr) continue;
    if (operand.raw) {
      variant.raw_ndim.push_back(operand.array->dl.ndim);
      variant.raw_dense += is_c_contiguous(*operand.array) ? 'd' : 's';
      continue;
    }
    const std::int64_t stride = dims.strides[itemsizes.size()][0];
    itemsizes.push_back(operand.array->itemsize());
    const Walk walk = stride == itemsizes.back() ? Walk::kDense : stride == 0 ? Walk::kRepeated : Walk::kStrided;
    variant.walks += static_cast<char>(walk);
  }
  variant.ndim = dims.ndim;
  variant.vector = choose_vector(dims, itemsizes, variant.walks);
  plan.vectors = plan.size / variant.vector;
  // The last tile's indices run past the end by less than a tile; the 31-bit division must hold for them, too.
  variant.wide = plan.vectors > std::numeric_limits<std::int32_t>::max() - (1 << 20);
}

// In the order of codegen.py: counts, addresses, scalars, raw arrays, divisors, strides, extents of `_ind`.
void write_words(std::span<const KernelOperand> operands, Dims shape, const LoopDims& dims, const LoopTraits& traits,
                 GeneratedLoop& plan) {
  auto& words = plan.words;
  const LoopVariant& variant = plan.variant;
  words.assign({static_cast<std::uint64_t>(plan.vectors), static_cast<std::uint64_t>(plan.size)});
  for (const std::uint64_t address : dims.addresses) {
    plan.addresses.push_back(words.size());
    words.push_back(address);
  }
  for (const KernelOperand& operand : operands) {
    if (operand.array != nullptr) continue;
    std::uint64_t value[2];
    std::memcpy(value, operand.scalar.bytes, sizeof(value));
    words.insert(words.end(), value, value + 2);
  }
  for (const KernelOperand& operand : operands)
    if (operand.array != nullptr && operand.raw) {
      plan.addresses.push_back(words.size());
      push_raw(*operand.array, words);
    }
  for (std::size_t d = 0; d + 1 < static_cast<std::size_t>(dims.ndim); ++d)
    push_divisor(d == 0 ? dims.shape[0] / variant.vector : dims.shape[d], variant.wide, words);
  for (const auto& row : dims.strides)
    for (std::size_t d = 0; d < static_cast<std::size_t>(dims.ndim); ++d)
      words.push_back(static_cast<std::uint64_t>(d == 0 ? row[0] * variant.vector : row[d]));
  if (traits.uses_multi_index)
    for (const std::int64_t extent : shape) words.push_back(static_cast<std::uint64_t>(extent));
}

}  // namespace

void plan_generated_loop(std::span<const KernelOperand> operands, Dims shape, const LoopTraits& traits,
                         GeneratedLoop& plan) {
  plan.size = 1;
  for (const std::int64_t extent : shape) plan.size *= extent;
  LoopDims dims;
  collect(operands, shape, dims);
  if (!traits.uses_index && !traits.uses_multi_index) reorder(dims);
  merge(dims);
  choose_variant(operands, dims, plan);
  plan.variant.index_ndim = traits.uses_multi_index ? static_cast<int>(shape.size()) : -1;
  write_words(operands, shape, dims, traits, plan);
}

}  // namespace dlbridge::nd
