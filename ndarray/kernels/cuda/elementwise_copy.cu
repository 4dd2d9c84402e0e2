// Copies: by width where the bits stay, by pairs of dtypes where they are cast; both with vectors where they can be.
#include "ndarray/kernels/cuda/elementwise_launch.h"

namespace dlbridge::nd::cuda_kernels {
namespace {

struct Identity {
  template <class T>
  DLBRIDGE_ND_HD T operator()(T x) const noexcept {
    return x;
  }
};
template <class To>
struct CastTo {
  template <class From>
  DLBRIDGE_ND_HD To operator()(From x) const noexcept {
    return cast<To>(x);
  }
};
template <class T>
using CopySignature = Signature<Identity, T, true, T>;

constexpr DTypeSet kCarriers = kUnsignedSet | bit(DType::kComplex128);
constexpr int kCopyVectors = 1;  // 16 bytes each

// Copies that keep the bits, by carrier; for other dtypes the strided kernel alone, which casts to them on load.
template <DType to>
constexpr Kernels make_copy_kernels() noexcept {
  using S = CopySignature<type_of_t<to>>;
  Kernels kernels{nullptr, &strided_kernel<S, 4>, 0, 0, 4};
  if constexpr (contains(kCarriers, to)) {
    kernels.vector = &vector_kernel<S, vector_elements<S>(), kCopyVectors>;
    kernels.vector_elements = vector_elements<S>();
    kernels.vectors_a_thread = kCopyVectors;
  }
  return kernels;
}

template <DType from, DType to>
constexpr Kernels make_cast_kernels() noexcept {
  using S = Signature<CastTo<type_of_t<to>>, type_of_t<to>, true, type_of_t<from>>;
  constexpr int elements = vector_elements<S>();
  // Measured on an H200: widening runs best with one vector a thread, narrowing with two of its short loads.
  constexpr int vectors = info(to).itemsize >= info(from).itemsize || elements >= 8 ? 1 : 2;
  return {&vector_kernel<S, elements, vectors>, nullptr, elements, vectors, 0};
}

struct CopyTable {
  Kernels copies[kDTypeSlots];              // by the target's dtype, unsigned for integers
  Kernels casts[kDTypeSlots][kDTypeSlots];  // by cast_source() and cast_target()
};

template <std::size_t to>
constexpr void add_copy(CopyTable& table) {
  constexpr DType t = static_cast<DType>(to);
  if constexpr (contains(kAllSet & ~kSignedSet, t)) table.copies[to] = make_copy_kernels<t>();
}
template <std::size_t from, std::size_t to>
constexpr void add_cast(CopyTable& table) {
  constexpr DType f = static_cast<DType>(from), t = static_cast<DType>(to);
  if constexpr (contains(kAllSet, f) && contains(kAllSet, t)) {
    if constexpr (!is_same_bits(f, t) && cast_source(f, t) == f && cast_target(f, t) == t)
      table.casts[from][to] = make_cast_kernels<f, t>();
  }
}
template <std::size_t... to, std::size_t... pair>
constexpr CopyTable make_copy_table(std::index_sequence<to...>, std::index_sequence<pair...>) {
  CopyTable table{};
  (add_copy<to>(table), ...);
  (add_cast<pair / kDTypeSlots, pair % kDTypeSlots>(table), ...);
  return table;
}

constexpr CopyTable kTable =
    make_copy_table(std::make_index_sequence<kDTypeSlots>{}, std::make_index_sequence<kDTypeSlots * kDTypeSlots>{});

const Kernels& copy_kernels(DType to) noexcept { return kTable.copies[static_cast<std::size_t>(unsigned_of(to))]; }

DType carrier_of_width(int bytes) noexcept {
  switch (bytes) {
    case 1: return DType::kUInt8;
    case 2: return DType::kUInt16;
    case 4: return DType::kUInt32;
    case 8: return DType::kUInt64;
    default: return DType::kComplex128;
  }
}

// Makes elements of up to 16 bytes out of runs that are dense in every operand.
void widen(Call& call) noexcept {
  KernelLoop& loop = call.loop;
  const int itemsize = call.itemsizes[0];
  int width = loop.ndim > 0 ? 16 : itemsize;
  for (; width > itemsize; width /= 2) {
    bool fits = loop.shape[0] * itemsize % width == 0;
    for (int k = 0; k < 2; ++k) {
      if (call.access[k] == Access::kScalar) continue;
      fits = fits && loop.strides[k][0] == itemsize && reinterpret_cast<std::uintptr_t>(loop.data[k]) % width == 0;
      for (int d = 1; d < loop.ndim; ++d) fits = fits && loop.strides[k][d] % width == 0;
    }
    if (fits) break;
  }
  if (width == itemsize) return;
  loop.shape[0] = loop.shape[0] * itemsize / width;
  for (int k = 0; k < 2; ++k) {
    call.itemsizes[k] = width;
    if (call.access[k] != Access::kScalar) loop.strides[k][0] = width;
  }
  for (int b = itemsize; b < width; ++b) call.scalars[1].bytes[b] = call.scalars[1].bytes[b - itemsize];
  merge_dims(loop);
}

int copy_bytes(const Call& call) {
  const KernelLoop& loop = call.loop;
  const auto bytes = static_cast<std::size_t>(loop.shape[0] * call.itemsizes[0]);
  return static_cast<int>(cudaMemcpyAsync(loop.data[0], loop.data[1], bytes, cudaMemcpyDefault, call.stream));
}

// A copy that keeps the bits.
int launch_same_bits(Call& call) {
  const KernelLoop& loop = call.loop;
  const int itemsize = call.itemsizes[0];
  const bool from_memory = call.access[1] != Access::kScalar;
  const bool dense = from_memory && loop.ndim == 1 && loop.strides[0][0] == itemsize && loop.strides[1][0] == itemsize;
  if (loop.ndim == 1 || (loop.ndim > 1 && loop.strides[1][0] == 0)) {
    const int rc = launch_vector(copy_kernels(carrier_of_width(itemsize)), call);
    if (rc != kNotVectorisable) return rc;
  }
  if (dense) return copy_bytes(call);  // unaligned
  widen(call);
  if (from_memory) {
    const int rc = launch_transpose(call);
    if (rc != kNotVectorisable) return rc;
  }
  return launch_strided(copy_kernels(carrier_of_width(call.itemsizes[0])), call);
}

}  // namespace

int launch_copy(const ElementwiseArgs& args) {
  const bool scalar = (args.scalar_mask >> 1 & 1) != 0;
  const DType to = args.dtype[0];
  const DType from = scalar || is_same_bits(args.dtype[1], args.compute) ? args.compute : args.dtype[1];

  Call call;
  call.stream = reinterpret_cast<cudaStream_t>(args.stream);
  call.result_signed = contains(kSignedSet, args.compute);
  call.access[0] = Access::kDirect;
  call.access[1] = scalar ? Access::kScalar : Access::kDirect;
  call.scalars[1] = args.scalars[1];
  call.dtype[0] = to;
  call.dtype[1] = from;
  call.itemsizes[0] = info(to).itemsize;
  call.itemsizes[1] = info(from).itemsize;
  call.loop = make_loop(args, call.itemsizes);

  const bool casts_in = !is_same_bits(from, args.compute), casts_out = !is_same_bits(args.compute, to);
  if (!casts_in && !casts_out) return launch_same_bits(call);
  if (casts_in != casts_out) {
    const DType target = casts_in ? args.compute : to;
    const auto source_slot = static_cast<std::size_t>(cast_source(from, target));
    const int rc = launch_vector(kTable.casts[source_slot][static_cast<std::size_t>(cast_target(from, target))], call);
    if (rc != kNotVectorisable) return rc;
  }
  if (casts_in) call.access[1] = Access::kCast;
  if (casts_out) call.access[0] = Access::kCast;
  return launch_strided(copy_kernels(args.compute), call);
}

}  // namespace dlbridge::nd::cuda_kernels
