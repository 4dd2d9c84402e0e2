// The struct behind __array_struct__, as NumPy's array interface documents it (version 3 of the protocol).
#pragma once

#include "protocols/common/python.h"

namespace dlbridge::array_interface {

struct ArrayStruct {
  int two;  // the integer 2: a check that this is the struct
  int nd;
  char typekind;
  int itemsize;
  int flags;  // kStruct…
  Py_ssize_t* shape;
  Py_ssize_t* strides;  // bytes
  void* data;
  PyObject* descr;  // only valid with kStructHasDescr
};

inline constexpr int kStructC = 0x1;
inline constexpr int kStructF = 0x2;
inline constexpr int kStructAligned = 0x100;
inline constexpr int kStructNotSwapped = 0x200;
inline constexpr int kStructWriteable = 0x400;
inline constexpr int kStructHasDescr = 0x800;

}  // namespace dlbridge::array_interface
