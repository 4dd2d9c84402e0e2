// columns(): a table that speaks Arrow as a dict of tensors.
#include <string>
#include <vector>

#include "protocols/arrow/arrow.h"
#include "protocols/common/boundary.h"
#include "python/src/bridge.h"

namespace dlbridge::py {

namespace {

// Copies that a reader made already are the caller's own.
Ref wrap_values(Tensor&& values, bool must_copy, const char* operation) {
  const bool is_own = (values.flags & kFlagCopied) != 0;
  Ref tensor = owned(as_object(wrap_tensor(std::move(values), Protocol::kArrow, nullptr)));
  if (!must_copy || is_own) return tensor;
  const TensorObject* const source = as_tensor(tensor.get());
  return owned(as_object(copy_tensor(source, source->tensor.dl.device, operation)));
}

void add_column(PyObject* dict, arrow_c::NamedColumn& column, bool must_copy, bool with_mask, const char* operation) {
  const Ref name =
      owned(PyUnicode_DecodeUTF8(column.name.data(), static_cast<Py_ssize_t>(column.name.size()), "surrogateescape"));
  const int known = PyDict_Contains(dict, name.get());
  checked(known);
  if (known != 0)
    throw_issue(
        operation, ErrorCode::kMalformed,
        "the table has two columns named '" + column.name + "', and a dict has one place for a name. Rename one");
  Ref value = wrap_values(std::move(column.values), must_copy, operation);
  if (with_mask) {
    const Ref mask = owned(as_object(wrap_tensor(std::move(column.mask), Protocol::kArrow, nullptr)));
    value = owned(PyTuple_Pack(2, value.get(), mask.get()));
  }
  checked(PyDict_SetItem(dict, name.get(), value.get()));
}

}  // namespace

PyObject* columns(PyObject*, const Call& a) {
  using arrow_c::Copies;
  arrow_c::Nulls nulls;
  checked(arrow_c::parse_nulls(a[1], a.operation(), nulls));
  const bool copies = a.flag(2, false);
  const arrow_c::ReadOptions options = arrow_c::options_of(nulls, a[2] == nullptr ? Copies::kDeclared
                                                                  : copies        ? Copies::kAllowed
                                                                                  : Copies::kNever);
  std::vector<arrow_c::NamedColumn> found;
  ReadCall call;
  switch (arrow_c::read_columns(a.given(0), options, call, found)) {
    case Read::kAbsent:
      throw_issue(a.operation(), ErrorCode::kNoProtocol,
                  type_name(a.given(0)) +
                      " has neither __arrow_c_stream__ nor __arrow_c_array__. Give a table of a library that speaks "
                      "Arrow: Polars, pandas, PyArrow, DuckDB, nanoarrow");
    case Read::kFailed: raise_refusal(a.operation(), call.refusal); return nullptr;
    case Read::kDone: break;
  }
  Ref dict = owned(PyDict_New());
  for (arrow_c::NamedColumn& column : found)
    add_column(dict.get(), column, copies, options.nulls == arrow_c::Nulls::kMask, a.operation());
  return dict.release();
}

}  // namespace dlbridge::py
