// Casts between any two dtypes. Integers of one width share a loop as source or target where the sign cannot matter.
#include <algorithm>

#include "ndarray/kernels/host/copy.h"
#include "ndarray/kernels/host/elementwise_loops.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace dlbridge::nd::host_kernels {
namespace {

template <class From, class To>
DLBRIDGE_ND_CLONES void run_cast(char* const* data, const std::int64_t* strides, std::int64_t n) {
  if constexpr (std::is_same_v<From, bool> && !is_half_v<To>) {  // a choice of two floats would not become vectors
    const auto convert = [](std::uint8_t x) { return cast<To>(std::min(x, std::uint8_t{1})); };
    map_loop<true, true, To, std::uint8_t>(data, strides, n, convert, std::make_index_sequence<1>{});
  } else {
    const auto convert = [](From x) { return cast<To>(x); };
    map_loop<true, true, To, From>(data, strides, n, convert, std::make_index_sequence<1>{});
  }
}

#if defined(__x86_64__) && defined(__GNUC__)
// float16 by the instructions that machines with AVX2 have, where both sides are dense: all else is run_cast's. Of
// kHalves elements at a time.
template <class To, class From, std::int64_t kHalves, class Convert>
[[gnu::always_inline]] inline void run_half_cast(char* const* data, const std::int64_t* strides, std::int64_t n,
                                                 Convert convert) {
  char* out = data[0];
  const char* in = data[1];
  if (strides[0] == sizeof(To) && strides[1] == sizeof(From))
    for (; n >= kHalves; n -= kHalves, out += kHalves * sizeof(To), in += kHalves * sizeof(From)) convert(out, in);
  char* const rest[] = {out, const_cast<char*>(in)};
  if (n > 0) run_cast<From, To>(rest, strides, n);
}
#define DLBRIDGE_ND_HALF_CASTS(name, isa, halves, half_type, half_prefix, half_suffix, prefix, to_floats, to_halves) \
  [[gnu::target(isa)]] void name##_from_half(char* const* data, const std::int64_t* strides, std::int64_t n) {       \
    run_half_cast<float, float16, halves>(                                                                           \
        data, strides, n, [](char* out, const char* in) __attribute__((target(isa))) {                               \
          const auto found = half_prefix##_loadu_##half_suffix(reinterpret_cast<const half_type*>(in));              \
          prefix##_storeu_ps(reinterpret_cast<float*>(out), to_floats);                                              \
        });                                                                                                          \
  }                                                                                                                  \
  [[gnu::target(isa)]] void name##_to_half(char* const* data, const std::int64_t* strides, std::int64_t n) {         \
    run_half_cast<float16, float, halves>(                                                                           \
        data, strides, n, [](char* out, const char* in) __attribute__((target(isa))) {                               \
          const auto found = prefix##_loadu_ps(reinterpret_cast<const float*>(in));                                  \
          half_prefix##_storeu_##half_suffix(reinterpret_cast<half_type*>(out), to_halves);                          \
        });                                                                                                          \
  }
DLBRIDGE_ND_HALF_CASTS(eight, "avx,f16c", 8, __m128i, _mm, si128, _mm256, _mm256_cvtph_ps(found),
                       _mm256_cvtps_ph(found, _MM_FROUND_TO_NEAREST_INT))
// All of a mask: g++ 12 warns of the vector that its headers leave undefined where there is none.
DLBRIDGE_ND_HALF_CASTS(sixteen, "avx512f", 16, __m256i, _mm256, si256, _mm512, _mm512_maskz_cvtph_ps(0xffff, found),
                       _mm512_maskz_cvtps_ph(0xffff, found, _MM_FROUND_TO_NEAREST_INT))
#undef DLBRIDGE_ND_HALF_CASTS

InnerLoop half_cast_loop(DType from, DType to) noexcept {
  static const bool wide = __builtin_cpu_supports("avx512f"), found = wide || __builtin_cpu_supports("avx2");
  if (!found) return nullptr;
  if (from == DType::kFloat16 && to == DType::kFloat32) return wide ? &sixteen_from_half : &eight_from_half;
  if (from == DType::kFloat32 && to == DType::kFloat16) return wide ? &sixteen_to_half : &eight_to_half;
  return nullptr;
}
#else
InnerLoop half_cast_loop(DType, DType) noexcept { return nullptr; }
#endif

struct CastTable {
  InnerLoop loops[kDTypeSlots][kDTypeSlots];
};

template <DType from, std::size_t... to>
constexpr void fill_row(InnerLoop* row, std::index_sequence<to...>) {
  (
      [&] {
        constexpr DType target = static_cast<DType>(to);
        if constexpr (contains(kAllSet, from) && contains(kAllSet, target)) {
          if constexpr (!is_same_bits(from, target))
            row[to] = &run_cast<type_of_t<cast_source(from, target)>, type_of_t<cast_target(from, target)>>;
        }
      }(),
      ...);
}

template <std::size_t... from>
constexpr CastTable make_cast_table(std::index_sequence<from...> dtypes) {
  CastTable table{};
  (fill_row<static_cast<DType>(from)>(table.loops[from], dtypes), ...);
  return table;
}

constexpr CastTable kCasts = make_cast_table(std::make_index_sequence<kDTypeSlots>{});

}  // namespace

InnerLoop cast_loop(DType from, DType to) noexcept {
  if (contains(kAllSet, from) && is_same_bits(from, to)) return copy_loop(info(to).itemsize);
  if (const InnerLoop loop = half_cast_loop(from, to)) return loop;
  return kCasts.loops[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

}  // namespace dlbridge::nd::host_kernels
