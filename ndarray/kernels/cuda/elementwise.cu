// The host side of CUDA's elementwise operations.
#include "ndarray/kernels/cuda/elementwise_launch.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

constexpr std::int64_t kTiledFrom = 1 << 12;
constexpr std::int64_t kTileSize = 32 * 32;  // what a block of the strided kernel does

const Kernels* find_kernels(Op op, DType compute) noexcept {
#define DLBRIDGE_ND_FIND(name) \
  if (const Kernels* kernels = find_##name(op, compute)) return kernels;
  DLBRIDGE_ND_ELEMENTWISE_UNITS(DLBRIDGE_ND_FIND)
#undef DLBRIDGE_ND_FIND
  return nullptr;
}

template <class Params>
void fill_dims(Params& p, const KernelLoop& loop) noexcept {
  p.ndim = loop.ndim > 0 ? loop.ndim : 1;
  for (int d = 0; d < loop.ndim; ++d) p.dims[d] = Divider::of(loop.shape[d]);
  for (int k = 0; k < loop.operands; ++k) {
    p.data[k] = loop.data[k];
    p.strides[k][0] = 0;  // for a loop of no dims
    for (int d = 0; d < loop.ndim; ++d) p.strides[k][d] = static_cast<std::int32_t>(loop.strides[k][d]);
  }
}

// Whether an operand's vectors of n elements are all aligned.
bool is_vector_dense(const Call& call, int operand, int n) noexcept {
  const std::int64_t bytes = std::int64_t{call.itemsizes[operand]} * n;
  if (reinterpret_cast<std::uintptr_t>(call.loop.data[operand]) % static_cast<std::uintptr_t>(bytes) != 0) return false;
  for (int d = 1; d < call.loop.ndim; ++d)
    if (call.loop.strides[operand][d] % bytes != 0) return false;
  return true;
}

int start(VectorKernel kernel, const VectorParams& p, std::int64_t vectors_a_block, cudaStream_t stream) {
  const std::int64_t blocks = std::max<std::int64_t>((p.count + vectors_a_block - 1) / vectors_a_block, 1);
  kernel<<<static_cast<unsigned>(blocks), kBlockThreads, 0, stream>>>(p);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

int launch_vector(const Kernels& kernels, const Call& call) {
  const int n = kernels.vector_elements;
  const KernelLoop& loop = call.loop;
  if (kernels.vector == nullptr || loop.ndim == 0 || loop.shape[0] < n) return kNotVectorisable;
  if (loop.ndim > 1 && loop.shape[0] % n != 0) return kNotVectorisable;

  VectorParams p;
  KernelLoop steps = loop;
  steps.shape[0] = loop.shape[0] / n;
  for (int k = 0; k < loop.operands; ++k) {
    p.access[k] = call.access[k];
    if (call.access[k] == Access::kScalar) {
      p.scalars[k] = call.scalars[k];
    } else if (call.access[k] == Access::kDirect && loop.strides[k][0] == call.itemsizes[k] &&
               is_vector_dense(call, k, n)) {
      steps.strides[k][0] = std::int64_t{call.itemsizes[k]} * n;
    } else if (call.access[k] == Access::kDirect && loop.strides[k][0] == 0 && k > 0) {
      p.access[k] = Access::kRepeat;
    } else {
      return kNotVectorisable;
    }
  }
  const std::int64_t vectors_a_block = std::int64_t{kernels.vectors_a_thread} * kBlockThreads;
  p.tail = static_cast<std::int32_t>(loop.shape[0] % n);
  if (loop.ndim == 1) {
    fill_dims(p, steps);
    p.count = steps.shape[0];
    return start(kernels.vector, p, vectors_a_block, call.stream);
  }
  merge_dims(steps);
  return for_each_32bit_part(steps, kPartLimit, [&](const KernelLoop& part) {
    fill_dims(p, part);
    p.count = part.size();
    return start(kernels.vector, p, vectors_a_block, call.stream);
  });
}

int launch_strided(const Kernels& kernels, const Call& call) {
  StridedParams p;
  for (int k = 0; k < call.loop.operands; ++k) {
    p.access[k] = call.access[k];
    p.dtype[k] = call.dtype[k];
    if (call.access[k] == Access::kScalar) p.scalars[k] = call.scalars[k];
  }
  p.result_signed = call.result_signed;
  const auto run_part = [&](const KernelLoop& part) {
    fill_dims(p, part);
    p.size = static_cast<std::uint32_t>(part.size());
    const std::uint32_t a_block = static_cast<std::uint32_t>(kernels.elements_a_thread) * kBlockThreads;
    kernels.strided<<<(p.size + a_block - 1) / a_block, kBlockThreads, 0, call.stream>>>(p);
    return static_cast<int>(cudaGetLastError());
  };
  const auto run = [&](const KernelLoop& loop) { return for_each_32bit_part(loop, kPartLimit, run_part); };
  const TilePair pair = call.loop.size() >= kTiledFrom ? transposed_dims(call.loop, call.itemsizes) : TilePair{0, 0};
  return pair.across != 0 ? for_each_tiled_part(call.loop, pair, kTileSize, run) : run(call.loop);
}

int elementwise(const ElementwiseArgs& args) {
  if (!contains(info(args.op).dtypes, args.compute)) return kErrorUnsupported;
  const Canonical form = canonical(args.op, args.compute);
  if (form.work == Work::kCopy) return launch_copy(args);
  if (form.work != Work::kKernel) {  // isnan of integers: a copy of a bool scalar
    ElementwiseArgs constant = args;
    constant.op = Op::kPositive;
    constant.compute = DType::kBool;
    constant.operands = 2;
    constant.scalar_mask = 2;
    constant.scalars[1] = {};
    constant.scalars[1].bytes[0] = form.work == Work::kTrue;
    return launch_copy(constant);
  }
  const Kernels* kernels = find_kernels(form.op, form.compute);
  if (kernels == nullptr) return kErrorUnsupported;

  Call call;
  bool casts = false;
  for (int k = 0; k < args.operands; ++k) {
    const bool condition = args.op == Op::kWhere && k == 1;
    const DType wanted = k == 0      ? result_dtype(info(args.op).rule, args.compute)
                         : condition ? DType::kBool
                                     : args.compute;
    const bool scalar = (args.scalar_mask >> k & 1) != 0;
    const DType given = scalar ? wanted : args.dtype[k];
    const bool direct = k == 0 ? is_same_result_bits(wanted, given) : is_same_bits(given, wanted);
    call.access[k] = scalar ? Access::kScalar : direct ? Access::kDirect : Access::kCast;
    call.dtype[k] = given;
    call.itemsizes[k] = info(given).itemsize;
    if (scalar) call.scalars[k] = args.scalars[k];
    casts = casts || call.access[k] == Access::kCast;
  }
  call.result_signed = contains(kSignedSet, args.compute);
  call.stream = reinterpret_cast<cudaStream_t>(args.stream);
  call.loop = make_loop(args, call.itemsizes);
  if (casts) return launch_strided(*kernels, call);

  // where() chooses bits: one vector kernel a width.
  const Kernels* const wide = form.op == Op::kWhere ? find_kernels(form.op, carrier_of(form.compute)) : kernels;
  const int rc = launch_vector(*wide, call);
  return rc == kNotVectorisable ? launch_strided(*kernels, call) : rc;
}

}  // namespace dlbridge::nd::cuda_kernels
