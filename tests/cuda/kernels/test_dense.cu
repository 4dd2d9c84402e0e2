// Functions of dense elements, bits and padding on the device against the host's kernels on the same data, bit for bit.
#include <algorithm>
#include <cstdint>
#include <random>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/dense.h"
#include "tests/cpp/nd/dtypes.h"
#include "tests/cuda/kernels/device_check.cuh"

namespace dlbridge::nd {
namespace {

using namespace testing;

// Around the elements of a thread and of a block; the last ones are many blocks.
constexpr std::int64_t kSizes[] = {1, 3, 7, 8, 15, 16, 17, 31, 33, 255, 1000, 4096, 4099, 100'003, 1'000'001};
constexpr std::int64_t kSmall = 4099;

// --- functions -------------------------------------------------------------------------------------------------------

// Of NaN, which bits it has is open.
template <class T>
std::int64_t first_other(const Bytes& got, const Bytes& wanted) {
  if constexpr (!std::is_same_v<T, Nothing>) {
    for (std::size_t at = 0; at < wanted.size(); at += sizeof(T)) {
      if (std::memcmp(&got[at], &wanted[at], sizeof(T)) == 0) continue;
      T one, other;
      std::memcpy(&one, &got[at], sizeof one);
      std::memcpy(&other, &wanted[at], sizeof other);
      if (!fn::is_nan(load(&one)) || !fn::is_nan(load(&other))) return static_cast<std::int64_t>(at / sizeof(T));
    }
  }
  return -1;
}

template <class T>
std::size_t bytes_of(std::int64_t n) {
  return std::is_same_v<T, Nothing> ? 0 : static_cast<std::size_t>(n) * sizeof(T);
}

// `displaced`: everything lies an element behind a multiple of 16 bytes.
template <class F>
void compare_function(DenseArgs args, const Bytes (&in)[2], bool displaced, const std::string& detail) {
  using First = typename F::First;
  using Second = typename F::Second;
  Bytes first(bytes_of<First>(args.n)), second(bytes_of<Second>(args.n));
  for (int k = 0; k < 2; ++k) args.in[k] = in[k].data();
  args.out[0] = first.data();
  args.out[1] = second.data();
  DEVICE_CHECK(host_kernels::dense(args) == 0, detail);

  const auto offset_of = [displaced]<class T>(T*) { return displaced ? sizeof(T) : 0; };
  const DeviceBytes x(in[0].data(), in[0].size(), offset_of(static_cast<typename F::In*>(nullptr))),
      y(in[1].data(), in[1].size(), offset_of(static_cast<typename F::In*>(nullptr))),
      device_first(first.size(), offset_of(static_cast<First*>(nullptr))),
      device_second(second.size(), offset_of(static_cast<Second*>(nullptr)));
  args.in[0] = x.data();
  args.in[1] = y.data();
  args.out[0] = device_first.data();
  args.out[1] = device_second.data();
  DEVICE_CHECK(cuda_kernels::dense(args) == 0, detail);
  const std::int64_t one = first_other<First>(device_first.get(), first),
                     other = first_other<Second>(device_second.get(), second);
  DEVICE_CHECK(one < 0, detail + ", first result at " + std::to_string(one));
  DEVICE_CHECK(other < 0, detail + ", second result at " + std::to_string(other));
}

constexpr DenseOp kFunctions[] = {DenseOp::kSplitExponents, DenseOp::kSplitWholes,     DenseOp::kDivide,
                                  DenseOp::kIsClose,        DenseOp::kReplaceSpecials, DenseOp::kReplaceNan,
                                  DenseOp::kRoundAt,        DenseOp::kScaleByPowers};
constexpr const char* kNames[] = {"split exponents",  "split wholes", "divide",   "is close",
                                  "replace specials", "replace nan",  "round at", "scale by powers"};

// Way 1: behind a multiple of 16 bytes; 2 and 3: one input is the same element for all.
void compare_functions(bool small) {
  std::mt19937 random(41);
  for (const DenseOp op : kFunctions)
    for (const DType dtype : dtypes_of(kAllSet))
      for (const std::int64_t n : kSizes)
        for (int way = 0; way < 4; ++way) {
          if (small && n > kSmall) continue;
          DenseArgs args{op, dtype, way % 2 == 0, {way == 2, way == 3}, n, {}, {}, {0.5, 0.25, -3}, kLegacyStream};
          const std::string detail = std::string(kNames[static_cast<int>(op)]) + " of " + std::to_string(n) + " " +
                                     std::string(info(dtype).name) + ", way " + std::to_string(way);
          with_dense_functor(args, [&]<class F>(F) {
            if (F::kInputs == 1 && way >= 2) return 0;
            const Bytes in[2] = {random_bytes(random, bytes_of<typename F::In>(args.repeats[0] ? 1 : n)),
                                 random_bytes(random, bytes_of<typename F::In>(args.repeats[1] ? 1 : n))};
            compare_function<F>(args, in, way == 1, detail);
            return 0;
          });
        }
}

// --- bits ------------------------------------------------------------------------------------------------------------

void compare_bits(bool small) {
  std::mt19937 random(43);
  for (const DenseOp op : {DenseOp::kPackBits, DenseOp::kUnpackBits})
    for (const std::int64_t n : kSizes)
      for (int way = 0; way < 4; ++way) {
        if (small && n > kSmall) continue;
        DenseArgs args{op, DType::kUInt8, way % 2 == 0, {}, n, {}, {}, {}, kLegacyStream};
        Bytes in = random_bytes(random, n);
        if (op == DenseOp::kPackBits)  // half of them 0
          for (auto& b : in) b = (random() & 1) != 0 ? b : 0;
        Bytes wanted(static_cast<std::size_t>(op == DenseOp::kPackBits ? (n + 7) / 8 : 8 * n));
        const std::size_t offset = way < 2 ? 0 : 1;
        const DeviceBytes from(in.data(), in.size(), offset), to(wanted.size(), offset);
        args.in[0] = in.data();
        args.out[0] = wanted.data();
        DEVICE_CHECK(host_kernels::dense(args) == 0);
        args.in[0] = from.data();
        args.out[0] = to.data();
        DEVICE_CHECK(cuda_kernels::dense(args) == 0);
        DEVICE_CHECK(to.get() == wanted, "bits of " + std::to_string(n) + ", way " + std::to_string(way));
      }
}

// --- padding ---------------------------------------------------------------------------------------------------------

constexpr PadMode kModes[] = {PadMode::kConstant, PadMode::kEdge, PadMode::kWrap, PadMode::kSymmetric,
                              PadMode::kReflect};

void compare_padded(PadArgs args, const Bytes& in, std::int64_t first, const std::string& detail) {
  Bytes wanted(static_cast<std::size_t>(args.size * args.itemsize));
  args.in = in.data() + first;
  args.out = wanted.data();
  DEVICE_CHECK(host_kernels::pad(args) == 0, detail);
  const DeviceBytes from(in.data(), in.size()), to(wanted.size());
  args.in = from.data() + first;
  args.out = to.data();
  DEVICE_CHECK(cuda_kernels::pad(args) == 0, detail);
  DEVICE_CHECK(to.get() == wanted, detail);
}

// Dense rows, rows with gaps, rows that are the same one, and rows from the last to the first.
void compare_pads(bool small) {
  std::mt19937 random(47);
  const auto below = [&random](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(n));
  };
  for (int trial = 0; trial < 600; ++trial) {
    PadArgs args{};
    args.mode = kModes[trial % 5];
    args.itemsize = 1 << (trial / 5 % 5);
    args.ndim = static_cast<int>(1 + below(4));
    args.size = 1;
    args.stream = kLegacyStream;
    for (auto& b : args.value.bytes) b = static_cast<unsigned char>(random());
    const bool has_gaps = below(3) == 0;
    std::int64_t step = args.itemsize * (has_gaps ? 2 : 1), first = 0;
    for (int d = 0; d < args.ndim; ++d) {
      const std::int64_t longest = small ? 9 : d == 0 ? 70 : 12;
      args.extent[d] = (args.mode == PadMode::kConstant && below(20) == 0 ? 0 : 1) + below(longest);
      if (args.mode != PadMode::kConstant) args.extent[d] = std::max<std::int64_t>(args.extent[d], 1);
      args.before[d] = below(2 * args.extent[d] + 3);
      args.shape[d] = args.before[d] + args.extent[d] + below(2 * args.extent[d] + 3);
      args.size *= args.shape[d];
      args.strides[d] = d > 0 && below(8) == 0 ? 0 : step;
      step *= std::max<std::int64_t>(args.extent[d], 1);
      if (below(4) != 0 || args.extent[d] == 0) continue;
      first += args.strides[d] * (args.extent[d] - 1);
      args.strides[d] = -args.strides[d];
    }
    if (args.size == 0) continue;
    compare_padded(args, random_bytes(random, step), first, "trial " + std::to_string(trial));
  }
}

// More elements than 32 bits count.
void compare_long_pad() {
  std::mt19937 random(53);
  PadArgs args{};
  args.mode = PadMode::kReflect;
  args.itemsize = 1;
  args.ndim = 2;
  args.stream = kLegacyStream;
  args.extent[0] = 1000;
  args.extent[1] = 2'147'500;
  args.strides[0] = 1;
  args.before[0] = 13;
  args.shape[0] = 1013;
  args.shape[1] = args.extent[1];
  args.size = args.shape[0] * args.shape[1];
  compare_padded(args, random_bytes(random, 1000), 0, "2,175 million elements");
}

}  // namespace
}  // namespace dlbridge::nd

int main(int argc, char** argv) {
  using namespace dlbridge::nd;
  const bool small = testing::has_option(argc, argv, "--small");
  compare_functions(small);
  compare_bits(small);
  compare_pads(small);
  if (!small) compare_long_pad();
  return testing::report();
}
