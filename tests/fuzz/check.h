// A check that holds in every build: a broken invariant must stop the fuzzer, and assert() goes away with NDEBUG.
#pragma once

#include <cstdio>
#include <cstdlib>

#define DLBRIDGE_CHECK(condition)                                                  \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)
