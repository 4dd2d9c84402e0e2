// Small matrices on the host, by the device's algorithm: a team of one thread, one matrix after the other.
#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/small_matrix.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd::host_kernels {
namespace {

struct Alone {
  static constexpr int lane() noexcept { return 0; }
  static constexpr int lanes() noexcept { return 1; }
  static constexpr int group() noexcept { return 0; }
  static constexpr int groups() noexcept { return 1; }
  static void sync() noexcept {}
  template <class Candidate>
  static Candidate strongest(const Candidate& candidate) noexcept {
    return candidate;
  }
};

}  // namespace

int small_matrices(const MatrixArgs& args) {
  const auto plan = functors::plan_matrices(args);
  alignas(16) unsigned char memory[functors::kMatrixBytes];
  return visit_dtype<functors::kMatrixSet>(
      args.dtype,
      [&]<class T>() {
        for (std::int64_t i = 0; i < plan.teams; ++i) functors::MatrixTask<T>(args, plan, i, memory).run(Alone{});
        return 0;
      },
      kErrorUnsupported);
}

}  // namespace dlbridge::nd::host_kernels
