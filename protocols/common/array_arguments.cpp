#include "protocols/common/array_arguments.h"

#include <string>

#include "protocols/common/errors.h"

namespace dlbridge::py {

namespace {
bool refuse(Status& why, ErrorCode code, std::string text) {
  why = Status(code, std::move(text));
  return false;
}
bool refuse_field(Status& why, const char* field, PyObject* got, const std::string& rule) {
  return refuse(why, ErrorCode::kWrongType, std::string("'") + field + "' is " + type_name(got) + "; " + rule);
}
}  // namespace

bool parse_dims(PyObject* sequence, const char* field, DimsArgument& out, Status& why, const char* remedy) {
  if (!PyTuple_Check(sequence) && !PyList_Check(sequence))
    return refuse_field(why, field, sequence, std::string("it must be a tuple of integers. ") + remedy);
  const Ref items = fixed_items(sequence);
  return items &&
         parse_dims(PySequence_Fast_ITEMS(items.get()), PyTuple_GET_SIZE(items.get()), field, out, why, remedy);
}

bool parse_dims(PyObject* const* items, Py_ssize_t count, const char* field, DimsArgument& out, Status& why,
                const char* remedy) {
  if (count > kMaxDims)
    return refuse(why, ErrorCode::kMalformed,
                  std::string("'") + field + "' has " + std::to_string(count) + " entries; at most " +
                      std::to_string(kMaxDims) + " dimensions are supported. Reshape to fewer first");
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!PyIndex_Check(items[i]))
      return refuse_field(why, field, items[i], std::string("its entries must be integers. ") + remedy);
    const Ref number(outlive_thread_exit([&] { return PyNumber_Index(items[i]); }));
    if (!number) return false;
    int overflow = 0;
    out.values[i] = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
    if (overflow != 0)
      return refuse(why, ErrorCode::kOverflow,
                    std::string("entry ") + std::to_string(i) + " of '" + field + "' does not fit in 64 bits");
  }
  out.ndim = count;
  return true;
}

bool parse_address(PyObject* number, const char* field, std::uintptr_t& out, Status& why) {
  if (PyBool_Check(number) || !PyIndex_Check(number))
    return refuse_field(why, field, number, "it must be an integer address. This must be fixed in the producer");
  const Ref index(outlive_thread_exit([&] { return PyNumber_Index(number); }));
  if (!index) return false;
  const unsigned long long value = PyLong_AsUnsignedLongLong(index.get());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return refuse(why, ErrorCode::kMalformed,
                  std::string("'") + field + "' is negative or wider than 64 bits; it must be an address");
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
