// Reading the Python values that interface dictionaries are made of.
#pragma once

#include <cstdint>

#include "dlbridge/errors.h"
#include "dlbridge/tensor.h"
#include "protocols/common/python.h"

namespace dlbridge::py {

// Extents or strides from a tuple of integers (a list is taken too), on the stack.
struct DimsArgument {
  std::int64_t ndim = -1;  // -1: absent or None
  std::int64_t values[kMaxDims];
};

// The elements of a tuple or a list as they are now, as a tuple that this reference keeps: code that runs while they
// are read (__index__, item(), a finaliser) may clear the list, or drop the tuple from where it came. Null with a
// Python error set.
inline Ref fixed_items(PyObject* tuple_or_list) noexcept {
  if (PyTuple_Check(tuple_or_list)) [[likely]]
    return Ref::borrow(tuple_or_list);
  return Ref(PyList_AsTuple(tuple_or_list));
}

inline constexpr char kFixTheProducer[] = "This must be fixed in the producer";

// False with the reason in `why`: `field` is no tuple or list of integers (TypeError), too long (DataError), or has a
// number that does not fit in 64 bits (OverflowError). Where the elements' own code raises, with that error set.
bool parse_dims(PyObject* sequence, const char* field, DimsArgument& out, Status& why,
                const char* remedy = kFixTheProducer);
// The same for the elements of an argument list, which the caller keeps.
bool parse_dims(PyObject* const* items, Py_ssize_t count, const char* field, DimsArgument& out, Status& why,
                const char* remedy = kFixTheProducer);

// An address from an int; bool and negative numbers are refused. False as above.
bool parse_address(PyObject* number, const char* field, std::uintptr_t& out, Status& why);

// A tuple of `n` Python ints, each times `scale`. Null with MemoryError set.
PyObject* make_dims(const std::int64_t* values, std::int32_t n, std::int64_t scale) noexcept;

}  // namespace dlbridge::py
