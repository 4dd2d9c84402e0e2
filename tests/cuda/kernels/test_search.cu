// Nonzero, runs and search on the device against the host's, on the same data.
#include <algorithm>
#include <numeric>
#include <random>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/runs.h"
#include "ndarray/kernels/types.h"
#include "tests/cuda/kernels/device_check.cuh"

namespace dlbridge::nd {
namespace {

using namespace testing;

void sort_row(DType dtype, std::int64_t n, Bytes& row) {
  if (n == 0) return;
  SortArgs sort{};
  sort.dtype = dtype;
  sort.stable = true;
  sort.rows = 1;
  sort.n = n;
  sort.keys_in = sort.keys_out = row.data();
  host_kernels::sort(sort);
}

void compare_nonzero() {
  std::mt19937 random(34);
  DeviceWorkspace workspace;
  for (const std::int64_t n : {0, 1, 31, 32, 33, 8191, 8192, 8193, 40000})
    for (const unsigned density : {0u, 1u, 50u, 100u})
      for (const std::size_t offset : {0, 1}) {
        Bytes mask(static_cast<std::size_t>(n));
        for (auto& b : mask) b = random() % 100 < density;
        std::vector<std::int64_t> wanted(mask.size());
        std::int64_t wanted_count = 0, count = -1;
        host_kernels::nonzero({mask.data(), n, wanted.data(), &wanted_count, {}, 0});
        const DeviceBytes device_mask(mask.data(), mask.size(), offset);
        const DeviceBytes positions(mask.size() * 8);
        const NonzeroArgs args{device_mask.data(), n, positions.as<std::int64_t>(), &count, workspace.get(),
                               kLegacyStream};
        DEVICE_CHECK(cuda_kernels::nonzero(args) == 0);
        DEVICE_CHECK(count == wanted_count, std::to_string(n));
        if (count > 0)
          DEVICE_CHECK(std::memcmp(positions.get().data(), wanted.data(), static_cast<std::size_t>(count) * 8) == 0);
        NonzeroArgs count_only = args;
        count_only.positions = nullptr;
        count_only.workspace = workspace.get();
        count = -1;
        DEVICE_CHECK(cuda_kernels::nonzero(count_only) == 0 && count == wanted_count);
      }
}

void compare_search() {
  std::mt19937 random(35);
  for (unsigned d = 0; d < 32; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (!contains(kAllSet, dtype)) continue;
    for (const std::int64_t n : {0, 1, 2, 500, 1024, 1025, 2049, 16385}) {
      const std::int64_t count = 700;
      const auto itemsize = static_cast<std::int64_t>(info(dtype).itemsize);
      Bytes sorted = random_bytes(random, n * itemsize), values = random_bytes(random, count * itemsize);
      if (dtype == DType::kBool) {
        for (auto& b : sorted) b &= 1;
        for (auto& b : values) b &= 1;
      }
      sort_row(dtype, n, sorted);
      const DeviceBytes device_sorted(sorted.data(), sorted.size()), device_values(values.data(), values.size());
      for (const bool right : {false, true}) {
        const int step = right ? 2 : 1;
        std::vector<std::int64_t> wanted(static_cast<std::size_t>((count + step - 1) / step));
        const auto searched = [&](const void* row, const void* found, std::int64_t* out, StreamHandle stream) {
          SearchArgs args{dtype, right, row, n, found, static_cast<std::int64_t>(wanted.size()), out, stream};
          args.value_step = step;
          args.from_end = n % 2 == 1;
          return args;
        };
        host_kernels::search(searched(sorted.data(), values.data(), wanted.data(), 0));
        const DeviceBytes out(wanted.size() * 8);
        const auto args = searched(device_sorted.data(), device_values.data(), out.as<std::int64_t>(), kLegacyStream);
        DEVICE_CHECK(cuda_kernels::search(args) == 0);
        DEVICE_CHECK(std::memcmp(out.get().data(), wanted.data(), wanted.size() * 8) == 0,
                     std::string(info(dtype).name));
      }
    }
  }
}

void compare_runs() {
  std::mt19937 random(41);
  DeviceWorkspace workspace;
  for (unsigned d = 0; d < 32; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (!contains(functors::kRunSet, dtype)) continue;
    for (const std::int64_t n : {1, 2, 31, 33, 1000, 8191, 8192, 8193, 40000})
      for (const bool repeat : {false, true}) {
        const auto itemsize = static_cast<std::int64_t>(info(dtype).itemsize);
        Bytes sorted = random_bytes(random, n * itemsize);
        if (repeat)
          for (std::int64_t i = 0; i < n; ++i)
            std::memcpy(sorted.data() + i * itemsize, sorted.data() + random() % ((n + 2) / 3) * itemsize,
                        static_cast<std::size_t>(itemsize));
        sort_row(dtype, n, sorted);
        std::vector<std::int64_t> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        const DeviceBytes device_sorted(sorted.data(), sorted.size());
        const DeviceBytes device_order(order.data(), order.size() * 8);
        const bool ordered = random() % 2 == 0;
        std::int64_t wanted_count = -1, count = -1;
        std::vector<std::int64_t> wanted[3] = {order, order, order};
        Bytes wanted_values(sorted.size());
        RunsArgs args{};
        args.dtype = dtype;
        args.equal_nan = random() % 2 == 0;
        args.n = n;
        args.sorted = sorted.data();
        args.order = ordered ? order.data() : nullptr;
        args.values = wanted_values.data();
        args.first = wanted[0].data();
        args.lengths = wanted[1].data();
        args.inverse = wanted[2].data();
        args.count = &wanted_count;
        host_kernels::runs(args);
        const DeviceBytes values(sorted.size()), first(order.size() * 8), lengths(order.size() * 8),
            inverse(order.size() * 8);
        args.sorted = device_sorted.data();
        args.order = ordered ? device_order.as<std::int64_t>() : nullptr;
        args.values = values.data();
        args.first = first.as<std::int64_t>();
        args.lengths = lengths.as<std::int64_t>();
        args.inverse = inverse.as<std::int64_t>();
        args.count = &count;
        args.workspace = workspace.get();
        args.stream = kLegacyStream;
        const std::string what = std::string(info(dtype).name) + " " + std::to_string(n);
        DEVICE_CHECK(cuda_kernels::runs(args) == 0, what);
        DEVICE_CHECK(count == wanted_count && count > 0, what);
        const auto runs = static_cast<std::size_t>(wanted_count);
        DEVICE_CHECK(std::memcmp(values.get().data(), wanted_values.data(), runs * info(dtype).itemsize) == 0, what);
        DEVICE_CHECK(std::memcmp(first.get().data(), wanted[0].data(), runs * 8) == 0, what);
        DEVICE_CHECK(std::memcmp(lengths.get().data(), wanted[1].data(), runs * 8) == 0, what);
        DEVICE_CHECK(std::memcmp(inverse.get().data(), wanted[2].data(), order.size() * 8) == 0, what);
        args.values = nullptr;
        args.first = args.lengths = args.inverse = nullptr;
        args.workspace = workspace.get();
        count = -1;
        DEVICE_CHECK(cuda_kernels::runs(args) == 0 && count == wanted_count, what);
      }
  }
}

// --- speed ----------------------------------------------------------------------------------------------------------

void bench_all() {
  const std::int64_t n = std::int64_t{1} << 30;
  DeviceWorkspace workspace;
  for (const int value : {0, 1}) {
    const std::int64_t size = value ? n / 8 : n;
    const DeviceBytes mask(static_cast<std::size_t>(size)), positions(static_cast<std::size_t>(value ? n : 8));
    CUDA_OK(cudaMemset(mask.data(), value, static_cast<std::size_t>(size)));
    std::int64_t count = 0;
    bench(value ? "nonzero of 128 Mi, all true" : "nonzero of 1 Gi, all false",
          static_cast<double>(size) * (value ? 9 : 1), [&] {
            cuda_kernels::nonzero(
                {mask.data(), size, positions.as<std::int64_t>(), &count, workspace.get(), kLegacyStream});
          });
  }
  const std::int64_t table = 1 << 20, count = 1 << 26;
  std::vector<float> sorted(static_cast<std::size_t>(table)), wanted(static_cast<std::size_t>(count));
  std::mt19937 random(37);
  for (std::int64_t i = 0; i < table; ++i) sorted[static_cast<std::size_t>(i)] = static_cast<float>(i);
  for (auto& v : wanted) v = static_cast<float>(random() % (1 << 20));
  const DeviceBytes device_sorted(sorted.data(), sorted.size() * 4), values(wanted.data(), wanted.size() * 4),
      out(wanted.size() * 8);
  bench("searchsorted 64 Mi in 1 Mi float32", static_cast<double>(count) * 12, [&] {
    cuda_kernels::search({DType::kFloat32, false, device_sorted.data(), table, values.data(), count,
                          out.as<std::int64_t>(), kLegacyStream});
  });
}

}  // namespace
}  // namespace dlbridge::nd

int main(int argc, char** argv) {
  using namespace dlbridge::nd;
  compare_nonzero();
  compare_runs();
  compare_search();
  const int rc = testing::report();
  if (rc == 0 && testing::has_option(argc, argv, "--bench")) bench_all();
  return rc;
}
