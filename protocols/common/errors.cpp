#include "protocols/common/errors.h"

#include <exception>
#include <new>

namespace dlbridge::py {

Exceptions exceptions;

namespace {

bool add_exception(PyObject* module, PyObject*& slot, const char* name, const char* doc, PyObject* bases) {
  const std::string qualified = std::string("dlbridge.") + name;
  slot = PyErr_NewExceptionWithDoc(qualified.c_str(), doc, bases, nullptr);
  return slot != nullptr && PyModule_AddObjectRef(module, name, slot) == 0;
}

}  // namespace

PyObject* class_for(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kNoProtocol: return exceptions.protocol;
    case ErrorCode::kWrongType: return PyExc_TypeError;
    case ErrorCode::kRefused: return exceptions.exchange;
    case ErrorCode::kCopyRefused: return exceptions.copy;
    case ErrorCode::kMalformed: return exceptions.data;
    case ErrorCode::kIndex: return PyExc_IndexError;
    case ErrorCode::kOverflow: return PyExc_OverflowError;
    case ErrorCode::kOutOfMemory: return PyExc_MemoryError;
    case ErrorCode::kCuda: return exceptions.cuda;
  }
  return PyExc_SystemError;
}

bool init_exceptions(PyObject* module) {
  if (!add_exception(module, exceptions.exchange, "ExchangeError",
                     "An exchange that a specification says to refuse. A BufferError, as the array API asks.",
                     PyExc_BufferError))
    return false;
  // The array API names BufferError in one place and ValueError in another for a copy that was forbidden.
  const Ref bases(PyTuple_Pack(2, exceptions.exchange, PyExc_ValueError));
  return bases &&
         add_exception(module, exceptions.copy, "CopyError",
                       "The exchange needs a copy and copy=False forbids it. A BufferError and a ValueError.",
                       bases.get()) &&
         add_exception(module, exceptions.protocol, "ProtocolError",
                       "The object speaks none of the protocols. A TypeError.", PyExc_TypeError) &&
         add_exception(module, exceptions.data, "DataError",
                       "Data that breaks its protocol, or an argument with a bad value. A ValueError.",
                       PyExc_ValueError) &&
         add_exception(module, exceptions.cuda, "CudaError", "The CUDA driver reported an error. A RuntimeError.",
                       PyExc_RuntimeError);
}

void raise(const char* operation, ErrorCode code, const std::string& message) {
  PyErr_Format(class_for(code), "%s%s%s", operation, *operation != '\0' ? ": " : "", message.c_str());
}

void raise(const char* operation, const Issue& issue) { raise(operation, issue.code, issue.message); }

void raise_refusal(const char* operation, const Status& why) {
  if (why.ok()) return;
  Ref cause = take_exception();
  raise(operation, why.issue());
  if (!cause) return;
  Ref error = take_exception();
  PyException_SetCause(error.get(), cause.release());
  set_exception(std::move(error));
}

void raise_current_exception() noexcept {
  try {
    throw;
  } catch (const PythonError&) {  // it is set
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_SystemError, error.what());
  } catch (...) {
    dlbridge::detail::stay_if_thread_ends();
    PyErr_SetString(PyExc_SystemError, "dlbridge: unknown C++ exception");
  }
}

std::string take_error_text() {
  const Ref error = take_exception();
  if (!error) return "unknown error";
  std::string text = Py_TYPE(error.get())->tp_name;
  if (const Ref message(PyObject_Str(error.get())); message) {
    if (const char* utf8 = PyUnicode_AsUTF8(message.get())) text += std::string(": ") + utf8;
  }
  PyErr_Clear();
  return text;
}

std::string type_name(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  const Ref module(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
  const Ref name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__qualname__"));
  PyErr_Clear();
  std::string text;
  if (module && PyUnicode_Check(module.get())) {
    if (const char* utf8 = PyUnicode_AsUTF8(module.get()); utf8 != nullptr && std::string_view(utf8) != "builtins")
      text = std::string(utf8) + ".";
  }
  const char* utf8 = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  return text + (utf8 != nullptr ? utf8 : type->tp_name);
}

}  // namespace dlbridge::py
