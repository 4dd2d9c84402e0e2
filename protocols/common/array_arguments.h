// Reading the Python values that interface dictionaries are made of.
#pragma once

#include <cstdint>

#include "dlbridge/tensor.h"
#include "protocols/common/python.h"

namespace dlbridge::py {

// Extents or strides from a tuple of integers (a list is taken too), on the stack.
struct DimsArgument {
  std::int64_t ndim = -1;  // -1: absent or None
  std::int64_t values[kMaxDims];
};

// False with a Python error set: `field` is no sequence of integers (TypeError), too long (DataError), or has a
// number that does not fit in 64 bits (OverflowError).
bool parse_dims(PyObject* sequence, const char* operation, const char* field, DimsArgument& out);

// An address from an int; bool and negative numbers are refused. False with a Python error set.
bool parse_address(PyObject* number, const char* operation, const char* field, std::uintptr_t& out);

// A tuple of `n` Python ints, each times `scale`. Null with MemoryError set.
PyObject* make_dims(const std::int64_t* values, std::int32_t n, std::int64_t scale) noexcept;

}  // namespace dlbridge::py
