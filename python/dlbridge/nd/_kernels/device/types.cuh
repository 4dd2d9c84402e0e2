// Types of the generated kernels that C++ has not: float16, bfloat16, complex<T>. Compiled by NVRTC with no CUDA
// header, and by a host compiler in the tests.
// clang-format off: one function a line reads as a table
#ifndef DLBRIDGE_TYPES_CUH
#define DLBRIDGE_TYPES_CUH

#ifdef __CUDACC__
#define DLBRIDGE_FN __device__ __forceinline__
#else
#define DLBRIDGE_FN inline
#endif

namespace dlbridge_device {

#ifdef __CUDACC__
DLBRIDGE_FN float half_to_float(unsigned short bits) {
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(bits));
  return out;
}
DLBRIDGE_FN unsigned short float_to_half(float value) {
  unsigned short out;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(value));
  return out;
}
DLBRIDGE_FN unsigned short double_to_half(double value) {
  unsigned short out;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(out) : "d"(value));
  return out;
}
DLBRIDGE_FN float bits_to_float(unsigned bits) { return __uint_as_float(bits); }
DLBRIDGE_FN unsigned float_to_bits(float value) { return __float_as_uint(value); }
#else
DLBRIDGE_FN float half_to_float(unsigned short bits) {
  _Float16 h;
  __builtin_memcpy(&h, &bits, 2);
  return static_cast<float>(h);
}
DLBRIDGE_FN unsigned short float_to_half(float value) {
  const _Float16 h = static_cast<_Float16>(value);
  unsigned short bits;
  __builtin_memcpy(&bits, &h, 2);
  return bits;
}
DLBRIDGE_FN unsigned short double_to_half(double value) {
  const _Float16 h = static_cast<_Float16>(value);
  unsigned short bits;
  __builtin_memcpy(&bits, &h, 2);
  return bits;
}
DLBRIDGE_FN float bits_to_float(unsigned bits) {
  float out;
  __builtin_memcpy(&out, &bits, 4);
  return out;
}
DLBRIDGE_FN unsigned float_to_bits(float value) {
  unsigned out;
  __builtin_memcpy(&out, &value, 4);
  return out;
}
#endif

// Rounds to nearest even; NaN stays NaN.
DLBRIDGE_FN unsigned short float_to_bfloat(float value) {
  const unsigned bits = float_to_bits(value);
  if (value != value) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
DLBRIDGE_FN float bfloat_to_float(unsigned short bits) { return bits_to_float(static_cast<unsigned>(bits) << 16); }

}  // namespace dlbridge_device

// 16-bit floats are memory formats: arithmetic is float's.
#define DLBRIDGE_FLOAT16_TYPE(name, from_float, to_float)                                     \
  struct name {                                                                               \
    unsigned short bits;                                                                      \
    name() = default;                                                                         \
    DLBRIDGE_FN name(float value) : bits(dlbridge_device::from_float(value)) {}               \
    DLBRIDGE_FN operator float() const { return dlbridge_device::to_float(bits); }            \
    DLBRIDGE_FN name& operator+=(float v) { return *this = name(float(*this) + v); }          \
    DLBRIDGE_FN name& operator-=(float v) { return *this = name(float(*this) - v); }          \
    DLBRIDGE_FN name& operator*=(float v) { return *this = name(float(*this) * v); }          \
    DLBRIDGE_FN name& operator/=(float v) { return *this = name(float(*this) / v); }          \
  };
DLBRIDGE_FLOAT16_TYPE(float16, float_to_half, half_to_float)
DLBRIDGE_FLOAT16_TYPE(bfloat16, float_to_bfloat, bfloat_to_float)
#undef DLBRIDGE_FLOAT16_TYPE

template <class T>
struct alignas(2 * sizeof(T)) complex {
  typedef T value_type;
  T re, im;
  complex() = default;
  DLBRIDGE_FN complex(T real_part, T imaginary_part = T(0)) : re(real_part), im(imaginary_part) {}
  template <class U>
  DLBRIDGE_FN complex(const complex<U>& z) : re(static_cast<T>(z.re)), im(static_cast<T>(z.im)) {}
  DLBRIDGE_FN T real() const { return re; }
  DLBRIDGE_FN T imag() const { return im; }
  DLBRIDGE_FN void real(T v) { re = v; }
  DLBRIDGE_FN void imag(T v) { im = v; }
  DLBRIDGE_FN complex& operator+=(const complex& z) { return *this = *this + z; }
  DLBRIDGE_FN complex& operator-=(const complex& z) { return *this = *this - z; }
  DLBRIDGE_FN complex& operator*=(const complex& z) { return *this = *this * z; }
  DLBRIDGE_FN complex& operator/=(const complex& z) { return *this = *this / z; }

  // Friends, not templates: a real operand converts.
  friend DLBRIDGE_FN complex operator+(const complex& a, const complex& b) { return {a.re + b.re, a.im + b.im}; }
  friend DLBRIDGE_FN complex operator-(const complex& a, const complex& b) { return {a.re - b.re, a.im - b.im}; }
  friend DLBRIDGE_FN complex operator*(const complex& a, const complex& b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  // Smith's method: scales by the larger part of the divisor, so that no square overflows.
  friend DLBRIDGE_FN complex operator/(const complex& a, const complex& b) {
    const bool wide = (b.re < 0 ? -b.re : b.re) >= (b.im < 0 ? -b.im : b.im);
    if (wide && b.re == 0 && b.im == 0) return {a.re / (b.re * b.re), a.im / (b.re * b.re)};
    const T ratio = wide ? b.im / b.re : b.re / b.im;
    const T scale = T(1) / (wide ? b.re + b.im * ratio : b.im + b.re * ratio);
    return wide ? complex((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale)
                : complex((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale);
  }
  friend DLBRIDGE_FN bool operator==(const complex& a, const complex& b) { return a.re == b.re && a.im == b.im; }
  friend DLBRIDGE_FN bool operator!=(const complex& a, const complex& b) { return !(a == b); }
  friend DLBRIDGE_FN complex operator-(const complex& a) { return {-a.re, -a.im}; }
  friend DLBRIDGE_FN complex operator+(const complex& a) { return a; }
  // Lexicographic, as NumPy orders complex numbers.
  friend DLBRIDGE_FN bool operator<(const complex& a, const complex& b) {
    return a.re < b.re || (a.re == b.re && a.im < b.im);
  }
  friend DLBRIDGE_FN bool operator>(const complex& a, const complex& b) { return b < a; }
  friend DLBRIDGE_FN bool operator<=(const complex& a, const complex& b) { return a == b || a < b; }
  friend DLBRIDGE_FN bool operator>=(const complex& a, const complex& b) { return a == b || b < a; }
};

template <class T> DLBRIDGE_FN T real(const complex<T>& z) { return z.re; }
template <class T> DLBRIDGE_FN T imag(const complex<T>& z) { return z.im; }
template <class T> DLBRIDGE_FN complex<T> conj(const complex<T>& z) { return {z.re, -z.im}; }
template <class T> DLBRIDGE_FN T norm(const complex<T>& z) { return z.re * z.re + z.im * z.im; }
template <class T> DLBRIDGE_FN T abs(const complex<T>& z) { return hypot(z.re, z.im); }
template <class T> DLBRIDGE_FN T arg(const complex<T>& z) { return atan2(z.im, z.re); }
template <class T> DLBRIDGE_FN complex<T> polar(T r, T angle) { return {r * cos(angle), r * sin(angle)}; }
template <class T> DLBRIDGE_FN complex<T> exp(const complex<T>& z) {
  const T r = exp(z.re);
  return z.im == T(0) ? complex<T>(r, z.im) : complex<T>(r * cos(z.im), r * sin(z.im));
}
template <class T> DLBRIDGE_FN complex<T> log(const complex<T>& z) { return {log(abs(z)), arg(z)}; }
template <class T> DLBRIDGE_FN complex<T> sqrt(const complex<T>& z) {
  const T r = abs(z);
  if (r == T(0)) return {T(0), z.im};
  const T half = sqrt((r + (z.re < 0 ? -z.re : z.re)) / 2);
  const T other = (z.im < 0 ? -z.im : z.im) / (2 * half);
  const T sign = z.im < 0 || (z.im == 0 && 1 / z.im < 0) ? T(-1) : T(1);
  return z.re >= 0 ? complex<T>(half, sign * other) : complex<T>(other, sign * half);
}
template <class T> DLBRIDGE_FN complex<T> sin(const complex<T>& z) {
  return {sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im)};
}
template <class T> DLBRIDGE_FN complex<T> cos(const complex<T>& z) {
  return {cos(z.re) * cosh(z.im), -(sin(z.re) * sinh(z.im))};
}
template <class T> DLBRIDGE_FN complex<T> sinh(const complex<T>& z) {
  return {sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)};
}
template <class T> DLBRIDGE_FN complex<T> cosh(const complex<T>& z) {
  return {cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)};
}
// Past |re| = 20 the quotient overflows to NaN, and tanh is its limit to the last bit.
template <class T> DLBRIDGE_FN complex<T> tanh(const complex<T>& z) {
  if (z.re > T(20) || z.re < T(-20)) return {z.re > 0 ? T(1) : T(-1), T(0) * z.im};
  return sinh(z) / cosh(z);
}
template <class T> DLBRIDGE_FN complex<T> tan(const complex<T>& z) {
  const complex<T> t = tanh(complex<T>(-z.im, z.re));
  return {t.im, -t.re};
}
template <class T> DLBRIDGE_FN complex<T> pow(const complex<T>& base, const complex<T>& exponent) {
  const T n = exponent.re;
  if (exponent == complex<T>(T(0))) return {T(1), T(0)};
  if (base == complex<T>(T(0))) return n > T(0) ? complex<T>(T(0)) : complex<T>(T(0) / base.re, T(0) / base.re);
  if (exponent.im != T(0) || n <= T(-100) || n >= T(100) || n != trunc(n)) return exp(exponent * log(base));
  complex<T> square = base, power(T(1));  // by squaring, which keeps Gaussian integers exact
  for (int rest = int(n < T(0) ? -n : n); rest != 0; rest >>= 1) {
    if (rest & 1) power = power * square;
    if (rest > 1) square = square * square;
  }
  return n < T(0) ? complex<T>(T(1)) / power : power;
}
template <class T> DLBRIDGE_FN complex<T> pow(const complex<T>& base, T exponent) {
  return pow(base, complex<T>(exponent));
}

#endif  // DLBRIDGE_TYPES_CUH
