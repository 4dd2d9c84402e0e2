#include "ndarray/kernels/host/lapack.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <new>

#include "ndarray/kernels/host/openblas.h"

namespace dlbridge::nd::host_kernels {
namespace {

// The routines by Fortran's interface: all by address, and behind them the lengths of texts.
template <class T, class Int>
class Lapack {
 public:
  using Real = real_t<T>;

  Lapack(const LapackRoutines& routines, const LapackArgs& args)
      : routines_(routines),
        args_(args),
        m_(static_cast<Int>(args.m)),
        n_(static_cast<Int>(args.n)),
        k_(std::min(m_, n_)),
        columns_(static_cast<Int>(args.columns)) {}

  bool run() const {
    if (std::max({args_.m, args_.n, args_.columns}) > std::numeric_limits<Int>::max()) return false;
    switch (args_.op) {
      case LapackOp::kDet: return run_det();
      case LapackOp::kSlogdet: return run_slogdet();
      case LapackOp::kInv:
      case LapackOp::kSolve: return run_solve();
      case LapackOp::kCholesky: return run_cholesky();
      case LapackOp::kEigvalsh:
      case LapackOp::kEigh: return run_eigh();
      case LapackOp::kEigvals:
      case LapackOp::kEig: return run_eig();
      case LapackOp::kSvdvals:
      case LapackOp::kSvd: return run_svd();
      case LapackOp::kR:
      case LapackOp::kQr: return run_qr();
      case LapackOp::kLstsq: return run_lstsq();
    }
    return false;
  }

 private:
  T* side(std::int64_t i) const { return static_cast<T*>(args_.sides) + i * args_.m * args_.columns; }
  T* matrix(std::int64_t i) const { return static_cast<T*>(args_.matrices) + i * args_.m * args_.n; }

  struct Determinant {
    T sign;
    Real logarithm;  // of its absolute value
  };
  Determinant determinant(T* a, Int* pivots) const {
    using Getrf = void (*)(const Int*, const Int*, T*, const Int*, Int*, Int*);
    Int info = 0;
    reinterpret_cast<Getrf>(routines_.getrf)(&n_, &n_, a, &n_, pivots, &info);
    if (info > 0) return {T(0), -std::numeric_limits<Real>::infinity()};
    bool odd = false;
    for (Int k = 0; k < n_; ++k) odd ^= pivots[k] != k + 1;
    Determinant out{odd ? T(-1) : T(1), 0};
    for (Int k = 0; k < n_; ++k) {
      const T x = a[k * (n_ + 1)];
      if constexpr (is_complex_v<T>) {
        const Real size = std::hypot(x.real(), x.imag());
        out.sign = out.sign * T(x.real() / size, x.imag() / size);
        out.logarithm += std::log(size);
      } else {
        if (x < 0) out.sign = -out.sign;
        out.logarithm += std::log(std::abs(x));
      }
    }
    return out;
  }

  bool run_det() const {
    const std::unique_ptr<Int[]> pivots(new Int[static_cast<std::size_t>(n_)]);
    for (std::int64_t i = 0; i < args_.batch; ++i) {
      const Determinant d = determinant(matrix(i), pivots.get());
      static_cast<T*>(args_.values)[i] = d.sign * T(std::exp(d.logarithm));
    }
    return true;
  }
  bool run_slogdet() const {
    const std::unique_ptr<Int[]> pivots(new Int[static_cast<std::size_t>(n_)]);
    for (std::int64_t i = 0; i < args_.batch; ++i) {
      const Determinant d = determinant(matrix(i), pivots.get());
      static_cast<T*>(args_.values)[i] = d.sign;
      static_cast<Real*>(args_.others)[i] = d.logarithm;
    }
    return true;
  }

  bool run_solve() const {
    using Gesv = void (*)(const Int*, const Int*, T*, const Int*, Int*, T*, const Int*, Int*);
    const std::unique_ptr<Int[]> pivots(new Int[static_cast<std::size_t>(n_)]);
    for (std::int64_t i = 0; i < args_.batch; ++i) {
      T* const b = side(i);
      if (args_.op == LapackOp::kInv) {
        std::fill_n(b, args_.n * args_.n, T(0));
        for (Int k = 0; k < n_; ++k) b[k * (n_ + 1)] = T(1);
      }
      Int info = 0;
      reinterpret_cast<Gesv>(routines_.gesv)(&n_, &columns_, matrix(i), &n_, pivots.get(), b, &n_, &info);
      if (info != 0) return false;
    }
    return true;
  }

  bool run_cholesky() const {
    using Potrf = void (*)(const char*, const Int*, T*, const Int*, Int*, std::size_t);
    for (std::int64_t i = 0; i < args_.batch; ++i) {
      T* const a = matrix(i);
      Int info = 0;
      reinterpret_cast<Potrf>(routines_.potrf)("L", &n_, a, &n_, &info, 1);
      if (info != 0) return false;
      for (Int column = 1; column < n_; ++column) std::fill_n(a + column * n_, column, T(0));
    }
    return true;
  }

  // The workspaces of syevd() and heevd(), by the sizes that they ask for.
  struct Workspace {
    std::unique_ptr<T[]> work;
    std::unique_ptr<Real[]> reals;
    std::unique_ptr<Int[]> integers;
    Int work_size = -1, reals_size = -1, integers_size = -1;
  };
  Int eigh(T* a, Real* values, Workspace& space, T* work, Real* reals, Int* integers) const {
    const char* const job = args_.op == LapackOp::kEigh ? "V" : "N";
    const char* const triangle = args_.upper ? "U" : "L";
    Int info = 0;
    if constexpr (is_complex_v<T>) {
      using Heevd = void (*)(const char*, const char*, const Int*, T*, const Int*, Real*, T*, const Int*, Real*,
                             const Int*, Int*, const Int*, Int*, std::size_t, std::size_t);
      reinterpret_cast<Heevd>(routines_.evd)(job, triangle, &n_, a, &n_, values, work, &space.work_size, reals,
                                             &space.reals_size, integers, &space.integers_size, &info, 1, 1);
    } else {
      using Syevd = void (*)(const char*, const char*, const Int*, T*, const Int*, Real*, T*, const Int*, Int*,
                             const Int*, Int*, std::size_t, std::size_t);
      reinterpret_cast<Syevd>(routines_.evd)(job, triangle, &n_, a, &n_, values, work, &space.work_size, integers,
                                             &space.integers_size, &info, 1, 1);
    }
    return info;
  }
  bool run_eigh() const {
    Workspace space;
    T work{};
    Real reals{};
    Int integers{};
    const auto values = [&](std::int64_t i) { return static_cast<Real*>(args_.values) + i * args_.n; };
    if (eigh(matrix(0), values(0), space, &work, &reals, &integers) != 0) return false;
    if constexpr (is_complex_v<T>) {
      space.reals_size = static_cast<Int>(reals);
      space.reals.reset(new Real[static_cast<std::size_t>(space.reals_size)]);
    }
    space.work_size = static_cast<Int>(real(work));
    space.integers_size = integers;
    space.work.reset(new T[static_cast<std::size_t>(space.work_size)]);
    space.integers.reset(new Int[static_cast<std::size_t>(space.integers_size)]);
    for (std::int64_t i = 0; i < args_.batch; ++i)
      if (eigh(matrix(i), values(i), space, space.work.get(), space.reals.get(), space.integers.get()) != 0)
        return false;
    return true;
  }

  // Of geev(): the eigenvalues and vectors as it gives them, those of real matrices by parts.
  using Complex = std::conditional_t<is_complex_v<T>, T, complex<Real>>;
  struct EigWorkspace {
    std::unique_ptr<Real[]> reals;  // of a real matrix the parts of the values, else scratch memory
    std::unique_ptr<T[]> vectors;   // of a real matrix
    std::unique_ptr<T[]> work;
    Int size = -1;
  };
  Int eig(std::int64_t i, const EigWorkspace& space, T* work) const {
    const char* const job = args_.op == LapackOp::kEig ? "V" : "N";
    Complex* const values = static_cast<Complex*>(args_.values) + i * args_.n;
    Int info = 0;
    if constexpr (is_complex_v<T>) {
      using Geev = void (*)(const char*, const char*, const Int*, T*, const Int*, T*, T*, const Int*, T*, const Int*,
                            T*, const Int*, Real*, Int*, std::size_t, std::size_t);
      T* const vectors = *job == 'N' ? nullptr : side(i);
      reinterpret_cast<Geev>(routines_.geev)("N", job, &n_, matrix(i), &n_, values, nullptr, &n_, vectors, &n_, work,
                                             &space.size, space.reals.get(), &info, 1, 1);
    } else {
      using Geev = void (*)(const char*, const char*, const Int*, T*, const Int*, T*, T*, T*, const Int*, T*,
                            const Int*, T*, const Int*, Int*, std::size_t, std::size_t);
      Real *const real = space.reals.get(), *const imaginary = real + n_;
      reinterpret_cast<Geev>(routines_.geev)("N", job, &n_, matrix(i), &n_, real, imaginary, nullptr, &n_,
                                             space.vectors.get(), &n_, work, &space.size, &info, 1, 1);
      if (info != 0 || space.size < 0) return info;
      for (Int k = 0; k < n_; ++k) values[k] = Complex(real[k], imaginary[k]);
      if (*job == 'V')
        join_vectors(space.vectors.get(), imaginary, static_cast<Complex*>(args_.sides) + i * args_.n * args_.n);
    }
    return info;
  }
  // Conjugate values have conjugate vectors, whose parts are two columns.
  void join_vectors(const Real* parts, const Real* imaginary, Complex* out) const {
    for (Int k = 0; k < n_; ++k, parts += n_, out += n_) {
      if (imaginary[k] == 0) {
        for (Int row = 0; row < n_; ++row) out[row] = Complex(parts[row], 0);
        continue;
      }
      for (Int row = 0; row < n_; ++row) {
        out[row] = Complex(parts[row], parts[row + n_]);
        out[row + n_] = Complex(parts[row], -parts[row + n_]);
      }
      ++k;
      parts += n_;
      out += n_;
    }
  }
  bool run_eig() const {
    const auto* const all = static_cast<const Real*>(args_.matrices);
    const std::int64_t parts = args_.batch * args_.n * args_.n * (is_complex_v<T> ? 2 : 1);
    if (!std::all_of(all, all + parts, [](Real x) { return std::isfinite(x); })) return false;
    EigWorkspace space;
    space.reals.reset(new Real[2 * static_cast<std::size_t>(n_)]);
    if (!is_complex_v<T> && args_.op == LapackOp::kEig)
      space.vectors.reset(new T[static_cast<std::size_t>(args_.n * args_.n)]);
    T asked{};
    if (eig(0, space, &asked) != 0) return false;
    space.size = static_cast<Int>(real(asked));
    space.work.reset(new T[static_cast<std::size_t>(space.size)]);
    for (std::int64_t i = 0; i < args_.batch; ++i)
      if (eig(i, space, space.work.get()) != 0) return false;
    return true;
  }

  // gesdd(), by its documented workspaces and the size that it asks for.
  struct SvdWorkspace {
    std::unique_ptr<Int[]> integers;
    std::unique_ptr<Real[]> reals;
    std::unique_ptr<T[]> work;
    Int size = -1;
  };
  Int svd(std::int64_t i, const char* job, const SvdWorkspace& space, T* work) const {
    const Int rows = *job == 'A' ? n_ : k_;  // of Vh
    T* const u = *job == 'N' ? nullptr : side(i);
    T* const vh = *job == 'N' ? nullptr : static_cast<T*>(args_.others) + i * rows * n_;
    Real* const values = static_cast<Real*>(args_.values) + i * k_;
    Int info = 0;
    if constexpr (is_complex_v<T>) {
      using Gesdd = void (*)(const char*, const Int*, const Int*, T*, const Int*, Real*, T*, const Int*, T*, const Int*,
                             T*, const Int*, Real*, Int*, Int*, std::size_t);
      reinterpret_cast<Gesdd>(routines_.gesdd)(job, &m_, &n_, matrix(i), &m_, values, u, &m_, vh, &rows, work,
                                               &space.size, space.reals.get(), space.integers.get(), &info, 1);
    } else {
      using Gesdd = void (*)(const char*, const Int*, const Int*, T*, const Int*, Real*, T*, const Int*, T*, const Int*,
                             T*, const Int*, Int*, Int*, std::size_t);
      reinterpret_cast<Gesdd>(routines_.gesdd)(job, &m_, &n_, matrix(i), &m_, values, u, &m_, vh, &rows, work,
                                               &space.size, space.integers.get(), &info, 1);
    }
    return info;
  }
  bool run_svd() const {
    const char* const job = args_.op == LapackOp::kSvdvals ? "N" : args_.full ? "A" : "S";
    SvdWorkspace space;
    const auto least = static_cast<std::size_t>(k_), most = static_cast<std::size_t>(std::max(m_, n_));
    space.integers.reset(new Int[8 * least]);
    if constexpr (is_complex_v<T>)
      space.reals.reset(new Real[*job == 'N' ? 7 * least : least * std::max(5 * least + 7, 2 * most + 2 * least + 1)]);
    T asked{};
    if (svd(0, job, space, &asked) != 0) return false;
    space.size = static_cast<Int>(real(asked));
    space.work.reset(new T[static_cast<std::size_t>(space.size)]);
    for (std::int64_t i = 0; i < args_.batch; ++i)
      if (svd(i, job, space, space.work.get()) != 0) return false;
    return true;
  }

  // gelsd(), by the workspaces that it asks for.
  bool run_lstsq() const {
    const Real rcond = args_.rcond;
    Real* const values = static_cast<Real*>(args_.values);
    Int rank = 0, info = 0, size = -1, integer = 0;
    T asked{};
    Real asked_reals{};
    const auto solve = [&](T* work, Real* reals, Int* integers) {
      if constexpr (is_complex_v<T>) {
        using Gelsd = void (*)(const Int*, const Int*, const Int*, T*, const Int*, T*, const Int*, Real*, const Real*,
                               Int*, T*, const Int*, Real*, Int*, Int*);
        reinterpret_cast<Gelsd>(routines_.gelsd)(&m_, &n_, &columns_, matrix(0), &m_, side(0), &m_, values, &rcond,
                                                 &rank, work, &size, reals, integers, &info);
      } else {
        using Gelsd = void (*)(const Int*, const Int*, const Int*, T*, const Int*, T*, const Int*, Real*, const Real*,
                               Int*, T*, const Int*, Int*, Int*);
        reinterpret_cast<Gelsd>(routines_.gelsd)(&m_, &n_, &columns_, matrix(0), &m_, side(0), &m_, values, &rcond,
                                                 &rank, work, &size, integers, &info);
      }
      return info == 0;
    };
    if (!solve(&asked, &asked_reals, &integer)) return false;
    size = static_cast<Int>(real(asked));
    const std::unique_ptr<T[]> work(new T[static_cast<std::size_t>(size)]);
    const std::unique_ptr<Real[]> reals(new Real[static_cast<std::size_t>(asked_reals) + 1]);
    const std::unique_ptr<Int[]> integers(new Int[static_cast<std::size_t>(integer) + 1]);
    if (!solve(work.get(), reals.get(), integers.get())) return false;
    *static_cast<std::int32_t*>(args_.others) = static_cast<std::int32_t>(rank);
    return true;
  }

  // Householder's reflectors below the diagonal of the matrix; kQr: Q from them.
  bool run_qr() const {
    using Geqrf = void (*)(const Int*, const Int*, T*, const Int*, T*, T*, const Int*, Int*);
    using Orgqr = void (*)(const Int*, const Int*, const Int*, T*, const Int*, const T*, T*, const Int*, Int*);
    const auto geqrf = reinterpret_cast<Geqrf>(routines_.geqrf);
    const auto orgqr = reinterpret_cast<Orgqr>(routines_.orgqr);
    const bool wants_q = args_.op == LapackOp::kQr;
    const std::unique_ptr<T[]> tau(new T[static_cast<std::size_t>(k_)]);
    const Int ask = -1;
    T asked{}, asked_for_q{};
    Int info = 0;
    geqrf(&m_, &n_, matrix(0), &m_, tau.get(), &asked, &ask, &info);
    if (info == 0 && wants_q) orgqr(&m_, &columns_, &k_, side(0), &m_, tau.get(), &asked_for_q, &ask, &info);
    if (info != 0) return false;
    const Int size = std::max({Int(real(asked)), Int(real(asked_for_q)), Int(1)});
    const std::unique_ptr<T[]> work(new T[static_cast<std::size_t>(size)]);
    for (std::int64_t i = 0; i < args_.batch; ++i) {
      T* const a = matrix(i);
      geqrf(&m_, &n_, a, &m_, tau.get(), work.get(), &size, &info);
      if (wants_q) {
        std::copy_n(a, args_.m * k_, side(i));
        std::fill_n(side(i) + args_.m * k_, args_.m * (columns_ - k_), T(0));
        orgqr(&m_, &columns_, &k_, side(i), &m_, tau.get(), work.get(), &size, &info);
      }
      for (Int column = 0; column < k_; ++column) std::fill_n(a + column * m_ + column + 1, m_ - column - 1, T(0));
    }
    return info == 0;
  }

  static Real real(const T& x) {
    if constexpr (is_complex_v<T>) return x.real();
    else return x;
  }

  const LapackRoutines& routines_;
  const LapackArgs& args_;
  const Int m_, n_, k_, columns_;
};

}  // namespace

bool has_lapack() noexcept {
  const OpenBlas* library = find_openblas();
  return library != nullptr && library->of_double.gesv != nullptr;
}

bool run_lapack(const LapackArgs& args) noexcept {
  const OpenBlas* library = find_openblas();
  if (library == nullptr) return false;
  try {
    return visit_dtype<bit(DType::kFloat64) | bit(DType::kComplex128)>(
        args.dtype,
        [&]<class T>() {
          const LapackRoutines& routines = is_complex_v<T> ? library->of_complex : library->of_double;
          return library->wide ? Lapack<T, std::int64_t>(routines, args).run()
                               : Lapack<T, std::int32_t>(routines, args).run();
        },
        false);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace dlbridge::nd::host_kernels
