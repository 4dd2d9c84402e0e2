// functors/small_matrix.h by teams of several threads: what a step of the algorithm reads, another thread may have
// written in the step before only. A missing sync() is a race to ThreadSanitizer, and elsewhere a wrong result.
#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ndarray/kernels/functors/small_matrix.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd {
namespace {

struct Shape {
  int groups, lanes;
};

// What the threads of a team share beside the matrix: of each lane of each group a candidate for the pivot.
struct Meeting {
  explicit Meeting(Shape of) : shape(of), all(of.groups * of.lanes) {
    for (int g = 0; g < of.groups; ++g) group.push_back(std::make_unique<std::barrier<>>(of.lanes));
    candidates.resize(static_cast<std::size_t>(of.groups * of.lanes) * 16);
  }
  Shape shape;
  std::barrier<> all;
  std::vector<std::unique_ptr<std::barrier<>>> group;
  std::vector<unsigned char> candidates;
};

class HostTeam {
 public:
  HostTeam(Meeting& meeting, int thread) : meeting_(meeting), thread_(thread) {}
  int lane() const { return thread_ % lanes(); }
  int lanes() const { return meeting_.shape.lanes; }
  int group() const { return thread_ / lanes(); }
  int groups() const { return meeting_.shape.groups; }
  void sync() const { meeting_.all.arrive_and_wait(); }

  template <class Candidate>
  Candidate strongest(const Candidate& mine) const {
    static_assert(sizeof(Candidate) <= 16);
    auto& group = *meeting_.group[static_cast<std::size_t>(this->group())];
    unsigned char* const places = meeting_.candidates.data() + this->group() * lanes() * 16;
    std::memcpy(places + lane() * 16, &mine, sizeof mine);
    group.arrive_and_wait();
    Candidate best = mine;
    for (int i = 0; i < lanes(); ++i) {
      Candidate its;
      std::memcpy(&its, places + i * 16, sizeof its);
      if (its.is_stronger_than(best)) best = its;
    }
    group.arrive_and_wait();
    return best;
  }

 private:
  Meeting& meeting_;
  int thread_;
};

template <class T>
struct Results {
  std::vector<T> out;
  std::vector<real_t<T>> logs;
  std::vector<std::int32_t> info;

  bool is_same_as(const Results& other) const {  // of nan, too
    const auto same = [](const auto& a, const auto& b) {
      return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
    };
    return same(out, other.out) && same(logs, other.logs) && same(info, other.info);
  }
};

template <class T>
std::vector<T> numbers(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<real_t<T>> uniform(-1, 1);
  std::vector<T> found(static_cast<std::size_t>(count));
  for (T& x : found) {
    x = T(uniform(random));
    if constexpr (is_complex_v<T>) x = T(x.real(), uniform(random));
  }
  return found;
}

constexpr std::int64_t kMatrices = 3, kColumns = 5;

// Of three matrices the second is singular, and not positive definite.
template <class T>
struct Problem {
  MatrixOp op;
  std::int64_t n;
  std::vector<T> a, b;

  Problem(MatrixOp of, std::int64_t rows)
      : op(of), n(rows), a(numbers<T>(kMatrices * rows * rows, 5)), b(numbers<T>(kMatrices * rows * kColumns, 6)) {
    for (std::int64_t m = 0; m < kMatrices; ++m)
      for (std::int64_t i = 0; i < n; ++i) {
        if (op == MatrixOp::kCholesky) at(m, i, i) = T(static_cast<real_t<T>>(2 * n));
        if (m == 1) at(m, i, n / 2) = T(0);
      }
  }
  T& at(std::int64_t m, std::int64_t i, std::int64_t j) { return a[static_cast<std::size_t>((m * n + i) * n + j)]; }

  Results<T> solve(Shape shape) const {
    const auto itemsize = static_cast<std::int64_t>(sizeof(T));
    MatrixArgs args{};
    args.op = op;
    args.dtype = dtype_of_native<T>::value;
    args.ndim = 1;
    args.n = n;
    args.matrices = args.shape[0] = kMatrices;
    args.a = {a.data(), n * itemsize, itemsize, {n * n * itemsize}};
    args.b = {b.data(), kColumns * itemsize, itemsize, {n * kColumns * itemsize}};
    const bool has_info = op != MatrixOp::kDet && op != MatrixOp::kSlogdet;
    if (has_info) args.columns = op == MatrixOp::kSolve ? kColumns : n;
    Results<T> results;
    results.out.resize(static_cast<std::size_t>(kMatrices * (has_info ? n * args.columns : 1)));
    results.logs.resize(op == MatrixOp::kSlogdet ? kMatrices : 0);
    results.info.resize(has_info ? kMatrices : 0);
    args.out = results.out.data();
    args.logs = results.logs.data();
    args.info = results.info.data();
    const auto plan = functors::plan_matrices(args);
    EXPECT_GT(plan.bytes, 0);
    Meeting meeting(shape);
    alignas(16) static unsigned char memory[functors::kMatrixBytes];
    for (std::int64_t team = 0; team < plan.teams; ++team) {
      std::vector<std::thread> threads;
      for (int i = 0; i < shape.groups * shape.lanes; ++i)
        threads.emplace_back([&, i] { functors::MatrixTask<T>(args, plan, team, memory).run(HostTeam(meeting, i)); });
      for (auto& thread : threads) thread.join();
    }
    return results;
  }
};

constexpr Shape kTeams[] = {{1, 2}, {1, 4}, {3, 1}, {2, 2}};

template <class T>
void compare_teams() {
  for (const MatrixOp op : {MatrixOp::kCholesky, MatrixOp::kDet, MatrixOp::kSlogdet, MatrixOp::kInv, MatrixOp::kSolve})
    for (const std::int64_t n : {1, 2, 5, 13, 20}) {
      const Problem<T> problem(op, n);
      const Results<T> wanted = problem.solve({1, 1});
      for (const Shape& shape : kTeams)
        EXPECT_TRUE(problem.solve(shape).is_same_as(wanted))
            << "operation " << static_cast<int>(op) << " of " << n << " by " << shape.groups << " x " << shape.lanes;
      std::vector<std::int32_t> info;
      if (op != MatrixOp::kDet && op != MatrixOp::kSlogdet) info = {0, static_cast<std::int32_t>(n / 2 + 1), 0};
      EXPECT_EQ(wanted.info, info);
    }
}

TEST(SmallMatrix, every_team_gives_the_bits_of_a_single_thread) {
  compare_teams<float>();
  compare_teams<double>();
  compare_teams<complex<float>>();
  compare_teams<complex<double>>();
}

TEST(SmallMatrix, solutions_solve_and_inverses_are_solutions_of_the_unit_matrix) {
  using T = complex<double>;
  constexpr std::int64_t n = 13;
  Problem<T> problem(MatrixOp::kSolve, n);
  const Results<T> solutions = problem.solve({1, 1}), inverses = Problem<T>(MatrixOp::kInv, n).solve({1, 1});
  for (const std::int64_t m : {0, 2})
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < kColumns; ++j) {
        T rest = problem.b[static_cast<std::size_t>((m * n + i) * kColumns + j)];
        for (std::int64_t k = 0; k < n; ++k)
          rest -= problem.at(m, i, k) * solutions.out[static_cast<std::size_t>((m * n + k) * kColumns + j)];
        EXPECT_LT(std::abs(rest), 1e-12);
      }
      for (std::int64_t j = 0; j < n; ++j) {
        T rest = T(i == j ? 1 : 0);
        for (std::int64_t k = 0; k < n; ++k)
          rest -= problem.at(m, i, k) * inverses.out[static_cast<std::size_t>((m * n + k) * n + j)];
        EXPECT_LT(std::abs(rest), 1e-12);
      }
    }
}

TEST(SmallMatrix, a_plan_fits_and_has_each_right_side_once) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kComplex128})
    for (std::int64_t n = 1; n < 200; ++n)
      for (const std::int64_t columns : {1, 15, 16, 17, 64, 65, 1000}) {
        MatrixArgs args{};
        args.op = MatrixOp::kSolve;
        args.dtype = dtype;
        args.n = n;
        args.columns = columns;
        args.matrices = 7;
        const auto plan = functors::plan_matrices(args);
        if (plan.bytes == 0) {
          EXPECT_GT(n, 48);
          continue;
        }
        EXPECT_LE(plan.bytes, functors::kMatrixBytes);
        EXPECT_GE(plan.pitch, n + plan.sides);
        EXPECT_EQ(plan.teams, 7 * plan.parts);
        EXPECT_GE(plan.parts * plan.sides, columns);
        EXPECT_LT((plan.parts - 1) * plan.sides, columns) << n << " " << columns;
      }
}

}  // namespace
}  // namespace dlbridge::nd
