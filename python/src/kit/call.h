// The arguments of a call. A function's parameters are said once, in the text signature that its docstring begins with;
// what is positional, what has a default and what is given by name only is read from there when it is compiled.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocols/common/boundary.h"
#include "protocols/common/python.h"

namespace dlbridge::py {

inline constexpr int kMaxParameters = 9;

// Of "scan($module, name, x, axis=None, *, dtype=None)\n--\n\nText". A "/" is for the reader: the names before it are
// taken, too. "*shape" is a parameter that takes all that is positional, or one value by its name. "**kwargs" takes
// names that are not known yet, and None for each: any other value is a NotImplementedError.
struct Signature {
  struct Name {
    char text[32] = {};
    int size = 0;
    constexpr void append(char c) { text[size++] = c; }
  };

  Name function;
  Name operation;  // "scan()"
  Name names[kMaxParameters];
  int count = 0;
  int required = 0;    // the first ones
  int positional = 0;  // may be positional
  bool variadic = false;
  bool extensible = false;

  template <std::size_t kSize>
  consteval explicit Signature(const char (&doc)[kSize]) {
    std::size_t at = 0;
    while (doc[at] != '(') function.append(doc[at++]);
    operation = function;
    operation.append('(');
    operation.append(')');
    bool by_name = false;
    while (doc[at++] != ')') {  // at a parameter: its first character, or the blank before it
      while (doc[at] == ' ') ++at;
      const std::size_t first = at;
      bool has_default = false;
      for (int depth = 0; depth > 0 || (doc[at] != ',' && doc[at] != ')'); ++at) {
        depth += doc[at] == '(' ? 1 : doc[at] == ')' ? -1 : 0;
        has_default |= doc[at] == '=';
      }
      const char kind = doc[first];
      if (kind == '*' && doc[first + 1] == '*') {
        extensible = true;
        continue;
      }
      if (kind == '*') by_name = true;
      if (kind == '*' && at > first + 1) variadic = true;
      if (kind == '$' || kind == '/' || (kind == '*' && at == first + 1)) continue;
      for (std::size_t k = kind == '*' ? first + 1 : first; k < at && doc[k] != '='; ++k) names[count].append(doc[k]);
      ++count;
      if (!by_name) positional = count;
      if (!has_default && kind != '*') required = count;
    }
  }
};

// The arguments of one call, by the signature's order. They throw with a Python error set.
class Call {
 public:
  Call(const Signature& signature, const char* operation, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames)
      : operation_(operation), args_(args), nargs_(nargs) {
    const bool is_plain = kwnames == nullptr && !signature.variadic;
    if (is_plain && nargs >= signature.required && nargs <= signature.positional) [[likely]] {
      for (int i = 0; i < signature.count; ++i) values_[i] = i < nargs ? args[i] : nullptr;
    } else {
      parse(signature, kwnames);
    }
  }

  const char* operation() const noexcept { return operation_; }
  PyObject* given(std::size_t i) const noexcept { return values_[i]; }  // null: not given
  PyObject* operator[](std::size_t i) const noexcept { return values_[i] == Py_None ? nullptr : values_[i]; }
  // What a variadic parameter takes.
  PyObject* const* all() const noexcept { return args_; }
  Py_ssize_t all_count() const noexcept { return nargs_; }

  // None and absent are `otherwise`.
  bool flag(std::size_t i, bool otherwise) const;
  std::int64_t integer(std::size_t i, std::int64_t otherwise) const;
  double number(std::size_t i, double otherwise) const;

 protected:
  const char* operation_;

 private:
  void parse(const Signature& signature, PyObject* kwnames);

  PyObject* const* args_;
  Py_ssize_t nargs_;
  PyObject* values_[kMaxParameters];
};

}  // namespace dlbridge::py
