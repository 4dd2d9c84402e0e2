// Random numbers on the host: the counters of kernels/random/philox.h in order.
#include <algorithm>
#include <cstring>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/host/inner_loop.h"
#include "ndarray/kernels/random/samplers.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr int kLanes = 32;  // blocks made at a time: word k of each lies together, so that the rounds vectorise

struct Lanes {
  std::uint32_t x[4][kLanes];
};

DLBRIDGE_ND_CLONES void generate(const philox::Keys& keys, std::uint64_t counter, Lanes& lanes) {
  auto& x = lanes.x;
  for (int i = 0; i < kLanes; ++i) {
    const std::uint64_t c = counter + static_cast<std::uint64_t>(i);
    x[0][i] = static_cast<std::uint32_t>(c);
    x[1][i] = static_cast<std::uint32_t>(c >> 32);
    x[2][i] = x[3][i] = 0;
  }
  for (const auto& key : keys.key) {
    const std::uint32_t k0 = key[0], k1 = key[1];
    for (int i = 0; i < kLanes; ++i) {
      const std::uint64_t p0 = std::uint64_t{philox::kMultiplier0} * x[0][i];
      const std::uint64_t p1 = std::uint64_t{philox::kMultiplier1} * x[2][i];
      x[0][i] = static_cast<std::uint32_t>(p1 >> 32) ^ x[1][i] ^ k0;
      x[1][i] = static_cast<std::uint32_t>(p1);
      x[2][i] = static_cast<std::uint32_t>(p0 >> 32) ^ x[3][i] ^ k1;
      x[3][i] = static_cast<std::uint32_t>(p0);
    }
  }
}

template <class Sampler>
int fill(const Sampler& sampler, const RandomArgs& args) {
  using T = typename Sampler::value_type;
  constexpr std::int64_t kBatch = std::int64_t{kLanes} * Sampler::kCount;
  const philox::Keys keys = philox::make_keys(args.seed);
  auto* out = static_cast<T*>(args.out);
  std::uint64_t counter = args.offset;
  Lanes lanes;
  T values[kBatch];
  for (std::int64_t first = 0; first < args.n; first += kBatch, counter += kLanes) {
    generate(keys, counter, lanes);
    for (int i = 0; i < kLanes; ++i) {
      const philox::Block block{{lanes.x[0][i], lanes.x[1][i], lanes.x[2][i], lanes.x[3][i]}};
      sampler(block, keys, counter + static_cast<std::uint64_t>(i), values + i * Sampler::kCount);
    }
    const std::int64_t count = std::min(kBatch, args.n - first);
    std::memcpy(out + first, values, static_cast<std::size_t>(count) * sizeof(T));
  }
  return 0;
}

}  // namespace

int random(const RandomArgs& args) {
  return philox::visit_sampler(args, [&](const auto& sampler) { return fill(sampler, args); });
}

}  // namespace dlbridge::nd::host_kernels
