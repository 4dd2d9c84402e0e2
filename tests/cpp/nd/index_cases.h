// Random gathers and scatters: the arguments as the front end builds them, with memory that the caller places.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "ndarray/kernels/api.h"

namespace dlbridge::nd::testing {

struct IndexCase {
  IndexArgs args{};                            // without addresses
  std::int64_t base_size = 1, value_size = 1;  // elements
  std::vector<std::vector<std::int64_t>> index;
  std::vector<std::int64_t> full_strides;  // of the base, elements, per axis
};

// Byte offsets of the value and of the base for one position of the loop.
struct IndexPlace {
  std::int64_t value, base;
};

inline IndexPlace place_of(const IndexCase& c, std::int64_t linear) {
  IndexPlace place{0, 0};
  std::int64_t at[kMaxIndexArrays] = {};
  for (int d = 0; d < c.args.ndim; ++d) {
    const std::int64_t i = linear % c.args.shape[d];
    linear /= c.args.shape[d];
    place.value += i * c.args.value_strides[d];
    place.base += i * c.args.base_strides[d];
    for (int k = 0; k < c.args.arrays; ++k) at[k] += i * c.args.index_strides[k][d];
  }
  for (int k = 0; k < c.args.arrays; ++k) {
    std::int64_t i = c.index[static_cast<std::size_t>(k)][static_cast<std::size_t>(at[k] / 8)];
    if (i < 0) i += c.args.extent[k];
    place.base += i * c.args.axis_stride[k];
  }
  return place;
}

// A base of 1 to 4 axes, some of them indexed by arrays of 1 or 2 dims that broadcast against each other. `wide` makes
// the innermost free axis long, so that runs are moved at once.
inline IndexCase random_index_case(std::mt19937& random, int itemsize, bool wide) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  IndexCase c;
  const auto axes = static_cast<int>(pick(wide ? 2 : 1, 4));
  std::vector<std::int64_t> extent(static_cast<std::size_t>(axes));
  std::vector<bool> indexed(extent.size());
  bool any = false;
  for (std::size_t a = 0; a < extent.size(); ++a) {
    extent[a] = pick(1, 9);
    indexed[a] = pick(0, 1) == 1;
    if (wide && a + 1 == extent.size()) {
      extent[a] = pick(1, 4) * 32;
      indexed[a] = false;
    }
    any = any || indexed[a];
  }
  if (!any) indexed[0] = true;
  c.full_strides.resize(extent.size());
  for (std::size_t a = extent.size(); a-- > 0;) {
    c.full_strides[a] = c.base_size;
    c.base_size *= extent[a];
  }

  const auto index_dims = static_cast<int>(pick(1, 2));
  const std::int64_t index_shape[2] = {pick(1, 30), pick(1, 7)};
  IndexArgs& args = c.args;
  args.itemsize = itemsize;
  // The loop, innermost first: the free axes, last axis first, with the index dims before, between or after them.
  std::vector<std::size_t> free_axes;
  for (std::size_t a = extent.size(); a-- > 0;)
    if (!indexed[a]) free_axes.push_back(a);
  const auto index_at = static_cast<std::size_t>(pick(wide ? 1 : 0, static_cast<std::int64_t>(free_axes.size())));
  int first_index_dim = 0;
  for (std::size_t i = 0; i <= free_axes.size(); ++i) {
    if (i == index_at) {
      first_index_dim = args.ndim;
      for (int d = 0; d < index_dims; ++d) args.shape[args.ndim++] = index_shape[d];
    }
    if (i == free_axes.size()) break;
    args.shape[args.ndim] = extent[free_axes[i]];
    args.base_strides[args.ndim++] = c.full_strides[free_axes[i]] * itemsize;
  }
  for (int d = 0; d < args.ndim; ++d) {
    args.value_strides[d] = c.value_size * itemsize;
    c.value_size *= args.shape[d];
  }
  args.size = c.value_size;
  for (std::size_t a = 0; a < extent.size(); ++a) {
    if (!indexed[a]) continue;
    const auto k = static_cast<std::size_t>(args.arrays++);
    args.extent[k] = extent[a];
    args.axis_stride[k] = c.full_strides[a] * itemsize;
    std::int64_t count = 1;
    for (int d = 0; d < index_dims; ++d) {
      if (index_dims == 2 && pick(0, 3) == 0) continue;  // broadcast along this dim
      args.index_strides[k][first_index_dim + d] = count * 8;
      count *= index_shape[d];
    }
    c.index.emplace_back();
    for (std::int64_t i = 0; i < count; ++i) c.index.back().push_back(pick(-extent[a], extent[a] - 1));
  }
  return c;
}

}  // namespace dlbridge::nd::testing
