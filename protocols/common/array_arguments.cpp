#include "protocols/common/array_arguments.h"

#include <string>

#include "protocols/common/errors.h"

namespace dlbridge::py {

namespace {
bool refuse_field(const char* operation, const char* field, PyObject* got, const char* rule) {
  raise(operation, ErrorCode::kWrongType, std::string("'") + field + "' is " + type_name(got) + "; " + rule);
  return false;
}
}  // namespace

bool parse_dims(PyObject* sequence, const char* operation, const char* field, DimsArgument& out) {
  if (!PyTuple_Check(sequence) && !PyList_Check(sequence))
    return refuse_field(operation, field, sequence, "it must be a tuple of integers. The producer must mend it");
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
  if (n > kMaxDims) {
    raise(operation, ErrorCode::kMalformed,
          std::string("'") + field + "' has " + std::to_string(n) + " entries; at most " + std::to_string(kMaxDims) +
              " dimensions are supported. Reshape to fewer first");
    return false;
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    const Ref number(PyNumber_Index(PySequence_Fast_GET_ITEM(sequence, i)));
    if (!number) {
      PyErr_Clear();
      return refuse_field(operation, field, PySequence_Fast_GET_ITEM(sequence, i),
                          "its entries must be integers. The producer must mend it");
    }
    int overflow = 0;
    out.values[i] = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
    if (overflow != 0) {
      raise(operation, ErrorCode::kOverflow,
            std::string("entry ") + std::to_string(i) + " of '" + field + "' does not fit in 64 bits");
      return false;
    }
  }
  out.ndim = n;
  return true;
}

bool parse_address(PyObject* number, const char* operation, const char* field, std::uintptr_t& out) {
  if (PyBool_Check(number) || !PyIndex_Check(number))
    return refuse_field(operation, field, number, "it must be an integer address. The producer must mend it");
  const Ref index(PyNumber_Index(number));
  if (!index) return false;
  const unsigned long long value = PyLong_AsUnsignedLongLong(index.get());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    raise(operation, ErrorCode::kMalformed,
          std::string("'") + field + "' is negative or wider than 64 bits; it must be an address");
    return false;
  }
  out = static_cast<std::uintptr_t>(value);
  return true;
}

PyObject* make_dims(const std::int64_t* values, std::int32_t n, std::int64_t scale) noexcept {
  PyObject* tuple = PyTuple_New(n);
  if (tuple == nullptr) return nullptr;
  for (std::int32_t i = 0; i < n; ++i) {
    PyObject* number = PyLong_FromLongLong(values[i] * scale);
    if (number == nullptr) {
      Py_DECREF(tuple);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple, i, number);
  }
  return tuple;
}

}  // namespace dlbridge::py
