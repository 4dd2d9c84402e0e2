// The operations of nd as functions of one element, for fused kernels: NumPy's values, as the compiled kernels have
// them.
// clang-format off: one function a line reads as a table
#ifndef DLBRIDGE_FUNCTIONS_CUH
#define DLBRIDGE_FUNCTIONS_CUH

namespace dlb {

template <class T> struct kind { static constexpr int value = T(1) / T(2) != T(0) ? 2 : T(-1) < T(0) ? 1 : 0; };
template <> struct kind<bool> { static constexpr int value = 3; };
template <> struct kind<float16> { static constexpr int value = 2; };
template <> struct kind<bfloat16> { static constexpr int value = 2; };
template <class T> struct kind<complex<T>> { static constexpr int value = 4; };
template <class T> constexpr bool is_bool = kind<T>::value == 3;
template <class T> constexpr bool is_float = kind<T>::value == 2;
template <class T> constexpr bool is_signed = kind<T>::value == 1;
template <class T> constexpr bool is_integer = kind<T>::value <= 1;
template <class T> constexpr bool is_complex = kind<T>::value == 4;

// What 16-bit floats are computed in.
template <class T> struct wide { typedef T type; };
template <> struct wide<float16> { typedef float type; };
template <> struct wide<bfloat16> { typedef float type; };
template <class T> using wide_t = typename wide<T>::type;

// Float to integer: narrow and unsigned targets go by way of a wider signed type, and wrap.
template <class To, class From> DLBRIDGE_FN To truncate(From x) {
  if constexpr (sizeof(To) == 8 && !is_signed<To>) return x < From(0) ? To(static_cast<long long>(x)) : To(x);
  else if constexpr (sizeof(To) == 4 && !is_signed<To>) return To(static_cast<long long>(x));
  else if constexpr (sizeof(To) < 4) return To(static_cast<int>(x));
  else return To(x);
}

// By way of float a double would be rounded twice; a float rounded to odd keeps what the second rounding needs.
DLBRIDGE_FN float16 half_of(double x) {
  const float nearest = static_cast<float>(x);
  const double back = nearest;
  if (!(back < x) && !(back > x)) return float16(nearest);  // exact, or NaN
  const bool away = (back < x) == (x < 0);
  return float16(dlbridge_device::bits_to_float((dlbridge_device::float_to_bits(nearest) - (away ? 1u : 0u)) | 1u));
}
template <class A, class B> constexpr bool is_same = false;
template <class A> constexpr bool is_same<A, A> = true;

template <class To, class From> DLBRIDGE_FN To cast(const From& v) {
  if constexpr (is_complex<From> && is_complex<To>) return To(v);
  else if constexpr (is_complex<From> && is_bool<To>) return v.re != 0 || v.im != 0;
  else if constexpr (is_complex<From>) return cast<To>(v.re);
  else if constexpr (is_complex<To>) return To(static_cast<typename To::value_type>(static_cast<wide_t<From>>(v)));
  else if constexpr (is_bool<To>) return static_cast<wide_t<From>>(v) != wide_t<From>(0);
  else if constexpr (is_same<To, float16> && is_same<From, double>) return half_of(v);
  else if constexpr (is_float<From> && is_integer<To>) return truncate<To>(static_cast<wide_t<From>>(v));
  else return To(static_cast<wide_t<To>>(static_cast<wide_t<From>>(v)));
}

// Where integers wrap: unsigned, and of 32 bits at least, for C++ computes narrower ones as int.
template <class T, int Size = sizeof(T)> struct wrapping { typedef unsigned type; };
template <class T> struct wrapping<T, 8> { typedef unsigned long long type; };
template <class T> using wrap_t = typename wrapping<T>::type;

template <class T> DLBRIDGE_FN bool isnan(T v) {
  if constexpr (is_complex<T>) return v.re != v.re || v.im != v.im;
  else if constexpr (is_float<T>) return wide_t<T>(v) != wide_t<T>(v);
  else return false;
}
template <class T> DLBRIDGE_FN bool isinf(T v) {
  if constexpr (is_complex<T>) return isinf(v.re) || isinf(v.im);
  else if constexpr (is_float<T>) return !isnan(v) && isnan(T(wide_t<T>(v) - wide_t<T>(v)));
  else return false;
}
template <class T> DLBRIDGE_FN bool isfinite(T v) { return !isnan(v) && !isinf(v); }
template <class T> DLBRIDGE_FN bool signbit(T v) {
  if constexpr (is_float<T>) return copysign(wide_t<T>(1), wide_t<T>(v)) < 0;
  else if constexpr (is_signed<T>) return v < T(0);
  else return false;
}

// --- one operand -----------------------------------------------------------------------------------------------------

template <class T> DLBRIDGE_FN T positive(T v) { return v; }
template <class T> DLBRIDGE_FN T negative(T v) {
  if constexpr (is_integer<T>) return T(wrap_t<T>(0) - wrap_t<T>(v));
  else return T(-v);
}
template <class T> DLBRIDGE_FN auto absolute(T v) {
  if constexpr (is_complex<T>) return abs(v);
  else if constexpr (is_float<T>) return T(fabs(wide_t<T>(v)));
  else if constexpr (is_signed<T>) return v < T(0) ? negative(v) : v;
  else return v;
}
// Complex: z / |z|; an infinite part alone says the direction.
template <class T> DLBRIDGE_FN T sign(T v) {
  if constexpr (is_complex<T>) {
    typedef typename T::value_type R;
    R r = abs(v);
    if (isinf(r)) {
      if (isinf(v.re) && isinf(v.im)) r -= r;  // any direction: NaN
      else if (isinf(v.re)) return T(v.re > 0 ? R(1) : R(-1), R(0));
      else if (isinf(v.im)) return T(R(0), v.im > 0 ? R(1) : R(-1));
      else v = T(v.re * R(0.25), v.im * R(0.25)), r = abs(v);  // the magnitude alone overflowed
    }
    if (isnan(r)) return T(r, r);
    return r == 0 ? T(R(0), R(0)) : T(v.re / r, v.im / r);
  } else if constexpr (is_float<T>) {
    const wide_t<T> w = v;
    return isnan(v) ? v : T(wide_t<T>((w > 0) - (w < 0)));
  } else {
    return T((v > T(0)) - (v < T(0)));
  }
}
template <class T> DLBRIDGE_FN T square(T v) {
  if constexpr (is_integer<T>) return T(wrap_t<T>(v) * wrap_t<T>(v));
  else return T(v * v);
}
template <class T> DLBRIDGE_FN T reciprocal(T v) {
  if constexpr (is_integer<T>) return v == T(0) ? T(0) : T(T(1) / v);
  else return T(T(1) / v);
}
template <class T> DLBRIDGE_FN T conjugate(T v) {
  if constexpr (is_complex<T>) return conj(v);
  else return v;
}
template <class T> DLBRIDGE_FN T invert(T v) {
  if constexpr (is_bool<T>) return !v;
  else return T(~v);
}
template <class T> DLBRIDGE_FN bool logical_not(T v) { return !cast<bool>(v); }

#define DLBRIDGE_ROUNDING(name, function)                    \
  template <class T> DLBRIDGE_FN T name(T v) {               \
    if constexpr (is_float<T>) return T(function(wide_t<T>(v))); \
    else return v;                                           \
  }
DLBRIDGE_ROUNDING(floor, ::floor)
DLBRIDGE_ROUNDING(ceil, ::ceil)
DLBRIDGE_ROUNDING(trunc, ::trunc)
DLBRIDGE_ROUNDING(rint, ::rint)
#undef DLBRIDGE_ROUNDING

#define DLBRIDGE_MATH(name, function) \
  template <class T> DLBRIDGE_FN T name(T v) { return T(function(wide_t<T>(v))); }
DLBRIDGE_MATH(sqrt, ::sqrt)
DLBRIDGE_MATH(cbrt, ::cbrt)
DLBRIDGE_MATH(exp, ::exp)
DLBRIDGE_MATH(exp2, ::exp2)
DLBRIDGE_MATH(expm1, ::expm1)
DLBRIDGE_MATH(log, ::log)
DLBRIDGE_MATH(log2, ::log2)
DLBRIDGE_MATH(log10, ::log10)
DLBRIDGE_MATH(log1p, ::log1p)
DLBRIDGE_MATH(sin, ::sin)
DLBRIDGE_MATH(cos, ::cos)
DLBRIDGE_MATH(tan, ::tan)
DLBRIDGE_MATH(arcsin, ::asin)
DLBRIDGE_MATH(arccos, ::acos)
DLBRIDGE_MATH(arctan, ::atan)
DLBRIDGE_MATH(sinh, ::sinh)
DLBRIDGE_MATH(cosh, ::cosh)
DLBRIDGE_MATH(tanh, ::tanh)
DLBRIDGE_MATH(arcsinh, ::asinh)
DLBRIDGE_MATH(arccosh, ::acosh)
DLBRIDGE_MATH(arctanh, ::atanh)
DLBRIDGE_MATH(erf, ::erf)
#undef DLBRIDGE_MATH
template <class T> DLBRIDGE_FN T rsqrt(T v) { return T(wide_t<T>(1) / ::sqrt(wide_t<T>(v))); }

// --- two operands of one type ----------------------------------------------------------------------------------------

#define DLBRIDGE_ARITHMETIC(name, op)                                               \
  template <class T> DLBRIDGE_FN T name(T a, T b) {                                 \
    if constexpr (is_integer<T>) return T(wrap_t<T>(a) op wrap_t<T>(b));            \
    else return T(a op b);                                                          \
  }
DLBRIDGE_ARITHMETIC(add, +)
DLBRIDGE_ARITHMETIC(subtract, -)
DLBRIDGE_ARITHMETIC(multiply, *)
#undef DLBRIDGE_ARITHMETIC
template <class T> DLBRIDGE_FN T divide(T a, T b) { return T(a / b); }

// Rounds down, as Python; by zero an integer gives 0, as NumPy.
template <class T> DLBRIDGE_FN T remainder(T a, T b) {
  if constexpr (is_float<T>) {
    typedef wide_t<T> W;
    const W x = a, y = b;
    W r = ::fmod(x, y);
    if (y != 0 && r != 0 && (r < 0) != (y < 0)) r += y;
    else if (r == 0 && y != 0) r = ::copysign(W(0), y);
    return T(r);
  } else if constexpr (is_bool<T>) {
    return false;
  } else {
    if (b == T(0)) return T(0);
    if constexpr (is_signed<T>) {
      if (b == T(-1)) return T(0);  // the most negative number has no quotient
      const T r = T(a % b);
      return r != T(0) && (r < T(0)) != (b < T(0)) ? T(r + b) : r;
    }
    return T(a % b);
  }
}
template <class T> DLBRIDGE_FN T floor_divide(T a, T b) {
  if constexpr (is_float<T>) {
    typedef wide_t<T> W;
    const W x = a, y = b;
    if (y == 0) return T(x / y);
    const W rest = ::fmod(x, y);
    W quotient = (x - rest) / y;
    if (rest != 0 && (y < 0) != (rest < 0)) quotient -= W(1);
    if (quotient == 0) return T(::copysign(W(0), x / y));
    const W down = ::floor(quotient);
    return T(quotient - down > W(0.5) ? down + 1 : down);
  } else if constexpr (is_bool<T>) {
    return b && a;
  } else {
    if (b == T(0)) return T(0);
    if constexpr (is_signed<T>) {
      if (b == T(-1)) return negative(a);
      const T q = T(a / b);
      return a % b != T(0) && (a < T(0)) != (b < T(0)) ? T(q - 1) : q;
    }
    return T(a / b);
  }
}
template <class T> DLBRIDGE_FN T fmod(T a, T b) {
  if constexpr (is_float<T>) return T(::fmod(wide_t<T>(a), wide_t<T>(b)));
  else return b == T(0) || (is_signed<T> && b == T(-1)) ? T(0) : T(a % b);
}
// CUDA's pow is right to two units of the last place: whole numbers to whole powers would not be whole.
template <class W> DLBRIDGE_FN W real_power(W a, W b) {
  if (b == W(2)) return a * a;
  const W sure = sizeof(W) == 4 ? W(0x1p21) : W(0x1p50);  // where two units are less than a half
  const W power = ::pow(a, b);
  const bool whole = a == ::trunc(a) && b == ::trunc(b) && b > W(0);
  return whole && ::fabs(power) < sure ? ::rint(power) : power;
}
template <class T> DLBRIDGE_FN T power(T a, T b) {
  if constexpr (is_complex<T>) return pow(a, b);
  else if constexpr (is_float<T>) return T(real_power(wide_t<T>(a), wide_t<T>(b)));
  else {
    if constexpr (is_signed<T>)
      if (b < T(0)) return a == T(1) ? T(1) : a == T(-1) ? (b % 2 == 0 ? T(1) : T(-1)) : T(0);
    wrap_t<T> out = 1, squared = wrap_t<T>(a);
    for (; b != T(0); b = T(b >> 1)) {
      if (b & 1) out *= squared;
      squared *= squared;
    }
    return T(out);
  }
}
template <class T> DLBRIDGE_FN T maximum(T a, T b) { return isnan(a) || a > b ? a : isnan(b) || b > a ? b : a; }
template <class T> DLBRIDGE_FN T minimum(T a, T b) { return isnan(a) || a < b ? a : isnan(b) || b < a ? b : a; }
template <class T> DLBRIDGE_FN T fmax(T a, T b) { return isnan(a) ? b : isnan(b) || a >= b ? a : b; }
template <class T> DLBRIDGE_FN T fmin(T a, T b) { return isnan(a) ? b : isnan(b) || a <= b ? a : b; }

template <class T> DLBRIDGE_FN bool equal(T a, T b) { return a == b; }
template <class T> DLBRIDGE_FN bool not_equal(T a, T b) { return a != b; }
// Complex numbers are ordered lexicographically; a pair with a NaN anywhere that counts is unordered.
template <class T> DLBRIDGE_FN bool less(T a, T b) {
  if constexpr (is_complex<T>)
    return (a.re < b.re && !isnan(a.im) && !isnan(b.im)) || (a.re == b.re && a.im < b.im);
  else return a < b;
}
template <class T> DLBRIDGE_FN bool less_equal(T a, T b) {
  if constexpr (is_complex<T>)
    return (a.re < b.re && !isnan(a.im) && !isnan(b.im)) || (a.re == b.re && a.im <= b.im);
  else return a <= b;
}
template <class T> DLBRIDGE_FN bool greater(T a, T b) { return less(b, a); }
template <class T> DLBRIDGE_FN bool greater_equal(T a, T b) { return less_equal(b, a); }
template <class T> DLBRIDGE_FN bool logical_and(T a, T b) { return cast<bool>(a) && cast<bool>(b); }
template <class T> DLBRIDGE_FN bool logical_or(T a, T b) { return cast<bool>(a) || cast<bool>(b); }
template <class T> DLBRIDGE_FN bool logical_xor(T a, T b) { return cast<bool>(a) != cast<bool>(b); }
template <class T> DLBRIDGE_FN T bitwise_and(T a, T b) { return T(a & b); }
template <class T> DLBRIDGE_FN T bitwise_or(T a, T b) { return T(a | b); }
template <class T> DLBRIDGE_FN T bitwise_xor(T a, T b) { return T(a ^ b); }

// Shifts by the width or more, or by less than nothing, are 0 (or the sign).
template <class T> DLBRIDGE_FN T left_shift(T a, T b) {
  const bool inside = b >= T(0) && static_cast<unsigned long long>(b) < 8 * sizeof(T);
  return inside ? T(static_cast<unsigned long long>(a) << static_cast<unsigned long long>(b)) : T(0);
}
template <class T> DLBRIDGE_FN T right_shift(T a, T b) {
  const bool inside = b >= T(0) && static_cast<unsigned long long>(b) < 8 * sizeof(T);
  if (inside) return T(a >> b);
  return a < T(0) ? T(-1) : T(0);
}
template <class T> DLBRIDGE_FN T gcd(T a, T b) {
  typedef unsigned long long U;
  U x = a < T(0) ? U(0) - U(a) : U(a), y = b < T(0) ? U(0) - U(b) : U(b);
  while (y != 0) {
    const U r = x % y;
    x = y;
    y = r;
  }
  return T(x);
}

#define DLBRIDGE_MATH2(name, function)                \
  template <class T> DLBRIDGE_FN T name(T a, T b) {   \
    return T(function(wide_t<T>(a), wide_t<T>(b)));   \
  }
DLBRIDGE_MATH2(arctan2, ::atan2)
DLBRIDGE_MATH2(hypot, ::hypot)
DLBRIDGE_MATH2(copysign, ::copysign)
#undef DLBRIDGE_MATH2
template <class T> DLBRIDGE_FN T logaddexp(T a, T b) {
  typedef wide_t<T> W;
  const W x = a, y = b;
  if (x == y) return T(x + W(0.693147180559945309));
  return T(x > y ? x + ::log1p(::exp(y - x)) : y > x ? y + ::log1p(::exp(x - y)) : x - y);
}
template <class T> DLBRIDGE_FN T heaviside(T a, T b) {
  return isnan(a) ? a : a == T(0) ? b : a < T(0) ? T(0) : T(1);
}

template <class T> DLBRIDGE_FN T where(bool condition, T a, T b) { return condition ? a : b; }
template <class T> DLBRIDGE_FN T clip(T a, T low, T high) { return minimum(maximum(a, low), high); }

}  // namespace dlb

#endif  // DLBRIDGE_FUNCTIONS_CUH
