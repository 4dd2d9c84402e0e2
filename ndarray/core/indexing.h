// x[key] and x[key] = value, with NumPy's basic and advanced indexing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "ndarray/core/array.h"
#include "ndarray/core/elementwise.h"

namespace dlbridge::nd {

// One item of a key.
struct IndexItem {
  enum class Kind : std::uint8_t { kInteger, kSlice, kNewAxis, kEllipsis, kArray } kind = Kind::kSlice;
  std::int64_t start = 0;  // kInteger: the index. kSlice: absent where has_start, has_stop say so
  std::int64_t stop = 0;
  std::int64_t step = 1;
  bool has_start = false;
  bool has_stop = false;
  const Tensor* array = nullptr;  // kArray: an integer or bool array, on the device of x
};

inline Status index_error(std::string message) { return {ErrorCode::kIndex, std::move(message)}; }

inline constexpr std::size_t kMaxIndexItems = 2 * static_cast<std::size_t>(kMaxDims);

// Only integers, slices, new axes and an ellipsis: a view.
bool is_basic(std::span<const IndexItem> items) noexcept;
Status view_at(const Tensor& x, std::span<const IndexItem> items, Tensor& out);

// With index arrays: a copy. Indices that the bounds refuse are an IndexError on the host; CUDA clamps them to the
// axis. With kKeep the result may lie as x does, on the host: positions along an axis behind others.
Status gather_at(const Tensor& x, std::span<const IndexItem> items, Tensor& out, Bounds bounds = Bounds::kRefuse,
                 CopyOrder order = CopyOrder::kC);
// x[items] = value, for any items. The value broadcasts and is cast. Duplicate positions: one of the values is kept,
// or with `combine` all are, with what is there: by kAdd, kMaximum or kMinimum, and on the host by kMultiply.
Status assign_at(const Tensor& x, std::span<const IndexItem> items, const Input& value,
                 std::optional<Op> combine = std::nullopt, Bounds bounds = Bounds::kRefuse);

// The coordinates of the elements that are not zero: x.ndim (0-d: one) int64 arrays. CUDA waits for their number.
Status nonzero(const Tensor& x, std::span<Tensor> coordinates);
// The same as one array with a row for each axis.
Status nonzero_rows(const Tensor& x, Tensor& rows);
// The same as positions in C order.
Status flat_nonzero(const Tensor& x, Tensor& positions);

}  // namespace dlbridge::nd
