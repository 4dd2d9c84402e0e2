// Polars: a Series over the memory, through Arrow. A Series is immutable to its user.
#include "frameworks/framework.h"
#include "protocols/arrow/arrow.h"
#include "protocols/common/errors.h"

namespace dlbridge::frameworks {

namespace {

bool is_series(PyTypeObject* type, const DLPackExchangeAPI*) noexcept {
  const py::Ref series = py::loaded_global("polars", "Series");
  return series && PyType_Check(series.get()) &&
         PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(series.get())) != 0;
}

// A Series has no other protocol, and takes 3 us to say of each that it lacks it.
py::Read read_series(PyObject* series, const DLPackExchangeAPI*, py::ReadCall& call, py::TensorObject* self) {
  self->protocol = py::Protocol::kArrow;
  const py::Read read = arrow_c::read_stream(series, call, self);
  if (read == py::Read::kDone || (PyErr_Occurred() != nullptr && py::is_final_error())) return read;
  PyErr_Clear();  // the readers are asked, which know of nulls= and copy=, and say why
  call.refusal = {};
  return py::Read::kAbsent;
}

constexpr ArrayKind kArrays[] = {{.recognises = is_series, .read = read_series}};

// One dimension gives a plain column, whose bool is packed to bits; more give a column of Polars' Array type.
constexpr Consumer kTakes[] = {
    {.takes = {.dtypes = kBoolAndNumbers, .devices = kOnHost, .min_rank = 1, .max_rank = 1, .read_only = true},
     .enter = "polars_series",
     .immutable = true,
     .copied_dtypes = dtypes(DType::kBool),
     .note = "Polars has no such type; cast it, or view complex numbers as pairs of floats."},
    {.takes = {.dtypes = kIntegers | kFloats, .devices = kOnHost, .min_rank = 2, .read_only = true},
     .enter = "polars_array",
     .immutable = true,
     .note = "Polars has no such type; cast it, or view it as integers."},
};

}  // namespace

extern constinit const Framework kPolars{.name = "polars", .module = "polars", .arrays = kArrays, .consumers = kTakes};

}  // namespace dlbridge::frameworks
