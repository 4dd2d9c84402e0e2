// Positions on the host, each function one pass over them where kernels one after another take several. An index is
// read once: another thread may write to the arrays meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ndarray/kernels/api.h"

namespace dlbridge::nd::host_kernels {

struct AxisPositions {
  const std::int64_t* positions;
  std::int64_t extent;  // > 0
  Bounds bounds;        // kRefuse: negative ones, too
};
// out[i]: the place of the positions number i along the axes, of which the last is dense. False: one does not exist.
bool ravel_positions(std::span<const AxisPositions> axes, std::int64_t n, std::int64_t* out) noexcept;
// The other way round; extents > 0, one for each of `parts`. False: a place does not exist.
bool unravel_positions(const std::int64_t* places, std::int64_t n, std::span<const std::int64_t> extents,
                       std::span<std::int64_t* const> parts) noexcept;

// Whether n real numbers fall, by the first two neighbours that differ; none where others go the other way. NaN differs
// from all, and is neither more nor less.
std::optional<bool> falls(DType dtype, const void* x, std::int64_t n) noexcept;

// The smallest and the largest of n numbers > 0.
struct Extremes {
  std::int64_t low, high;
};
Extremes find_extremes(const std::int64_t* x, std::int64_t n) noexcept;
// counts[x[i]] += 1, or += weights[i]; all are `size` zeros before. Numbers that are no position are left out.
void count_values(const std::int64_t* x, std::int64_t n, std::int64_t* counts, std::int64_t size) noexcept;
void sum_weights(const std::int64_t* x, const double* weights, std::int64_t n, double* totals,
                 std::int64_t size) noexcept;

// x[i] = values[i] where the mask is not 0.
void put_masked(void* x, const std::uint8_t* mask, const void* values, std::int64_t n, std::int64_t itemsize) noexcept;

// x[i] = the next of `count` values where the mask is not 0; they begin again behind the last one.
void place(void* x, const std::uint8_t* mask, std::int64_t n, const void* values, std::int64_t count,
           std::int64_t itemsize) noexcept;

// out[i] = choices[numbers[i]][i]. False: a choice does not exist.
bool choose(const std::int64_t* numbers, std::int64_t n, std::span<const void* const> choices, std::int64_t itemsize,
            void* out) noexcept;
// Of a mask, whose true bytes name the second.
void choose(const std::uint8_t* mask, std::int64_t n, std::span<const void* const> choices, std::int64_t itemsize,
            void* out) noexcept;

}  // namespace dlbridge::nd::host_kernels
