// Gather, scatter, triangles and joins on the device against the host's, on the same data.
#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <random>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/types.h"
#include "tests/cpp/nd/index_cases.h"
#include "tests/cuda/kernels/device_check.cuh"

namespace dlbridge::nd {
namespace {

using namespace testing;
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
  const int rc = testing::report();
  if (rc == 0 && testing::has_option(argc, argv, "--bench")) bench_all();
  return rc;
}
