// What convert() shares with asdlpack() and with the diagnosis.
#pragma once

#include "frameworks/framework.h"
#include "protocols/common/python.h"

namespace dlbridge::py {

// asdlpack.cpp: asdlpack() with the keywords of convert(): device, copy and stream. `never_copy`: copy=False was among
// them.
PyObject* read_for_convert(PyObject* object, const char* operation, PyObject* const* values, PyObject* kwnames,
                           bool& never_copy);

// convert.cpp: the framework of the table that `to`, a name or a module, means to convert(). Null: another module that
// has from_dlpack(), or `failed`, with a Python error set.
const frameworks::Framework* find_target_framework(PyObject* to, bool& failed);

}  // namespace dlbridge::py
