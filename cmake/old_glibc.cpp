// What libstdc++.a asks of glibc and an old one lacks, for DLBRIDGE_GLIBC (DLBridgeGlibc.cmake). Nobody outside the
// module sees these.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

// glibc 2.32: whether the process has one thread only, so that counters need not be atomic. Here it always has more.
extern "C" char __libc_single_threaded;
char __libc_single_threaded = 0;

// glibc 2.36, for std::random_device.
extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (::getentropy(&value, sizeof value) != 0) std::abort();
  return value;
}

// glibc 2.33, for CUDA's runtime; older ones had it inline. The struct is the kernel's on x86-64.
extern "C" int fstat64(int file, struct stat64* status) noexcept {
  return static_cast<int>(::syscall(SYS_fstat, file, status));
}
