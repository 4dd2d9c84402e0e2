// Sorts on the device against the host's; `--bench` prints their speed.
#include <cstring>
#include <string>

#include "tests/cpp/nd/reduce_cases.h"
#include "tests/cuda/kernels/rows_check.cuh"

using namespace dlbridge;
using namespace dlbridge::nd;
using namespace dlbridge::nd::rows_check;
using namespace dlbridge::nd::testing_cases;

namespace {

constexpr DType kDTypesOfArrays[] = {DType::kBool,    DType::kInt8,      DType::kInt16,     DType::kInt32,
                                     DType::kInt64,   DType::kUInt8,     DType::kUInt16,    DType::kUInt32,
                                     DType::kUInt64,  DType::kFloat16,   DType::kBFloat16,  DType::kFloat32,
                                     DType::kFloat64, DType::kComplex64, DType::kComplex128};

enum class Wanted { kValues, kPositions, kBoth, kInPlace, kBothInPlace };

// Keys as bits that random floats do not have: every exponent, NaN of both signs, zeros of both signs.
std::vector<unsigned char> random_keys(DType dtype, std::int64_t n, std::uint32_t seed, bool any_bits) {
  if (!any_bits || dtype == DType::kBool) return random_buffer(dtype, n, seed, true);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(n) * info(dtype).itemsize);
  std::mt19937 random(seed);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
  return bytes;
}

void check(Arena& arena, DType dtype, std::int64_t rows, std::int64_t n, bool descending, Wanted wanted,
           bool any_bits) {
  const auto itemsize = static_cast<std::size_t>(info(dtype).itemsize);
  if (is_skipped(static_cast<std::size_t>(rows * n) * itemsize)) return;
  const std::vector<unsigned char> keys = random_keys(dtype, rows * n, 9, any_bits);
  const bool in_place = wanted == Wanted::kInPlace || wanted == Wanted::kBothInPlace;
  const bool positions = wanted != Wanted::kValues && wanted != Wanted::kInPlace;
  std::vector<unsigned char> want(keys.size()), got(keys.size());
  std::vector<std::int64_t> want_positions(static_cast<std::size_t>(rows * n), -1), got_positions = want_positions;
  SortArgs args{dtype, descending, true, rows, n, keys.data(), want.data(), want_positions.data(), {}, 0};
  int status = host_kernels::sort(args);
  DeviceBuffer in(keys.size()), out(keys.size()), indices(want_positions.size() * 8);
  in.upload(keys.data());
  arena.reset();
  args.workspace = arena.workspace();
  args.keys_in = in.get();
  args.keys_out = wanted == Wanted::kPositions ? nullptr : in_place ? in.get() : out.get();
  args.indices = positions ? static_cast<std::int64_t*>(indices.get()) : nullptr;
  status |= cuda_kernels::sort(args);
  (in_place ? in : out).download(got.data());
  if (positions) indices.download(got_positions.data());
  ++checks;
  const std::string what = std::string(info(dtype).name) + " " + std::to_string(rows) + " rows of " +
                           std::to_string(n) + (descending ? " descending" : "") + " wanted " +
                           std::to_string(static_cast<int>(wanted));
  if (status != 0) return fail((what + ": " + cuda_kernels::error_text(status)).c_str());
  if (positions && got_positions != want_positions) return fail((what + ": positions").c_str());
  if (wanted == Wanted::kPositions) return;
  // Values alone: equal keys (zeros, NaN) may change places, so that values are compared; else bits.
  const bool bitwise = positions || contains(kComplexSet, dtype);
  for (std::size_t i = 0; i < want.size(); i += itemsize) {
    if (std::memcmp(&got[i], &want[i], itemsize) == 0) continue;
    const Value a = value_at(dtype, &got[i]), b = value_at(dtype, &want[i]);
    if (!bitwise && (a == b || (is_nan(a) && is_nan(b)))) continue;
    return fail((what + " at " + std::to_string(i / itemsize) + ": " + std::to_string(a.real()) + ", host " +
                 std::to_string(b.real()))
                    .c_str());
  }
}

void check_all(Arena& arena) {
  const struct {
    std::int64_t rows, n;
  } shapes[] = {{1, 1},    {1, 2},    {1, 37},   {1, 1000}, {1, 1025}, {1, 2049}, {1, 5000},  {1, 300000}, {1000, 1},
                {1000, 7}, {300, 64}, {50, 700}, {9, 1024}, {9, 2048}, {7, 2049}, {20, 5000}, {3, 131072}};
  for (const DType dtype : kDTypesOfArrays)
    for (const auto& s : shapes)
      for (const bool descending : {false, true})
        for (const Wanted wanted :
             {Wanted::kValues, Wanted::kPositions, Wanted::kBoth, Wanted::kInPlace, Wanted::kBothInPlace})
          for (const bool any_bits : {false, true})
            if (!any_bits || wanted == Wanted::kValues || wanted == Wanted::kBoth)
              check(arena, dtype, s.rows, s.n, descending, wanted, any_bits);
}

// Out of memory must be said, never a wrong result.
void check_out_of_memory() {
  DeviceBuffer x(1 << 20);
  const Workspace none{[](void*, std::size_t) -> void* { return nullptr; }, nullptr};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt16, DType::kComplex64, DType::kComplex128}) {
    const std::int64_t n = (1 << 20) / info(dtype).itemsize;
    const SortArgs args{dtype, true, true, 1, n, x.get(), x.get(), nullptr, none, 0};
    ++checks;
    if (cuda_kernels::sort(args) != kErrorMemory) fail("a sort without a workspace must fail");
  }
}

__global__ void fill_random(unsigned* x, std::int64_t n) {
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    unsigned long long z = (static_cast<unsigned long long>(i) + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    x[i] = static_cast<unsigned>(z >> 32) & 0xbfffffffu;  // no NaN, no infinity among floats
  }
}

void bench(Arena& arena) {
  const std::int64_t n = std::int64_t{1} << 26;
  DeviceBuffer in(static_cast<std::size_t>(n) * 16), out(static_cast<std::size_t>(n) * 16),
      indices(static_cast<std::size_t>(n) * 8);
  fill_random<<<1024, 256>>>(static_cast<unsigned*>(in.get()), n * 4);
  REQUIRE_CUDA(cudaDeviceSynchronize());
  const auto run = [&](DType dtype, std::int64_t rows, bool positions, bool descending = false) {
    const SortArgs args{dtype,
                        descending,
                        positions,
                        rows,
                        n / rows,
                        in.get(),
                        positions ? nullptr : out.get(),
                        positions ? static_cast<std::int64_t*>(indices.get()) : nullptr,
                        arena.workspace(),
                        0};
    const std::string row = std::string(positions ? "argsort " : "sort ") + std::string(info(dtype).name) + " " +
                            std::to_string(rows) + " rows of " + std::to_string(n / rows) +
                            (descending ? " descending" : "");
    report(row.c_str(), 2.0 * static_cast<double>(n) * info(dtype).itemsize,
           time_ms(arena, [&] { return cuda_kernels::sort(args); }));
  };
  for (const DType dtype : kDTypesOfArrays) {
    if (dtype == DType::kBool) continue;
    run(dtype, 1, false);
    run(dtype, 1, true);
  }
  run(DType::kFloat32, 1, false, true);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64})
    for (const std::int64_t rows : {16, 1024, 8192, 65536, 1048576, 8388608}) {
      run(dtype, rows, false);
      run(dtype, rows, true);
    }
}

}  // namespace

int main(int argc, char** argv) {
  small = has_option(argc, argv, "--small");
  Arena arena(small ? std::size_t{1} << 28 : std::size_t{12} << 30);
  check_all(arena);
  check_out_of_memory();
  std::printf("%ld checks, %d failures\n", checks, failures);
  if (failures == 0 && has_option(argc, argv, "--bench")) bench(arena);
  return failures != 0;
}
