// Arg, Result, like(), as() and visit() for the files with an extension's functions: neither pybind11 nor nanobind is
// compiled there. The file that defines the module includes dlbridge/pybind11.h or dlbridge/nanobind.h.
//
//   double total(dlbridge::Arg<const float, dlbridge::rank<2>> a);
#pragma once

#include "dlbridge/check.h"
#include "dlbridge/dtype.h"
#include "dlbridge/python/argument.h"
#include "dlbridge/python/framework.h"
#include "dlbridge/python/result.h"
#include "dlbridge/python/visit.h"
