#include "python/src/kit/call.h"

#include <cstring>
#include <string>

namespace dlbridge::py {

namespace {

bool is_name(PyObject* given, const Signature::Name& name) noexcept {
  return PyUnicode_IS_ASCII(given) && PyUnicode_GET_LENGTH(given) == name.size &&
         std::memcmp(PyUnicode_DATA(given), name.text, static_cast<std::size_t>(name.size)) == 0;
}

[[gnu::cold]] void check_unknown(const Signature& signature, const char* operation, PyObject* name, PyObject* value) {
  if (signature.extensible && value == Py_None) return;
  std::string known;
  for (int i = 0; i < signature.count; ++i)
    known += (i == 0 ? "" : i + 1 == signature.count ? " and " : ", ") + std::string(signature.names[i].text);
  throw_error(signature.extensible ? PyExc_NotImplementedError : PyExc_TypeError,
              "%s got an unexpected keyword argument '%U'; it takes %s", operation, name, known.c_str());
}

}  // namespace

void Call::parse(const Signature& signature, PyObject* kwnames) {
  const int count = signature.count;
  const Py_ssize_t positional = signature.variadic ? 0 : nargs_;
  if (positional > signature.positional) [[unlikely]]
    throw_error(PyExc_TypeError, "%s takes at most %d positional arguments, got %zd", operation_, signature.positional,
                nargs_);
  for (int i = 0; i < count; ++i) values_[i] = i < positional ? args_[i] : nullptr;
  const Py_ssize_t keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    int i = 0;
    while (i < count && !is_name(name, signature.names[i])) ++i;
    if (i == count) {
      check_unknown(signature, operation_, name, args_[nargs_ + k]);
      continue;
    }
    if (values_[i] != nullptr)
      throw_error(PyExc_TypeError, "%s got multiple values for argument '%s'", operation_, signature.names[i].text);
    values_[i] = args_[nargs_ + k];
  }
  for (int i = static_cast<int>(positional); i < signature.required; ++i)
    if (values_[i] == nullptr) [[unlikely]]
      throw_error(PyExc_TypeError, "%s missing required argument '%s'", operation_, signature.names[i].text);
}

bool Call::flag(std::size_t i, bool otherwise) const {
  if ((*this)[i] == nullptr) return otherwise;
  const int truth = PyObject_IsTrue(values_[i]);
  checked(truth);
  return truth != 0;
}

std::int64_t Call::integer(std::size_t i, std::int64_t otherwise) const {
  if ((*this)[i] == nullptr) return otherwise;
  return checked_number(PyLong_AsLongLong(values_[i]));
}

double Call::number(std::size_t i, double otherwise) const {
  if ((*this)[i] == nullptr) return otherwise;
  return checked_number(PyFloat_AsDouble(values_[i]));
}

}  // namespace dlbridge::py
