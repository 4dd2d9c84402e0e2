// A libdlbridge_kernels.so for machines with no GPU: sums, sorts and additions of float32 over the memory of
// fake_libcuda.c, with scratch memory as CUDA's kernels ask for it. A call first runs what its stream was given before,
// then itself at once. Build: c++ -std=c++20 -shared -fPIC -I<repository> -I<headers> fake_kernels.cpp -ldl
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ndarray/kernels/api.h"

namespace dlbridge::nd {
namespace {

void* driver_function(const char* name) {
  static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  return ::dlsym(driver, name);
}
int synchronize(StreamHandle stream) {
  static const auto function = reinterpret_cast<int (*)(void*)>(driver_function("cuStreamSynchronize"));
  return function(reinterpret_cast<void*>(stream));
}

// Calls f(offset of each operand, in bytes) for every element.
template <std::size_t n, class F>
void walk(int ndim, const std::int64_t* shape, const std::int64_t* const (&strides)[n], F f) {
  std::int64_t size = 1, index[kLoopDims]{};
  for (int d = 0; d < ndim; ++d) size *= shape[d];
  for (; size > 0; --size) {
    std::int64_t offsets[n]{};
    for (int d = 0; d < ndim; ++d)
      for (std::size_t k = 0; k < n; ++k) offsets[k] += index[d] * strides[k][d];
    f(offsets);
    for (int d = 0; d < ndim && ++index[d] == shape[d]; ++d) index[d] = 0;
  }
}

float load(const void* base, std::int64_t offset) {
  float value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}
void store(void* base, std::int64_t offset, float value) {
  std::memcpy(static_cast<char*>(base) + offset, &value, sizeof value);
}

// Casts of float32 to bool, and where() of float32.
int choose(const ElementwiseArgs& args) {
  const bool casts = args.op == Op::kPositive && args.dtype[0] == DType::kBool && args.dtype[1] == DType::kFloat32;
  if (!casts && (args.op != Op::kWhere || args.dtype[0] != DType::kFloat32)) return kErrorUnsupported;
  if (const int code = synchronize(args.stream); code != 0) return code;
  const int x = casts ? 1 : 2, y = casts ? 1 : 3;
  walk<4>(args.ndim, args.shape, {args.strides[0], args.strides[1], args.strides[x], args.strides[y]},
          [&](const std::int64_t* at) {
            if (casts) static_cast<char*>(args.data[0])[at[0]] = load(args.data[1], at[1]) != 0;
            else
              store(args.data[0], at[0],
                    static_cast<const char*>(args.data[1])[at[1]] != 0 ? load(args.data[x], at[2])
                                                                       : load(args.data[y], at[3]));
          });
  return 0;
}

int elementwise(const ElementwiseArgs& args) {
  if (args.op == Op::kWhere || args.dtype[0] == DType::kBool) return choose(args);
  const bool adds = args.op == Op::kAdd;
  if (!std::all_of(args.dtype, args.dtype + args.operands, [](DType t) { return t == DType::kFloat32; }) ||
      args.scalar_mask != 0 || (!adds && args.op != Op::kPositive))
    return kErrorUnsupported;
  if (const int code = synchronize(args.stream); code != 0) return code;
  const int last = args.operands - 1;
  walk<3>(args.ndim, args.shape, {args.strides[0], args.strides[1], args.strides[last]}, [&](const std::int64_t* at) {
    store(args.data[0], at[0], load(args.data[1], at[1]) + (adds ? load(args.data[last], at[2]) : 0));
  });
  return 0;
}

// Two pieces, as a tree over blocks wants them: the partial sums, and a counter.
int reduce(const ReduceArgs& args) {
  if (args.op != ReduceOp::kSum || args.in_dtype != DType::kFloat32 || args.out_dtype != DType::kFloat32)
    return kErrorUnsupported;
  auto* partial = static_cast<float*>(args.workspace.get(std::size_t{3} << 20));
  void* const counter = partial != nullptr ? args.workspace.get(64) : nullptr;
  if (counter == nullptr) return kErrorMemory;
  if (const int code = synchronize(args.stream); code != 0) return code;
  walk<2>(args.kept_ndim, args.kept_shape, {args.kept_in_strides, args.kept_out_strides},
          [&](const std::int64_t* kept) {
            *partial = 0;
            walk<1>(args.reduced_ndim, args.reduced_shape, {args.reduced_in_strides},
                    [&](const std::int64_t* at) { *partial += load(args.in, kept[0] + at[0]); });
            store(args.out, kept[1], *partial);
          });
  return 0;
}

int sort(const SortArgs& args) {
  if (args.dtype != DType::kFloat32 || args.indices != nullptr || args.descending) return kErrorUnsupported;
  const auto bytes = static_cast<std::size_t>(args.rows * args.n) * sizeof(float);
  auto* keys = static_cast<float*>(args.workspace.get(bytes));
  if (keys == nullptr || args.workspace.get(bytes) == nullptr) return kErrorMemory;
  if (const int code = synchronize(args.stream); code != 0) return code;
  std::memcpy(keys, args.keys_in, bytes);
  for (std::int64_t row = 0; row < args.rows; ++row) std::sort(keys + row * args.n, keys + (row + 1) * args.n);
  std::memcpy(args.keys_out, keys, bytes);
  return 0;
}

// Twelve pieces, as a sort of the positions takes. Each keeps what was written to it while the others are used.
int scatter(const IndexArgs& args) {
  if (args.itemsize != 4 || args.accumulate || args.arrays != 1) return kErrorUnsupported;
  constexpr int kPieces = 12, kOverwritten = 801;
  constexpr std::size_t kBytes = std::size_t{3} << 20;
  unsigned char* pieces[kPieces];
  for (int k = 0; k < kPieces; ++k) {
    pieces[k] = static_cast<unsigned char*>(args.workspace.get(kBytes));
    if (pieces[k] == nullptr) return kErrorMemory;
    std::memset(pieces[k], k, kBytes);
  }
  for (int k = 0; k < kPieces; ++k)
    if (pieces[k][0] != k || pieces[k][kBytes - 1] != k) return kOverwritten;
  if (const int code = synchronize(args.stream); code != 0) return code;
  walk<3>(args.ndim, args.shape, {args.value_strides, args.base_strides, args.index_strides[0]},
          [&](const std::int64_t* at) {
            std::int64_t index;
            std::memcpy(&index, reinterpret_cast<const char*>(args.index[0]) + at[2], sizeof index);
            store(args.base, at[1] + (index < 0 ? index + args.extent[0] : index) * args.axis_stride[0],
                  load(args.values, at[0]));
          });
  return 0;
}

// For the count; with the GIL held that would be forever where a host function needs it: refused here.
template <class Args>
int wait_for_count(const Args& args) {
  const auto holds_gil = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  constexpr int kNotPermitted = 800;
  if (holds_gil != nullptr && holds_gil() != 0) return kNotPermitted;
  if (const int code = synchronize(args.stream); code != 0) return code;
  return args.workspace.get(64) == nullptr ? kErrorMemory : 0;
}

int nonzero(const NonzeroArgs& args) {
  if (const int code = wait_for_count(args); code != 0) return code;
  const auto* mask = static_cast<const unsigned char*>(args.mask);
  *args.count = 0;
  for (std::int64_t i = 0; i < args.n; ++i)
    if (mask[i] != 0) args.positions[(*args.count)++] = i;
  return 0;
}

int runs(const RunsArgs& args) {
  if (args.dtype != DType::kFloat32) return kErrorUnsupported;
  if (const int code = wait_for_count(args); code != 0) return code;
  const auto* sorted = static_cast<const float*>(args.sorted);
  auto* const values = static_cast<float*>(args.values);
  *args.count = std::unique_copy(sorted, sorted + args.n, values) - values;
  return 0;
}

template <class Args>
int refuse(const Args&) {
  return kErrorUnsupported;
}

const char* error_text(int code) {
  switch (code) {
    case kErrorMemory: return "out of memory for a workspace";
    case kErrorUnsupported: return "the fake has no such kernel";
    default: return "an error of the fake kernels";
  }
}

constexpr Backend kFake{
    kKernelRelease,
    "fake",
    elementwise,
    reduce,
    refuse<ScanArgs>,
    sort,
    refuse<IndexArgs>,
    scatter,
    nonzero,
    runs,
    refuse<SearchArgs>,
    refuse<TriangleArgs>,
    refuse<JoinArgs>,
    refuse<DenseArgs>,
    refuse<PadArgs>,
    refuse<RangeArgs>,
    refuse<RandomArgs>,
    refuse<MultinomialArgs>,
    refuse<MatmulArgs>,
    refuse<MatrixArgs>,
    error_text,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Backend* dlbridge_nd_cuda_backend() noexcept { return &kFake; }

}  // namespace dlbridge::nd
