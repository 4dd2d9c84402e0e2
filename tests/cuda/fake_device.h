// CUDA C++ for a host compiler: what kernels of the tests need to run on the host, for fake_user_kernels.c.
// The threads of a block run one after the other, or, where a kernel synchronises them, as threads of the host.
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include <thread>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static

struct fake_dim3 {
  unsigned x, y, z;
};
static thread_local fake_dim3 threadIdx, blockIdx;
static fake_dim3 blockDim, gridDim;

static pthread_barrier_t fake_barrier;
static inline void __syncthreads() { pthread_barrier_wait(&fake_barrier); }

template <class T>
static inline T max(T a, T b) {
  return a > b ? a : b;
}
template <class T>
static inline T min(T a, T b) {
  return a < b ? a : b;
}

// All threads of a block reach the same barriers: a kernel that returns before one would hang here.
template <class Call>
void fake_run_block(bool synchronises, Call call) {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  const auto one = [&](unsigned t, fake_dim3 block) {
    blockIdx = block;
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
    call();
  };
  const fake_dim3 block = blockIdx;
  if (!synchronises) {
    for (unsigned t = 0; t < count; ++t) one(t, block);
    return;
  }
  pthread_barrier_init(&fake_barrier, nullptr, count);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t) threads.emplace_back(one, t, block);
  for (std::thread& thread : threads) thread.join();
  pthread_barrier_destroy(&fake_barrier);
}

template <class... A, std::size_t... I>
void fake_launch(void (*kernel)(A...), bool synchronises, void** p, const unsigned* grid, const unsigned* block,
                 std::index_sequence<I...>) {
  blockDim = {block[0], block[1], block[2]};
  gridDim = {grid[0], grid[1], grid[2]};
  for (unsigned z = 0; z < grid[2]; ++z)
    for (unsigned y = 0; y < grid[1]; ++y)
      for (unsigned x = 0; x < grid[0]; ++x) {
        blockIdx = {x, y, z};
        fake_run_block(synchronises, [&] { kernel(*static_cast<std::remove_reference_t<A>*>(p[I])...); });
      }
}
template <class... A>
void fake_launch(void (*kernel)(A...), bool synchronises, void** p, const unsigned* grid, const unsigned* block) {
  fake_launch(kernel, synchronises, p, grid, block, std::index_sequence_for<A...>{});
}
template <class... A>
struct fake_parameters {
  unsigned count = sizeof...(A);
  unsigned bytes[sizeof...(A) + 1] = {sizeof(A)...};
};
template <class... A>
constexpr fake_parameters<A...> fake_parameters_of(void (*)(A...)) {
  return {};
}

// Below the source, once a kernel.
#define FAKE_KERNEL(name, synchronises)                                                \
  extern "C" void name##__run(void** p, const unsigned* grid, const unsigned* block) { \
    fake_launch(&name, synchronises, p, grid, block);                                  \
  }                                                                                    \
  extern "C" const auto name##__parameters = fake_parameters_of(&name);
#define FAKE_GLOBAL(name) extern "C" const unsigned long name##__bytes = sizeof(name);

// A kernel without a name of its own: an instance of a template.
#define FAKE_KERNEL_VALUE(name, synchronises)                                          \
  extern "C" void name##__run(void** p, const unsigned* grid, const unsigned* block) { \
    fake_launch(name, synchronises, p, grid, block);                                   \
  }                                                                                    \
  extern "C" const auto name##__parameters = fake_parameters_of(name);
