// Issue -> Python exception: the one place where a code of the core becomes an exception class.
#pragma once

#include "dlbridge/errors.h"
#include "protocols/common/python.h"

namespace dlbridge::py {

// Made at module initialisation; each subclasses the built-in exception that the array API names.
struct Exceptions {
  PyObject* exchange;  // ExchangeError(BufferError)
  PyObject* copy;      // CopyError(ExchangeError, ValueError)
  PyObject* protocol;  // ProtocolError(TypeError)
  PyObject* data;      // DataError(ValueError)
  PyObject* cuda;      // CudaError(RuntimeError)
};
extern Exceptions exceptions;
bool init_exceptions(PyObject* module);

// Borrowed.
PyObject* class_for(ErrorCode code) noexcept;

// Sets the exception for `issue`, as "<operation>: <message>"; as the message alone where the operation is "".
[[gnu::cold]] void raise(const char* operation, const Issue& issue);
[[gnu::cold]] void raise(const char* operation, ErrorCode code, const std::string& message);
// For what a reader refused (protocols/common/read.h). A status that is good: a Python error is set already. A failed
// one beside a Python error: that is its cause.
[[gnu::cold]] void raise_refusal(const char* operation, const Status& why);

// Thrown where a Python error is set: the interpreter has all there is to know.
struct PythonError {};

// Turns a C++ exception in flight into a Python one; see guarded() in boundary.h.
[[gnu::cold]] void raise_current_exception() noexcept;

// The pending exception says nothing about an array (no memory, an interrupt): it ends a search for another way.
inline bool is_final_error() noexcept {
  return PyErr_ExceptionMatches(PyExc_Exception) == 0 || PyErr_ExceptionMatches(PyExc_MemoryError) != 0 ||
         PyErr_ExceptionMatches(PyExc_RecursionError) != 0;
}

// The pending exception as "TypeName: text", and clears it. For messages that gather several refusals.
std::string take_error_text();

// The class's name, for messages: "torch.Tensor", "bytes".
std::string type_name(PyObject* object);

}  // namespace dlbridge::py
