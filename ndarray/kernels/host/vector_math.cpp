#include "ndarray/kernels/host/vector_math.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "ndarray/kernels/host/exp_log.h"

namespace dlbridge::nd::host_kernels {
namespace {

// The operations that libmvec has, by their names in C, and whether they are good enough for a type: sin and cos of
// float64 err by more than NumPy's there. For 16-bit floats all are good enough. Without a name: our own alone.
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
    {Op::kPower, nullptr, true, true},
};

template <class T>
using Run = decltype(VectorFunction<T>::run);

// How libmvec names the functions of a vector, and who calls those of one and of two.
template <class T>
struct Variant {
  const char* prefix;
  Run<T> run, run_of_two;
};

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

template <class T>
Variant<T> best_variant() noexcept {
  constexpr bool single = sizeof(T) == 4;
  if (__builtin_cpu_supports("avx512f"))
    return {single ? "_ZGVeN16v" : "_ZGVeN8v", &run_of_64_bytes<T, false>, &run_of_64_bytes<T, true>};
  if (__builtin_cpu_supports("avx2"))
    return {single ? "_ZGVdN8v" : "_ZGVdN4v", &run_of_32_bytes<T, false>, &run_of_32_bytes<T, true>};
  return {nullptr, nullptr, nullptr};
}
#else
template <class T>
Variant<T> best_variant() noexcept {
  return {nullptr, nullptr, nullptr};
}
#endif

template <class T>
using Functions = std::array<VectorFunction<T>, std::size(kFunctions)>;

template <class T>
Functions<T> open_functions() noexcept {
  Functions<T> found{};
  const Variant<T> variant = best_variant<T>();
  void* const library = variant.run != nullptr ? ::dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL) : nullptr;
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (kFunctions[k].name == nullptr) found[k] = exp_log_function<T>(kFunctions[k].op);
    if (kFunctions[k].name == nullptr || library == nullptr) continue;
    const bool two = info(kFunctions[k].op).operands == 2;
    char symbol[32];
    std::snprintf(symbol, sizeof symbol, "%s%s_%s%s", variant.prefix, two ? "v" : "", kFunctions[k].name,
                  sizeof(T) == 4 ? "f" : "");
    void* const function = ::dlsym(library, symbol);
    if (function != nullptr) found[k] = {two ? variant.run_of_two : variant.run, function};
  }
  return found;
}

}  // namespace

template <class T>
const VectorFunction<T>* find_vector_function(Op op) noexcept {
  static const Functions<T> functions = open_functions<T>();
  for (std::size_t k = 0; k < functions.size(); ++k)
    if (kFunctions[k].op == op && functions[k].run != nullptr) return &functions[k];
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
