// Small matrices, each worked off by one team of threads in memory that the team shares: LU with partial pivoting, for
// determinants, inverses and solutions, and Cholesky's factor.
//
// A team is a table of threads, groups() of lanes() each, where a thread knows its place: group() and lane(). All of
// them call what is below with the same arguments, and go through the same steps: what decides about one is the same
// for all. A column costs one sync(), behind which all see what each wrote before. strongest(candidate) gives each lane
// the candidate of its group with the largest magnitude, of equal ones that of the lowest row.
#pragma once

#include "ndarray/kernels/api.h"
#include "ndarray/kernels/functors/arithmetic.h"

namespace dlbridge::nd::functors {

inline constexpr DTypeSet kMatrixSet =
    bit(DType::kFloat32) | bit(DType::kFloat64) | bit(DType::kComplex64) | bit(DType::kComplex128);
inline constexpr int kMatrixBytes = 64 << 10;  // what every GPU since Turing lets a block of threads share
inline constexpr int kMatrixRows = 127;        // as many bits are there for rows; of float32, as many fit
inline constexpr int kSidesTogether = 64;      // right sides that are solved with one factorisation
inline constexpr int kFewestSides = 16;        // where fewer fit beside a matrix, it is factored too often

// How the shared memory of a team is used: n rows of the matrix, each with its right sides behind it, and the rows in
// the order of their pivots.
struct MatrixPlan {
  int rows;
  int sides;           // right sides of a team
  int pitch;           // elements from row to row: odd, so that a column lies in as many banks as a row
  int bytes;           // 0: the matrices do not fit
  std::int64_t parts;  // teams that a matrix has: each factors it for its own right sides
  std::int64_t teams;  // of all matrices
};

// By the operation, the dtype and the numbers.
inline MatrixPlan plan_matrices(const MatrixArgs& args) noexcept {
  MatrixPlan plan{};
  if (args.n > kMatrixRows) return plan;
  const int rows = static_cast<int>(args.n), itemsize = dlbridge::info(args.dtype).itemsize;
  const int pivots = rows * static_cast<int>(sizeof(int));
  const int room = (kMatrixBytes - pivots) / (rows * itemsize) - 1;  // 1: the pitch is odd
  const int most = room - rows < kSidesTogether ? room - rows : kSidesTogether;
  const std::int64_t wanted = args.op == MatrixOp::kSolve || args.op == MatrixOp::kInv ? args.columns : 0;
  if (most < (wanted < kFewestSides ? wanted : kFewestSides)) return plan;
  plan.rows = rows;
  plan.parts = wanted <= most ? 1 : (wanted + most - 1) / most;
  plan.sides = static_cast<int>((wanted + plan.parts - 1) / plan.parts);
  plan.pitch = (rows + plan.sides) | 1;
  plan.bytes = (rows * plan.pitch * itemsize + pivots + 15) / 16 * 16;
  plan.teams = args.matrices * plan.parts;
  return plan;
}

template <class T>
struct SharedMatrix {
  T* elements;
  int pitch, n, sides;
  int* pivots;  // the row of each column's pivot

  DLBRIDGE_ND_HD T& operator()(int row, int column) const noexcept { return elements[row * pitch + column]; }
};

// Rows that have been dealt with, as each thread knows them for itself.
class RowSet {
 public:
  DLBRIDGE_ND_HD bool has(int row) const noexcept { return (row < 64 ? low_ >> row : high_ >> (row - 64)) & 1; }
  DLBRIDGE_ND_HD void add(int row) noexcept {
    if (row < 64) low_ |= std::uint64_t{1} << row;
    else high_ |= std::uint64_t{1} << (row - 64);
  }
  // Whether an odd number of the rows before this one is not in the set.
  DLBRIDGE_ND_HD bool lacks_odd_number_before(int row) const noexcept {
    const std::uint64_t before =
        row < 64 ? ~low_ & ((std::uint64_t{1} << row) - 1) : ~low_ ^ (~high_ & ((std::uint64_t{1} << (row - 64)) - 1));
    return is_odd(before);
  }

 private:
  DLBRIDGE_ND_HD static bool is_odd(std::uint64_t bits) noexcept {
#if defined(__CUDA_ARCH__)
    return __popcll(bits) & 1;
#else
    return __builtin_parityll(bits) != 0;
#endif
  }
  std::uint64_t low_ = 0, high_ = 0;
};

// By which LAPACK, too, chooses pivots. Nan is the largest, so that none is lost.
template <class T>
DLBRIDGE_ND_HD inline real_t<T> pivot_magnitude(T x) noexcept {
  real_t<T> size;
  if constexpr (is_complex_v<T>) size = std::fabs(x.real()) + std::fabs(x.imag());
  else size = std::fabs(x);
  return size == size ? size : std::numeric_limits<real_t<T>>::infinity();
}

template <class R>
struct PivotCandidate {
  R magnitude;
  int row;
  DLBRIDGE_ND_HD bool is_stronger_than(const PivotCandidate& other) const noexcept {
    return magnitude > other.magnitude || (magnitude == other.magnitude && row < other.row);
  }
};

// a - b * c, in one instruction where there is one.
template <class T>
DLBRIDGE_ND_HD inline T minus_product(T a, T b, T c) noexcept {
  if constexpr (is_complex_v<T>)
    return T(a.real() - b.real() * c.real() + b.imag() * c.imag(),
             a.imag() - b.real() * c.imag() - b.imag() * c.real());
  else return a - b * c;
}
template <class T>
DLBRIDGE_ND_HD inline T conjugate(T x) noexcept {
  if constexpr (is_complex_v<T>) return T(x.real(), -x.imag());
  else return x;
}

// Divides many numbers by one: by its inverse, unless that has lost digits or is no number.
template <class T>
class DivideBy {
 public:
  DLBRIDGE_ND_HD explicit DivideBy(T by) noexcept {
    constexpr real_t<T> kLeast = std::numeric_limits<real_t<T>>::min();
    const real_t<T> size = pivot_magnitude(by);
    multiplies_ = size >= kLeast && size <= 1 / kLeast;
    factor_ = multiplies_ ? fn::divide(T(1), by) : by;
  }
  DLBRIDGE_ND_HD T operator()(T x) const noexcept {
    return multiplies_ ? fn::multiply(x, factor_) : fn::divide(x, factor_);
  }

 private:
  T factor_;
  bool multiplies_;
};

// A product of pivots, as a number near 1 and a power of 2: neither overflows where the other would bring it back.
template <class T>
class Determinant {
 public:
  DLBRIDGE_ND_HD void multiply(T pivot, bool negate) noexcept {
    number_ = fn::multiply(number_, negate ? -pivot : pivot);
    const real_t<T> size = pivot_magnitude(number_);
    if (size == 0 || fn::is_inf(size)) return;
    int power = 0;
    std::frexp(size, &power);
    number_ = scaled(number_, -power);
    power_ += power;
  }
  DLBRIDGE_ND_HD T value() const noexcept { return scaled(number_, power_); }
  DLBRIDGE_ND_HD T sign() const noexcept { return fn::sign(number_); }
  DLBRIDGE_ND_HD real_t<T> log() const noexcept {
    return std::log(fn::absolute(number_)) + static_cast<real_t<T>>(power_) * real_t<T>(0.693147180559945309417);
  }

 private:
  DLBRIDGE_ND_HD static T scaled(T x, int power) noexcept {
    if constexpr (is_complex_v<T>) return T(std::ldexp(x.real(), power), std::ldexp(x.imag(), power));
    else return std::ldexp(x, power);
  }
  T number_ = T(1);
  int power_ = 0;
};

// f(row, column) for all of a table, each by one thread; lanes along the rows where `by_rows`.
template <class Team, class F>
DLBRIDGE_ND_HD inline void for_each_element(const Team& team, int rows, int columns, bool by_rows, F f) noexcept {
  const int outer = by_rows ? columns : rows, inner = by_rows ? rows : columns;
  for (int i = team.group(); i < outer; i += team.groups())
    for (int j = team.lane(); j < inner; j += team.lanes()) f(by_rows ? j : i, by_rows ? i : j);
}

// Columns of a matrix in memory, lanes along its shorter strides, into the shared one from column `first` on.
template <class T, class Team>
DLBRIDGE_ND_HD inline void load_columns(const Team& team, const SharedMatrix<T>& m, int first, int columns,
                                        const unsigned char* data, std::int64_t row, std::int64_t column) noexcept {
  const bool by_rows = (row < 0 ? -row : row) < (column < 0 ? -column : column);
  for_each_element(team, m.n, columns, by_rows,
                   [&](int i, int j) { m(i, first + j) = *reinterpret_cast<const T*>(data + i * row + j * column); });
}

// The row of the pivot of column k, among those that had none.
template <class T, class Team>
DLBRIDGE_ND_HD inline PivotCandidate<real_t<T>> find_pivot(const Team& team, const SharedMatrix<T>& m, int k,
                                                           const RowSet& used) noexcept {
  PivotCandidate<real_t<T>> best{real_t<T>(-1), m.n};
  for (int i = team.lane(); i < m.n; i += team.lanes()) {
    const PivotCandidate<real_t<T>> candidate{pivot_magnitude(m(i, k)), i};
    if (!used.has(i) && candidate.is_stronger_than(best)) best = candidate;
  }
  return team.strongest(best);
}

// m(row, column) -= factor_of(row) * other_at(column), for those rows from `begin` on that change(row) and the columns
// from `first` to before `last`, of the lower triangle alone where kIsLower. Some rows of a group together, so that
// loads of one do not wait for stores of another; a row that stays `unchanged` stands in for those that are none.
template <bool kIsLower, class T, class Team, class Changes, class FactorOf, class OtherAt>
DLBRIDGE_ND_HD inline void subtract_from_rows(const Team& team, const SharedMatrix<T>& m, int begin, int first,
                                              int last, int unchanged, Changes change, FactorOf factor_of,
                                              OtherAt other_at) noexcept {
  constexpr int kTogether = 4;
  for (int next = begin + team.group(); next < m.n; next += kTogether * team.groups()) {
    int rows[kTogether];
    bool changes[kTogether], any = false;
    T factors[kTogether];
    for (int r = 0; r < kTogether; ++r) {
      rows[r] = next + r * team.groups();
      changes[r] = rows[r] < m.n && change(rows[r]);
      any |= changes[r];
      if (!changes[r]) rows[r] = unchanged;
    }
    if (!any) continue;
    const int below = next + (kTogether - 1) * team.groups() + 1;
    const int end = kIsLower && below < last ? below : last;
    for (int r = 0; r < kTogether; ++r) factors[r] = factor_of(rows[r]);
    for (int j = first + team.lane(); j < end; j += team.lanes()) {
      const T other = other_at(j);
      T found[kTogether];
      for (int r = 0; r < kTogether; ++r) found[r] = minus_product(m(rows[r], j), factors[r], other);
      for (int r = 0; r < kTogether; ++r)
        if (changes[r] && (!kIsLower || j <= rows[r])) m(rows[r], j) = found[r];
    }
  }
}

// Gauss's elimination, of the right sides, too. Rows stay where they are and columns keep their factors' numerators, so
// that no step writes what another thread reads in it. Gives 0, or the first column, counted from 1, without a pivot.
// on_pivot(column, row, negates) is called for each; `negates`: whether the exchange of rows that is not made would
// change the determinant's sign.
template <class T, class Team, class OnPivot>
DLBRIDGE_ND_HD inline int eliminate(const Team& team, const SharedMatrix<T>& m, OnPivot on_pivot) noexcept {
  RowSet used;
  for (int k = 0; k < m.n; ++k) {
    const auto pivot = find_pivot(team, m, k, used);
    if (pivot.magnitude == 0) return k + 1;
    on_pivot(k, pivot.row, used.lacks_odd_number_before(pivot.row));
    used.add(pivot.row);
    const DivideBy<T> by_pivot(m(pivot.row, k));
    subtract_from_rows<false>(
        team, m, 0, k + 1, m.n + m.sides, pivot.row, [&](int i) { return !used.has(i); },
        [&](int i) { return by_pivot(m(i, k)); }, [&](int j) { return m(pivot.row, j); });
    team.sync();
  }
  return 0;
}

// Solves with what eliminate() left: row `pivots[k]` then has the solution's row k, still to be divided by the pivot.
template <class T, class Team>
DLBRIDGE_ND_HD inline void substitute(const Team& team, const SharedMatrix<T>& m) noexcept {
  RowSet done;
  const bool by_rows = m.sides < team.lanes() && m.sides < m.n;
  for (int k = m.n - 1; k > 0; --k) {
    const int row = m.pivots[k];
    done.add(row);
    const DivideBy<T> by_pivot(m(row, k));
    for_each_element(team, m.n, m.sides, by_rows, [&](int i, int j) {
      if (!done.has(i)) m(i, m.n + j) = minus_product(m(i, m.n + j), m(i, k), by_pivot(m(row, m.n + j)));
    });
    team.sync();
  }
}

// The lower triangle, column by column; each stays what it was before its division by the root of the diagonal's
// element. Gives 0, or the first column, counted from 1, whose minor is not positive: that of nan is none of these.
template <class T, class Team>
DLBRIDGE_ND_HD inline int factor_hermitian(const Team& team, const SharedMatrix<T>& m) noexcept {
  for (int k = 0; k < m.n; ++k) {
    const real_t<T> square = cast<real_t<T>>(m(k, k));
    if (square <= 0) return k + 1;
    const DivideBy<real_t<T>> by_square(square);
    const auto factor_of = [&](int i) {
      if constexpr (is_complex_v<T>) return T(by_square(m(i, k).real()), by_square(m(i, k).imag()));
      else return by_square(m(i, k));
    };
    subtract_from_rows<true>(
        team, m, k + 1, k + 1, m.n, k, [](int) { return true; }, factor_of, [&](int j) { return conjugate(m(j, k)); });
    team.sync();
  }
  return 0;
}

// What one team does: `team_number` of plan.teams, in plan.bytes of shared memory, aligned to 16 bytes.
template <class T>
class MatrixTask {
 public:
  DLBRIDGE_ND_HD MatrixTask(const MatrixArgs& args, const MatrixPlan& plan, std::int64_t team_number,
                            unsigned char* memory) noexcept
      : args_(args), matrix_(team_number) {
    if (plan.parts > 1) {
      matrix_ = team_number / plan.parts;
      first_side_ = (team_number - matrix_ * plan.parts) * plan.sides;
    }
    int sides = plan.sides;
    if (args.columns - first_side_ < sides) sides = static_cast<int>(args.columns - first_side_);
    auto* const elements = reinterpret_cast<T*>(memory);
    shared_ = {elements, plan.pitch, plan.rows, sides, reinterpret_cast<int*>(elements + plan.rows * plan.pitch)};
  }

  template <class Team>
  DLBRIDGE_ND_HD void run(const Team& team) const noexcept {
    load_columns(team, shared_, 0, shared_.n, place_of(args_.a), args_.a.row, args_.a.column);
    switch (args_.op) {
      case MatrixOp::kCholesky: return factor(team);
      case MatrixOp::kDet:
      case MatrixOp::kSlogdet: return determine(team);
      default: return solve(team);
    }
  }

 private:
  using Real = real_t<T>;

  DLBRIDGE_ND_HD const unsigned char* place_of(const MatrixOperand& operand) const noexcept {
    std::int64_t offset = 0, rest = matrix_;
    for (int d = 0; d < args_.ndim; ++d) {
      const std::int64_t outer = d + 1 == args_.ndim ? 0 : rest / args_.shape[d];
      offset += (rest - outer * args_.shape[d]) * operand.stacked[d];
      rest = outer;
    }
    return static_cast<const unsigned char*>(operand.data) + offset;
  }

  template <class Team>
  DLBRIDGE_ND_HD static bool is_first(const Team& team) noexcept {
    return team.lane() == 0 && team.group() == 0;
  }

  // The result's columns from first_side_ on: element_at(row, column), nan where the matrix failed.
  template <class Team, class ElementAt>
  DLBRIDGE_ND_HD void store(const Team& team, int columns, int failed, ElementAt element_at) const noexcept {
    T* const out = static_cast<T*>(args_.out) + matrix_ * shared_.n * args_.columns + first_side_;
    for_each_element(team, shared_.n, columns, false, [&](int i, int j) {
      out[i * args_.columns + j] = failed != 0 ? T(std::numeric_limits<Real>::quiet_NaN()) : element_at(i, j);
    });
    if (is_first(team) && first_side_ == 0) args_.info[matrix_] = failed;
  }

  template <class Team>
  DLBRIDGE_ND_HD void factor(const Team& team) const noexcept {
    team.sync();
    const int failed = factor_hermitian(team, shared_);
    store(team, shared_.n, failed, [&](int i, int j) {
      if (j > i) return T(0);
      const Real root = std::sqrt(cast<Real>(shared_(j, j)));
      if (i == j) return T(root);
      if constexpr (is_complex_v<T>) return T(shared_(i, j).real() / root, shared_(i, j).imag() / root);
      else return shared_(i, j) / root;
    });
  }

  template <class Team>
  DLBRIDGE_ND_HD void determine(const Team& team) const noexcept {
    team.sync();
    Determinant<T> found;
    const int failed = eliminate(team, shared_, [&](int column, int row, bool negates) {
      if (is_first(team)) found.multiply(shared_(row, column), negates);
    });
    if (!is_first(team)) return;
    T* const out = static_cast<T*>(args_.out) + matrix_;
    if (args_.op == MatrixOp::kDet) {
      *out = failed != 0 ? T(0) : found.value();
      return;
    }
    *out = failed != 0 ? T(0) : found.sign();
    static_cast<Real*>(args_.logs)[matrix_] = failed != 0 ? -std::numeric_limits<Real>::infinity() : found.log();
  }

  template <class Team>
  DLBRIDGE_ND_HD void solve(const Team& team) const noexcept {
    const int n = shared_.n;
    if (args_.op == MatrixOp::kInv)
      for_each_element(team, n, shared_.sides, false,
                       [&](int i, int j) { shared_(i, n + j) = T(i == first_side_ + j ? 1 : 0); });
    else
      load_columns(team, shared_, n, shared_.sides, place_of(args_.b) + first_side_ * args_.b.column, args_.b.row,
                   args_.b.column);
    team.sync();
    const int failed = eliminate(team, shared_, [&](int column, int row, bool) {
      if (is_first(team)) shared_.pivots[column] = row;
    });
    if (failed == 0) substitute(team, shared_);
    store(team, shared_.sides, failed, [&](int i, int j) {
      const int row = shared_.pivots[i];
      return fn::divide(shared_(row, n + j), shared_(row, i));
    });
  }

  const MatrixArgs& args_;
  std::int64_t matrix_, first_side_ = 0;
  SharedMatrix<T> shared_;
};

}  // namespace dlbridge::nd::functors
