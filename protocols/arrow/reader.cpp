#include <iterator>
#include <string>
#include <string_view>

#include "dlbridge/cuda_order.h"
#include "protocols/arrow/arrow.h"
#include "protocols/arrow/source.h"

namespace dlbridge::arrow_c {

using py::Read;

namespace {

// Keeps the array for a tensor that looks at its memory, which dies under the GIL; a producer's callback may be Python
// code, and must not see a pending exception. Throws std::bad_alloc, and then the array is still the source's.
Owner keep(ArrowArray& array) {
  auto* kept = new Owned<ArrowArray>(array);
  return {kept, [](void* context) noexcept {
            const py::ErrorGuard guard;
            delete static_cast<Owned<ArrowArray>*>(context);
          }};
}

Status decode(Source& source, const ReadOptions& options, Tensor& out, Tensor* mask) {
  ColumnType type;
  DLBRIDGE_TRY(read_type(source.schema.value, type));
  DLBRIDGE_TRY(source.load());
  std::vector<Part> parts;
  parts.reserve(source.arrays.size());
  for (const auto& array : source.arrays) parts.push_back({&array.value, 0, array.value.length});
  const Part* shared = nullptr;
  DLBRIDGE_TRY(read_column({source.schema.value, type, parts, source.device}, options, out, mask, &shared));
  if (shared == nullptr) return {};
  out.owner = keep(source.arrays[static_cast<std::size_t>(shared - parts.data())].value);
  out.ready = source.ready;
  return {};
}

Read finish(Source& source, PyObject* object, const ReadOptions& options, py::ReadCall& call, py::TensorObject* self,
            Tensor* mask) {
  if (Status status = decode(source, options, self->tensor, mask); !status.ok()) return call.refuse(std::move(status));
  Py_INCREF(object);
  self->source = object;
  return Read::kDone;
}

// --- tables ---------------------------------------------------------------------------------------------------------

Status check_table(const ArrowSchema& s) {
  DLBRIDGE_TRY(detail::check_schema(&s));
  if (std::string_view(s.format) != "+s")
    return {ErrorCode::kWrongType,
            "the object is one column of Arrow type " + type_name(s) + ", not a table. Read it with asdlpack()"};
  for (std::int64_t i = 0; i < s.n_children; ++i) {
    if (s.children == nullptr) return malformed("the children of the Arrow schema are null");
    DLBRIDGE_TRY(detail::check_schema(s.children[i]));
  }
  return s.n_children >= 0 ? Status() : malformed("the Arrow schema has a negative number of children");
}

Status check_batch(const ArrowArray& a, std::int64_t columns) {
  if (a.n_children == 0 && columns == 0) return {};
  DLBRIDGE_TRY(detail::check_array(a, 1, columns));
  for (std::int64_t i = 0; i < columns; ++i)
    if (a.children[i] == nullptr) return malformed("a child of the Arrow array is null. The producer must mend that");
  if (a.buffers[0] == nullptr || a.null_count == 0) return {};
  detail::Placed placed;
  detail::Level rows{nullptr, a.offset, a.length, 1};
  DLBRIDGE_TRY(detail::add_nulls(a, true, rows, placed));
  if (placed.nulls == 0) return {};
  return refused("the table has " + std::to_string(placed.nulls) +
                 " rows that are null as a whole, which its columns cannot say. Drop them first");
}

Status decode_column(Source& source, std::int64_t index, const ReadOptions& options, NamedColumn& out) {
  const ArrowSchema& schema = *source.schema.value.children[index];
  ColumnType type;
  Status status = read_type(schema, type);
  std::vector<Part> parts;
  const Part* shared = nullptr;
  for (const auto& batch : source.arrays)
    parts.push_back({batch.value.children[index], batch.value.offset, batch.value.length});
  if (status.ok()) status = read_column({schema, type, parts, source.device}, options, out.values, &out.mask, &shared);
  if (!status.ok()) {
    if (status.message().find("column '") != std::string::npos) return status;
    return {status.code(), "column '" + out.name + "': " + status.message()};
  }
  if (shared == nullptr) return {};
  // The specification lets children be moved out of a parent that is released right after; the source is.
  out.values.owner = keep(*const_cast<ArrowArray*>(shared->array));
  out.values.ready = source.ready;
  return {};
}

Status decode_table(Source& source, const ReadOptions& options, std::vector<NamedColumn>& out) {
  const ArrowSchema& schema = source.schema.value;
  DLBRIDGE_TRY(check_table(schema));
  DLBRIDGE_TRY(source.load());
  for (const auto& batch : source.arrays) DLBRIDGE_TRY(check_batch(batch.value, schema.n_children));
  // The event is the batch's, which is released while its columns live on.
  if (source.ready.kind == Ordering::Kind::kAtEvent)
    DLBRIDGE_TRY(cuda::move_to_relay(source.ready, source.device.device_id));
  out.resize(static_cast<std::size_t>(schema.n_children));
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    NamedColumn& column = out[static_cast<std::size_t>(i)];
    const char* name = schema.children[i]->name;
    column.name = name != nullptr ? name : "";
    DLBRIDGE_TRY(decode_column(source, i, options, column));
  }
  return {};
}

}  // namespace

bool parse_nulls(PyObject* argument, const char* operation, Nulls& out) {
  out = Nulls::kRefuse;
  if (argument == nullptr || argument == Py_None) return true;
  const char* text = PyUnicode_Check(argument) ? PyUnicode_AsUTF8(argument) : nullptr;
  PyErr_Clear();
  constexpr std::string_view kNames[] = {"refuse", "nan", "mask"};
  for (std::size_t i = 0; text != nullptr && i < std::size(kNames); ++i) {
    if (text != kNames[i]) continue;
    out = static_cast<Nulls>(i);
    return true;
  }
  py::raise(operation, PyUnicode_Check(argument) ? ErrorCode::kMalformed : ErrorCode::kWrongType,
            "nulls is " + (text != nullptr ? "'" + std::string(text) + "'" : py::type_name(argument)) +
                "; give 'refuse', 'nan' or 'mask'");
  return false;
}

Read read(PyObject* object, const ReadOptions& options, py::ReadCall& call, py::TensorObject* self, Tensor* mask) {
  Source source;
  const Read opened = source.open(object, call);
  return opened == Read::kDone ? finish(source, object, options, call, self, mask) : opened;
}

Read read_stream(PyObject* object, py::ReadCall& call, py::TensorObject* self) {
  Source source;
  const Read opened = source.open_stream(object, call);
  return opened == Read::kDone ? finish(source, object, {}, call, self, nullptr) : opened;
}

Read read_columns(PyObject* table, const ReadOptions& options, py::ReadCall& call, std::vector<NamedColumn>& out) {
  Source source;
  if (const Read opened = source.open(table, call); opened != Read::kDone) return opened;
  if (Status status = decode_table(source, options, out); !status.ok()) return call.refuse(std::move(status));
  return Read::kDone;
}

PyObject* type_of(PyObject* object, const char* operation) {
  py::ReadCall call;
  Source source;
  switch (source.open(object, call)) {
    case Read::kAbsent: return nullptr;
    case Read::kFailed: py::raise_refusal(operation, call.refusal); return nullptr;
    case Read::kDone: break;
  }
  const std::string text = type_name(source.schema.value);
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

}  // namespace dlbridge::arrow_c
