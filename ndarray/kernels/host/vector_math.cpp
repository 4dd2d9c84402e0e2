#include "ndarray/kernels/host/vector_math.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <type_traits>

#include "ndarray/kernels/host/exp_log.h"
#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd::host_kernels {
namespace {

// The operations that libmvec has, by their names in C, and whether they are good enough for a type: sin and cos of
// float64 err by more than NumPy's there, but by less than the product with pi in sinc does. For 16-bit floats all are
// good enough. Without a name: our own alone.
struct Named {
  Op op;
  const char* name;
  bool single, twice;  // float32, float64
};
constexpr Named kFunctions[] = {
    {Op::kExp, nullptr, true, true},     {Op::kExp2, "exp2", true, true},     {Op::kExpm1, "expm1", true, true},
    {Op::kLog, nullptr, true, true},     {Op::kLog2, "log2", true, true},     {Op::kLog10, "log10", true, true},
    {Op::kLog1p, "log1p", true, true},   {Op::kCbrt, "cbrt", true, true},     {Op::kSin, "sin", true, false},
    {Op::kCos, "cos", true, false},      {Op::kTan, "tan", true, true},       {Op::kArcsin, "asin", true, true},
    {Op::kArccos, "acos", true, true},   {Op::kArctan, "atan", true, true},   {Op::kSinh, "sinh", true, true},
    {Op::kCosh, "cosh", true, true},     {Op::kTanh, "tanh", true, true},     {Op::kArcsinh, "asinh", true, true},
    {Op::kArccosh, "acosh", true, true}, {Op::kArctanh, "atanh", true, true}, {Op::kArctan2, "atan2", true, true},
    {Op::kPower, nullptr, true, true},   {Op::kSinc, "sin", true, true},
};

// The arguments from `low` to `high` that a function of libmvec is made for, and one inside: it asks one of C for each
// of the others. Infinity stands for the largest number.
struct Range {
  double low, high, inside;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr std::optional<Range> range_of(Op op, bool single) noexcept {
  const double most = single ? 90 : 711;  // sinh of it is infinite
  switch (op) {
    case Op::kArcsin:
    case Op::kArccos:
    case Op::kArctanh: return Range{-1, 1, 0.5};
    case Op::kArccosh: return Range{1, kInfinity, 2};
    case Op::kLog2:
    case Op::kLog10: return Range{0, kInfinity, 2};
    case Op::kLog1p: return Range{-1, kInfinity, 2};
    case Op::kExp2: return single ? Range{-150, 128, 0.5} : Range{-1075, 1024, 0.5};
    case Op::kExpm1: return Range{-kInfinity, most, 0.5};
    case Op::kSinh:
    case Op::kCosh: return Range{-most, most, 0.5};
    case Op::kTanh:
    case Op::kArcsinh:
    case Op::kSin:
    case Op::kCos:
    case Op::kTan: return Range{-kInfinity, kInfinity, 0.5};
    default: return {};
  }
}

template <class T>
using Run = decltype(VectorFunction<T>::run);

// How libmvec names the functions of a vector, and who calls those of one and of two, and of one for sinc.
template <class T>
struct Variant {
  const char* prefix;
  Run<T> run, run_of_two, run_of_sinc;
};

// A function that is asked within its range alone, where the first of many numbers say that a look at each is worth it.
template <class T>
struct Guarded {
  VectorFunction<T> function;
  T low, high, below, above, inside;

  // All arguments below the range give one number, and all above it: the function is asked for them once.
  static Guarded of(const VectorFunction<T>& function, const Range& range) noexcept {
    constexpr double kMost = std::numeric_limits<T>::max();
    T given[kBlock], found[kBlock];
    std::fill_n(given, kBlock, static_cast<T>(range.inside));
    given[0] = static_cast<T>(range.low - 1);
    given[1] = static_cast<T>(range.high + 1);
    function(given, found, kBlock);
    return {function,
            static_cast<T>(std::max(range.low, -kMost)),
            static_cast<T>(std::min(range.high, kMost)),
            found[0],
            found[1],
            static_cast<T>(range.inside)};
  }
  // NaN goes to the function, which may turn its sign.
  bool has(T x) const noexcept { return static_cast<bool>(!(x < low) & !(x > high)); }
};

template <class T>
DLBRIDGE_ND_CLONES void run_guarded(void* guarded, const T* in, const T*, T* out, std::int64_t count) noexcept {
  using Mask = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;  // as wide as what it is found by
  const Guarded<T> all = *static_cast<const Guarded<T>*>(guarded);
  Mask outside = 0;
  for (std::int64_t j = 0; j < std::min(count, kBlock); ++j) outside |= all.has(in[j]) ? Mask{0} : Mask{1};
  if (outside == 0) return all.function(in, out, count);
  for_each_block(count, [&](std::int64_t i, auto block) {
    constexpr std::int64_t size = block;
    T given[size], found[size];
    for (std::int64_t j = 0; j < size; ++j) given[j] = all.has(in[i + j]) ? in[i + j] : all.inside;
    all.function(given, found, size);
    std::copy_n(in + i, size, given);
    for (std::int64_t j = 0; j < size; ++j) {
      const T x = given[j];
      out[i + j] = x < all.low ? all.below : x > all.high ? all.above : found[j];
    }
  });
}

#if defined(__x86_64__) && defined(__GLIBC__)
template <class T, int bytes>
using Vector [[gnu::vector_size(bytes)]] = T;

// One for each width: how a vector is passed depends on what the caller is compiled for.
#define DLBRIDGE_ND_VECTOR_RUN(name, width, isa)                                                                      \
  template <class T, bool two>                                                                                        \
  [[gnu::target(isa)]] void name(void* function, const T* in, const T* second, T* out, std::int64_t count) noexcept { \
    using V = Vector<T, width>;                                                                                       \
    for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(width / sizeof(T))) {                          \
      V value, other;                                                                                                 \
      std::memcpy(&value, in + i, width);                                                                             \
      if constexpr (two) {                                                                                            \
        std::memcpy(&other, second + i, width);                                                                       \
        value = reinterpret_cast<V (*)(V, V)>(function)(value, other);                                                \
      } else {                                                                                                        \
        value = reinterpret_cast<V (*)(V)>(function)(value);                                                          \
      }                                                                                                               \
      std::memcpy(out + i, &value, width);                                                                            \
    }                                                                                                                 \
  }
DLBRIDGE_ND_VECTOR_RUN(run_of_64_bytes, 64, "avx512f")
DLBRIDGE_ND_VECTOR_RUN(run_of_32_bytes, 32, "avx2")
#undef DLBRIDGE_ND_VECTOR_RUN

// The functor's way, with the sine of a vector.
template <class T, Run<T> run>
DLBRIDGE_ND_CLONES void run_sinc(void* sine, const T* in, const T*, T* out, std::int64_t count) noexcept {
  constexpr T kPi = static_cast<T>(3.141592653589793238);
  for_each_block(count, [&](std::int64_t i, auto block) {
    constexpr std::int64_t size = block;
    T angles[size], sines[size];
    for (std::int64_t j = 0; j < size; ++j) angles[j] = in[i + j] * kPi;
    run(sine, angles, nullptr, sines, size);
    for (std::int64_t j = 0; j < size; ++j) out[i + j] = in[i + j] == T(0) ? T(1) : sines[j] / angles[j];
  });
}

template <class T>
Variant<T> best_variant() noexcept {
  constexpr bool single = sizeof(T) == 4;
  if (__builtin_cpu_supports("avx512f"))
    return {single ? "_ZGVeN16v" : "_ZGVeN8v", &run_of_64_bytes<T, false>, &run_of_64_bytes<T, true>,
            &run_sinc<T, &run_of_64_bytes<T, false>>};
  if (__builtin_cpu_supports("avx2"))
    return {single ? "_ZGVdN8v" : "_ZGVdN4v", &run_of_32_bytes<T, false>, &run_of_32_bytes<T, true>,
            &run_sinc<T, &run_of_32_bytes<T, false>>};
  return {};
}
#else
template <class T>
Variant<T> best_variant() noexcept {
  return {};
}
#endif

// The functions, as they stand in kFunctions; they point to each other, and stay where they are.
template <class T>
struct Functions {
  VectorFunction<T> found[std::size(kFunctions)] = {};
  Guarded<T> guarded[std::size(kFunctions)] = {};

  Functions() noexcept {
    const Variant<T> variant = best_variant<T>();
    void* const library = variant.run != nullptr ? ::dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL) : nullptr;
    for (std::size_t k = 0; k < std::size(kFunctions); ++k) {
      const auto& [op, name, single, twice] = kFunctions[k];
      if (name == nullptr) found[k] = exp_log_function<T>(op);
      if (name == nullptr || library == nullptr) continue;
      const bool two = info(op).operands == 2;
      char symbol[32];
      std::snprintf(symbol, sizeof symbol, "%s%s_%s%s", variant.prefix, two ? "v" : "", name,
                    sizeof(T) == 4 ? "f" : "");
      void* const function = ::dlsym(library, symbol);
      if (function == nullptr) continue;
      found[k] = {op == Op::kSinc ? variant.run_of_sinc : two ? variant.run_of_two : variant.run, function};
      const std::optional<Range> range = range_of(op, sizeof(T) == 4);
      if (!range) continue;
      guarded[k] = Guarded<T>::of(found[k], *range);
      found[k] = {&run_guarded<T>, &guarded[k]};
    }
  }
};

}  // namespace

template <class T>
const VectorFunction<T>* find_vector_function(Op op) noexcept {
  static Functions<T> functions;
  for (std::size_t k = 0; k < std::size(kFunctions); ++k)
    if (kFunctions[k].op == op && functions.found[k].run != nullptr) return &functions.found[k];
  return nullptr;
}
template const VectorFunction<float>* find_vector_function<float>(Op op) noexcept;
template const VectorFunction<double>* find_vector_function<double>(Op op) noexcept;

bool is_accurate_in_vectors(Op op, DType dtype) noexcept {
  for (const Named& function : kFunctions)
    if (function.op == op)
      return dtype == DType::kFloat64 ? function.twice : dtype != DType::kFloat32 || function.single;
  return false;
}

}  // namespace dlbridge::nd::host_kernels
