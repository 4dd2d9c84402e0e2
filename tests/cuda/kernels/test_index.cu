// Gather, scatter, nonzero and search on the device against the host's, on the same data.
#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <numeric>
#include <random>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/runs.h"
#include "ndarray/kernels/types.h"
#include "tests/cpp/nd/index_cases.h"
#include "tests/cuda/kernels/device_check.cuh"

namespace dlbridge::nd {
namespace {

using namespace testing;
using Bytes = std::vector<unsigned char>;

Bytes random_bytes(std::mt19937& random, std::int64_t count) {
  Bytes out(static_cast<std::size_t>(count));
  for (auto& b : out) b = static_cast<unsigned char>(random());
  return out;
}

// Small integers of a dtype: their sums are exact.
Bytes small_numbers(std::mt19937& random, DType dtype, std::int64_t count) {
  Bytes out(static_cast<std::size_t>(count * info(dtype).itemsize));
  visit_dtype<kAllSet>(
      dtype,
      [&]<class T>() {
        for (std::size_t i = 0; i < out.size(); i += sizeof(T)) {
          const T v = cast<T>(static_cast<int>(random() % 3));
          std::memcpy(out.data() + i, &v, sizeof v);
        }
        return 0;
      },
      0);
  return out;
}

struct Result {
  int code;
  Bytes values, base;
};

Result on_host(const IndexCase& c, Bytes values, Bytes base, bool scatter) {
  IndexArgs args = c.args;
  args.values = values.data();
  args.base = base.data();
  for (std::size_t k = 0; k < c.index.size(); ++k) args.index[k] = c.index[k].data();
  const int code = scatter ? host_kernels::scatter(args) : host_kernels::gather(args);
  return {code, std::move(values), std::move(base)};
}

Result on_device(const IndexCase& c, const Bytes& values, const Bytes& base, bool scatter, std::size_t offset,
                 Workspace workspace = {}) {
  const DeviceBytes device_values(values.data(), values.size(), offset), device_base(base.data(), base.size(), offset);
  std::vector<std::unique_ptr<DeviceBytes>> index;
  IndexArgs args = c.args;
  args.values = device_values.data();
  args.base = device_base.data();
  args.workspace = workspace;
  args.stream = kLegacyStream;
  for (std::size_t k = 0; k < c.index.size(); ++k) {
    index.push_back(std::make_unique<DeviceBytes>(c.index[k].data(), c.index[k].size() * 8));
    args.index[k] = index.back()->as<std::int64_t>();
  }
  const int code = scatter ? cuda_kernels::scatter(args) : cuda_kernels::gather(args);
  return {code, device_values.get(), device_base.get()};
}

void compare_moves() {
  std::mt19937 random(31);
  DeviceWorkspace workspace;
  for (int trial = 0; trial < 400; ++trial) {
    const int itemsize = 1 << (trial % 5);
    // Offsets that break vectors; complex numbers may lie at half of their size.
    const auto offset = static_cast<std::size_t>(trial % 7 == 0 ? (itemsize >= 8 ? itemsize / 2 : itemsize) : 0);
    IndexCase c = random_index_case(random, itemsize, trial % 3 == 0);
    const Bytes base = random_bytes(random, c.base_size * itemsize),
                values = random_bytes(random, c.value_size * itemsize);
    const std::string detail = "trial " + std::to_string(trial);
    const Result got = on_device(c, values, base, false, offset), wanted = on_host(c, values, base, false);
    DEVICE_CHECK(got.code == 0 && wanted.code == 0, detail);
    DEVICE_CHECK(got.values == wanted.values, detail);
    const Result written = on_device(c, values, base, true, offset, workspace.get());
    DEVICE_CHECK(written.code == 0, detail);
    DEVICE_CHECK(written.base == on_host(c, values, base, true).base, detail);
  }
}

// `count` positions of rows of `columns` elements over `places` destinations: destinations that fill many tiles, chains
// over several levels, and none.
IndexCase rows_case(std::mt19937& random, DType dtype, std::int64_t count, std::int64_t columns, std::int64_t places,
                    bool sorted) {
  IndexCase c;
  IndexArgs& args = c.args;
  args.itemsize = info(dtype).itemsize;
  args.dtype = dtype;
  args.accumulate = true;
  args.ndim = 2;
  args.arrays = 1;
  args.shape[0] = columns;
  args.shape[1] = count;
  args.size = c.value_size = columns * count;
  c.base_size = columns * places;
  args.value_strides[0] = args.base_strides[0] = args.itemsize;
  args.value_strides[1] = args.axis_stride[0] = columns * args.itemsize;
  args.index_strides[0][1] = 8;
  args.extent[0] = places;
  c.index.emplace_back();
  for (std::int64_t i = 0; i < count; ++i)
    c.index[0].push_back(sorted ? i * places / count
                                : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(places)));
  return c;
}

// Index arrays beyond a block's sort (2,048 positions) and with keys of 16, 32 and 64 bits, few and many positions a
// place: repeated places take the last value of every size, however it is found.
void compare_long_moves(bool few) {
  std::mt19937 random(38);
  DeviceWorkspace workspace;
  std::vector<std::int64_t> counts{1023, 1024, 1025, 2047, 2048, 2049, 4097};
  if (!few) counts.insert(counts.end(), {100000, (1 << 17) - 1, (1 << 17) + 1, 1 << 20});
  const DType dtypes[] = {DType::kUInt8, DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex128};
  unsigned turn = 0;
  for (const std::int64_t count : counts)
    for (const std::int64_t places : {3, 1000, 70000})
      for (const std::int64_t columns : {1, 5})
        for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{1} << 33}) {
          IndexCase c = rows_case(random, dtypes[turn++ % std::size(dtypes)], count, columns, places, false);
          c.args.accumulate = false;
          if (extent != 0) c.args.extent[0] = extent;  // the axis need not be there beyond the places that are used
          const Bytes base = random_bytes(random, c.base_size * c.args.itemsize),
                      values = random_bytes(random, c.value_size * c.args.itemsize);
          const std::string detail =
              std::to_string(count) + " " + std::to_string(places) + " " + std::to_string(columns);
          const Result got = on_device(c, values, base, true, 0, workspace.get());
          DEVICE_CHECK(got.code == 0, detail);
          DEVICE_CHECK(got.base == on_host(c, values, base, true).base, detail);
        }
}

constexpr Op kCombining[] = {Op::kAdd, Op::kMaximum, Op::kMinimum};

void compare_combined() {
  std::mt19937 random(32);
  DeviceWorkspace workspace;
  for (unsigned d = 0; d < 32; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (!contains(kAllSet, dtype)) continue;
    for (int trial = 0; trial < 24; ++trial) {
      IndexCase c = random_index_case(random, info(dtype).itemsize, trial % 4 == 0);
      c.args.accumulate = true;
      c.args.combine = kCombining[trial % 3];
      c.args.dtype = dtype;
      const Bytes base = small_numbers(random, dtype, c.base_size), values = small_numbers(random, dtype, c.value_size);
      const Result got = on_device(c, values, base, true, 0, workspace.get());
      const std::string detail = std::string(info(dtype).name) + " trial " + std::to_string(trial);
      DEVICE_CHECK(got.code == 0, detail);
      DEVICE_CHECK(got.base == on_host(c, values, base, true).base, detail);
    }
  }
}

void compare_long_combined() {
  std::mt19937 random(33);
  DeviceWorkspace workspace;
  const DType dtypes[] = {DType::kInt64, DType::kInt32,   DType::kUInt16,  DType::kUInt8,
                          DType::kBool,  DType::kFloat32, DType::kFloat16, DType::kComplex128};
  unsigned turn = 0;
  for (const std::int64_t count : {1, 31, 32, 33, 64, 65, 1000, 1025, 20000})
    for (const std::int64_t places : {1, 2, 3, 30, 1023, 1024, 4096, 4097, 70000})
      for (const std::int64_t columns : {1, 5, 9}) {
        for (const DType dtype : dtypes) {
          IndexCase c = rows_case(random, dtype, count, columns, places, random() % 2 == 0);
          c.args.combine = kCombining[turn++ % 3];
          if (dtype == DType::kFloat16 && count > 1000 * places)
            c.args.combine = Op::kMaximum;  // sums past 2,048 round
          const Bytes base = small_numbers(random, dtype, c.base_size),
                      values = small_numbers(random, dtype, c.value_size);
          const std::string detail =
              std::to_string(count) + " " + std::to_string(places) + " " + std::to_string(columns);
          const Result got = on_device(c, values, base, true, 0, workspace.get());
          DEVICE_CHECK(got.code == 0, detail);
          DEVICE_CHECK(got.base == on_host(c, values, base, true).base, detail);
        }
      }
  // Floats whose sums round: the same bits on every run.
  const IndexCase c = rows_case(random, DType::kFloat32, 20000, 3, 11, false);
  std::vector<float> numbers(static_cast<std::size_t>(c.value_size));
  for (auto& v : numbers) v = static_cast<float>(random()) * 1e-9f;
  Bytes values(numbers.size() * 4), base(static_cast<std::size_t>(c.base_size) * 4);
  std::memcpy(values.data(), numbers.data(), values.size());
  const Result one = on_device(c, values, base, true, 0, workspace.get());
  const Result two = on_device(c, values, base, true, 0, workspace.get());
  DEVICE_CHECK(one.base == two.base);
  const Bytes wanted = on_host(c, values, base, true).base;
  for (std::size_t i = 0; i < base.size(); i += 4) {
    float a, b;
    std::memcpy(&a, one.base.data() + i, 4);
    std::memcpy(&b, wanted.data() + i, 4);
    DEVICE_CHECK(std::fabs(a - b) <= 1e-4f * std::fabs(b));
  }
}

void check_clamping() {
  IndexCase c;
  c.args.itemsize = 4;
  c.args.ndim = c.args.arrays = 1;
  c.args.size = c.args.shape[0] = c.value_size = 4;
  c.args.value_strides[0] = c.args.axis_stride[0] = 4;
  c.args.index_strides[0][0] = 8;
  c.args.extent[0] = c.base_size = 3;
  c.index = {{-100, 100, 3, -4}};
  const float base[3] = {1, 2, 3};
  Bytes bytes(12);
  std::memcpy(bytes.data(), base, 12);
  const Result got = on_device(c, Bytes(16), bytes, false, 0);
  float values[4];
  std::memcpy(values, got.values.data(), 16);
  DEVICE_CHECK(values[0] == 1 && values[1] == 3 && values[2] == 3 && values[3] == 1);
  c.args.extent[0] = 0;
  DEVICE_CHECK(on_device(c, Bytes(16), bytes, false, 0).code == kErrorIndex);
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
      SortArgs sort{};
      sort.dtype = dtype;
      sort.stable = true;
      sort.rows = 1;
      sort.n = n;
      sort.keys_in = sort.keys_out = sorted.data();
      if (n > 0) host_kernels::sort(sort);
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
        SortArgs sort{};
        sort.dtype = dtype;
        sort.stable = true;
        sort.rows = 1;
        sort.n = n;
        sort.keys_in = sort.keys_out = sorted.data();
        host_kernels::sort(sort);
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

// Dims of every number, at each alignment that a dtype allows, and strides of either sign.
void compare_triangles() {
  std::mt19937 random(39);
  for (int trial = 0; trial < 300; ++trial) {
    TriangleArgs args{};
    args.itemsize = 1 << (trial % 5);
    args.lower = trial % 2 == 0;
    args.ndim = 2 + trial % 3;
    args.size = 1;
    std::int64_t end = 0, start = 0;
    const std::int64_t unit = args.itemsize >= 8 && trial % 7 == 0 ? args.itemsize / 2 : args.itemsize;
    for (int d = 0; d < args.ndim; ++d) {
      args.shape[d] = 1 + random() % (d < 2 ? 70 : 3);
      args.size *= args.shape[d];
      args.strides[d] = unit * (static_cast<std::int64_t>(random() % 400) - 200);
      if (trial % 3 == 0 && d == 0) args.strides[0] = args.itemsize;
      (args.strides[d] < 0 ? start : end) += (args.shape[d] - 1) * args.strides[d];
    }
    args.diagonal = static_cast<std::int64_t>(random() % 160) - 80;
    const Bytes in = random_bytes(random, end - start + args.itemsize);
    Bytes wanted(static_cast<std::size_t>(args.size * args.itemsize));
    args.in = in.data() - start;
    args.out = wanted.data();
    DEVICE_CHECK(host_kernels::triangle(args) == 0);
    const DeviceBytes there(in.data(), in.size(), static_cast<std::size_t>(unit % args.itemsize));
    const DeviceBytes out(wanted.size());
    args.in = static_cast<const unsigned char*>(there.data()) - start;
    args.out = out.data();
    args.stream = kLegacyStream;
    DEVICE_CHECK(cuda_kernels::triangle(args) == 0);
    DEVICE_CHECK(out.get() == wanted, "trial " + std::to_string(trial));
  }
}

// Pieces of every length and stride, of arrays that are read backwards and of one row that all rows repeat.
void compare_joins() {
  std::mt19937 random(40);
  for (int trial = 0; trial < 300; ++trial) {
    JoinArgs args{};
    args.itemsize = 1 << (trial % 5);
    args.parts = 2 + static_cast<int>(random() % (trial % 4 == 0 ? kJoinedParts - 1 : 3));
    args.inner_rows = 1 + random() % (trial % 6 == 0 ? 2000 : 100);
    const std::int64_t outer = trial % 5 < 2 ? 1 : 1 + static_cast<std::int64_t>(random() % 10);
    args.rows = outer * args.inner_rows;
    std::vector<Bytes> in;
    std::deque<DeviceBytes> there;  // they do not move
    std::vector<std::int64_t> starts;
    std::int64_t row_length = 0;
    for (int k = 0; k < args.parts; ++k) {
      args.lengths[k] = 1 + random() % (trial % 3 == 0 ? 3 : 40);
      args.strides[k] = args.itemsize * (trial % 2 == 0 ? 1 : static_cast<std::int64_t>(random() % 5) - 2);
      args.row_strides[k] = args.itemsize * (static_cast<std::int64_t>(random() % 100) - 50);
      if (trial % 2 == 0) args.row_strides[k] = args.lengths[k] * args.strides[k];
      args.outer_strides[k] = args.itemsize * (static_cast<std::int64_t>(random() % 3000) - 1500);
      std::int64_t start = 0, end = args.itemsize;
      (args.strides[k] < 0 ? start : end) += (args.lengths[k] - 1) * args.strides[k];
      (args.row_strides[k] < 0 ? start : end) += (args.inner_rows - 1) * args.row_strides[k];
      (args.outer_strides[k] < 0 ? start : end) += (outer - 1) * args.outer_strides[k];
      in.push_back(random_bytes(random, end - start));
      starts.push_back(start);
      row_length += args.lengths[k];
    }
    for (int k = 0; k < args.parts; ++k)
      args.in[k] = in[static_cast<std::size_t>(k)].data() - starts[static_cast<std::size_t>(k)];
    Bytes wanted(static_cast<std::size_t>(args.rows * row_length * args.itemsize));
    args.out = wanted.data();
    DEVICE_CHECK(host_kernels::join(args) == 0);
    for (std::size_t k = 0; k < in.size(); ++k) {
      there.emplace_back(in[k].data(), in[k].size());
      args.in[k] = static_cast<const unsigned char*>(there[k].data()) - starts[k];
    }
    const DeviceBytes out(wanted.size());
    args.out = out.data();
    args.stream = kLegacyStream;
    DEVICE_CHECK(cuda_kernels::join(args) == 0);
    DEVICE_CHECK(out.get() == wanted, "trial " + std::to_string(trial));
  }
}

// --- speed ----------------------------------------------------------------------------------------------------------

constexpr double kGiB = 1024.0 * 1024 * 1024;

void bench_rows(std::int64_t columns, bool scatter, bool accumulate, const char* name) {
  std::mt19937_64 random(36);
  const std::int64_t rows = (std::int64_t{1} << 28) / columns;
  std::vector<std::int64_t> index(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) index[static_cast<std::size_t>(i)] = i;
  std::shuffle(index.begin(), index.end(), random);
  const DeviceBytes base(std::size_t{1} << 30), values(std::size_t{1} << 30),
      device_index(index.data(), index.size() * 8);
  CUDA_OK(cudaMemset(base.data(), 0, std::size_t{1} << 30));
  CUDA_OK(cudaMemset(values.data(), 0, std::size_t{1} << 30));
  DeviceWorkspace workspace;
  IndexArgs args{};
  args.itemsize = 4;
  args.dtype = DType::kFloat32;
  args.accumulate = accumulate;
  args.ndim = 2;
  args.arrays = 1;
  args.shape[0] = columns;
  args.shape[1] = rows;
  args.size = columns * rows;
  args.value_strides[0] = args.base_strides[0] = 4;
  args.value_strides[1] = args.axis_stride[0] = columns * 4;
  args.index_strides[0][1] = 8;
  args.index[0] = device_index.as<std::int64_t>();
  args.extent[0] = rows;
  args.values = values.data();
  args.base = base.data();
  args.stream = kLegacyStream;
  bench(name, (accumulate ? 3 : 2) * kGiB + static_cast<double>(rows) * 8, [&] {
    args.workspace = workspace.get();
    DEVICE_CHECK((scatter ? cuda_kernels::scatter(args) : cuda_kernels::gather(args)) == 0);
  });
}

void bench_all() {
  bench_rows(256, false, false, "take rows of 256 float32");
  bench_rows(8, false, false, "take rows of 8 float32");
  bench_rows(1, false, false, "take single float32 (random)");
  bench_rows(256, true, false, "put rows of 256 float32");
  bench_rows(1, true, false, "put single float32 (random)");
  bench_rows(256, true, true, "add rows of 256 float32");
  bench_rows(1, true, true, "add single float32 (random)");
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
  compare_moves();
  compare_long_moves(testing::has_option(argc, argv, "--small"));
  compare_combined();
  compare_long_combined();
  compare_triangles();
  compare_joins();
  check_clamping();
  compare_nonzero();
  compare_runs();
  compare_search();
  const int rc = testing::report();
  if (rc == 0 && testing::has_option(argc, argv, "--bench")) bench_all();
  return rc;
}
