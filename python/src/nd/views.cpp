// Views and copies between arrays, whether two share memory, and what an array's shape says.
#include "ndarray/core/views.h"

#include <vector>

#include "ndarray/core/copy.h"
#include "ndarray/core/fill.h"
#include "ndarray/core/join.h"
#include "ndarray/core/overlap.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/threads.h"
#include "python/src/nd/host_only.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

constexpr char kAsStrided[] = "as_strided($module, x, shape, strides, offset=0, dtype=None)\n--\n\n"
                              "A view with strides and an offset in bytes.";
PyObject* as_strided(PyObject*, const Call& a) {
  const Tensor& x = a.array(0);
  const Shape shape = a.shape(1);
  const Shape strides = a.shape(2);
  const std::optional<DType> dtype = a.dtype(4);
  const Py_ssize_t offset = a[3] == nullptr ? 0 : checked_number(PyNumber_AsSsize_t(a[3], PyExc_OverflowError));
  return make_result(a.operation(), [&](Tensor& out) {
    return core::strided_view(x, offset, dtype.value_or(core::dtype_of(x)), shape.get(), strides.get(), out);
  });
}

constexpr char kRealName[] = "ndarray.real", kImagName[] = "ndarray.imag";

PyObject* get_real(PyObject* self) {
  const Tensor& x = tensor_of(self);
  if (!core::is_complex(core::dtype_of(x))) return Ref::borrow(self).release();
  return make_result(kRealName, [&](Tensor& out) { return core::part_view(x, false, out); });
}

// Zeros of an array that is not complex are dense and read-only: not every consumer takes strides of 0.
PyObject* get_imag(PyObject* self) {
  const Tensor& x = tensor_of(self);
  return make_result(kImagName, [&](Tensor& out) -> Status {
    if (core::is_complex(core::dtype_of(x))) return core::part_view(x, true, out);
    DLBRIDGE_TRY(core::make_array(out, core::dtype_of(x), core::shape_of(x), x.dl.device));
    DLBRIDGE_TRY(core::clear(out));
    out.flags |= kFlagReadOnly;
    return {};
  });
}

int set_real(PyObject* self, PyObject* value) {
  return PyObject_SetItem(owned(get_real(self)).get(), Py_Ellipsis, value);
}
int set_imag(PyObject* self, PyObject* value) {
  const DType dtype = core::dtype_of(tensor_of(self));
  if (!core::is_complex(dtype))
    throw_error(PyExc_TypeError, "%s: %s has no imaginary part to write to", kImagName, info(dtype).name.data());
  return PyObject_SetItem(owned(get_imag(self)).get(), Py_Ellipsis, value);
}

constexpr char kBroadcastTo[] = "broadcast_to($module, x, shape)\n--\n\nA read-only view.";
PyObject* broadcast_to(PyObject*, const Call& a) {
  const Tensor& x = a.array(0);
  const Shape shape = a.shape(1);
  return make_result(a.operation(), [&](Tensor& out) {
    Status status = core::broadcast_view(x, shape.get(), out);
    out.flags |= kFlagReadOnly;  // also where nothing is repeated: not for some shapes only
    return status;
  });
}

constexpr char kCopyto[] = "copyto($module, dst, src, casting='same_kind')\n--\n\ndst[...] = src, across devices, too.";
PyObject* copyto(PyObject*, const Call& a) {
  const Tensor& target = a.array(0);
  const core::Input source = a.operand(1);
  const core::Casting casting = a.casting(2, core::Casting::kSameKind);
  const CriticalSection of_target(a.given(0));
  throw_if_bad(core::copy_into(target, source, casting), a.operation());
  Py_RETURN_NONE;
}

// The arrays of a sequence; what is none becomes one beside the others. They are flattened where `flat` says so.
struct Parts {
  Ref sequence;
  std::vector<Tensor> flattened;
  std::vector<const Tensor*> tensors;

  Parts(PyObject* object, bool flat, const char* operation) {
    sequence = Ref(PyTuple_Check(object) || PyList_Check(object) ? fixed_items(object) : Ref(PySequence_Tuple(object)));
    checked(sequence.get());
    bool complete = true;
    for (Py_ssize_t k = 0; k < size(); ++k) complete = complete && is_array(item(k));
    if (!complete) {
      const Ref list = owned(call_python("dlbridge.nd._arguments", "as_arrays", sequence.release()));
      sequence = owned(PySequence_Tuple(list.get()));
    }
    if (size() == 0) throw_issue(operation, ErrorCode::kMalformed, "no array; give at least one");
    flattened.resize(flat ? static_cast<std::size_t>(size()) : 0);
    for (Py_ssize_t k = 0; k < size(); ++k) tensors.push_back(&need_array(item(k), operation));
    for (std::size_t k = 0; k < flattened.size(); ++k) {
      throw_if_bad(core::in_steps(*tensors[k], flattened[k]), operation);
      tensors[k] = &flattened[k];
    }
  }
  Py_ssize_t size() const { return PyTuple_GET_SIZE(sequence.get()); }
  PyObject* item(Py_ssize_t k) const { return PyTuple_GET_ITEM(sequence.get(), k); }
};

constexpr char kConcatenate[] =
    "concatenate($module, arrays, axis=0, out=None, dtype=None, casting='same_kind')\n--\n\n"
    "The arrays one after the other along an axis; None: flattened.";
constexpr char kStack[] = "stack($module, arrays, axis=0, out=None, dtype=None, casting='same_kind')\n--\n\n"
                          "The arrays along a new axis.";
template <auto kJoin, int kNewAxes>
PyObject* join(PyObject*, const Call& a) {
  const bool flat = kNewAxes == 0 && a.given(1) == Py_None;
  const Parts parts(a.given(0), flat, a.operation());
  const int ndim = parts.tensors[0]->dl.ndim + kNewAxes;
  if (ndim == 0)
    throw_issue(a.operation(), ErrorCode::kMalformed,
                "zero-dimensional arrays have no axis to join along. Use stack()");
  const int axis = flat || a.given(1) == nullptr ? 0 : a.axis(1, ndim);
  const core::JoinOptions options{a.optional_array(2), a.dtype(3), a.casting(4, core::Casting::kSameKind)};
  const auto run = [&](Tensor& out) { return kJoin(parts.tensors, axis, options, out); };
  if (options.out == nullptr) return make_result(a.operation(), run);
  Tensor unused;
  throw_if_bad(run(unused), a.operation());
  return Ref::borrow(a[2]).release();
}

// An array and one of its axes; of its elements on one axis for None.
const Tensor* axis_of(const Call& a, std::size_t argument, const Tensor& x, Tensor& flat, int& axis) {
  axis = a[argument] == nullptr ? 0 : a.axis(argument, x.dl.ndim);
  if (a[argument] != nullptr) return &x;
  throw_if_bad(core::flatten(x, core::CopyOrder::kC, false, flat), a.operation());
  return &flat;
}

constexpr char kRepeatName[] = "repeat()";
constexpr char kRepeatBy[] = "repeat_by($module, x, counts, axis=None)\n--\n\n"
                             "Each part along an axis (None: each element of the flattened array) as often as an int "
                             "says; on the host\npart i counts[i] times, an int64 vector that is as long as the axis. "
                             "None for others.";
PyObject* repeat_by(PyObject*, const Call& a) {
  Tensor flat;
  int axis = 0;
  if (PyLong_CheckExact(a.given(1))) {
    const std::int64_t times = a.integer(1, 1);
    if (times < 0) Py_RETURN_NONE;
    const Tensor* x = axis_of(a, 2, a.array(0), flat, axis);
    return make_result(a.operation(), [&](Tensor& out) { return core::repeat(*x, axis, times, out); });
  }
  const Tensor *given = host_array(a.given(0)), *counts = host_array(a.given(1));
  if (given == nullptr || counts == nullptr || counts->dl.ndim != 1 || core::dtype_of(*counts) != DType::kInt64)
    Py_RETURN_NONE;
  const Tensor* x = axis_of(a, 2, *given, flat, axis);
  if (counts->size != x->dl.shape[axis]) Py_RETURN_NONE;
  return make_result(a.operation(), [&](Tensor& out) { return core::repeat_by(*x, axis, *counts, out); });
}

constexpr char kSharesMemory[] =
    "shares_memory($module, a, b, max_work=0)\n--\n\n"
    "Whether two arrays have a byte in common; None where max_work trials cannot tell. 0: whether the ranges of their "
    "addresses overlap.";
PyObject* shares_memory(PyObject*, const Call& a) {
  const Tensor& x = a.array(0);
  const Tensor& y = a.array(1);
  const std::int64_t most_work = a.integer(2, 0);
  if (!same_device(x.dl.device, y.dl.device)) Py_RETURN_FALSE;
  switch (core::find_overlap(x, y, most_work)) {
    case core::Overlap::kNone: Py_RETURN_FALSE;
    case core::Overlap::kSome: Py_RETURN_TRUE;
    default: break;
  }
  if (most_work == 0) Py_RETURN_TRUE;
  Py_RETURN_NONE;
}

constexpr char kNdim[] =
    "ndim($module, a)\n--\n\n"
    "The number of dimensions of `a`: of an array of any library its own, 0 of anything that is none.";
PyObject* ndim(PyObject*, const Call& a) {
  static PythonFunction of_others("dlbridge.nd._manipulation", "_ndim");
  PyObject* x = a.given(0);
  return is_array(x) ? PyLong_FromLong(tensor_of(x).dl.ndim) : of_others(x).release();
}

constexpr char kSize[] = "size($module, a, axis=None)\n--\n\n"
                         "The number of elements of `a`, or its extent along `axis`.";
PyObject* size(PyObject*, const Call& a) {
  static PythonFunction of_others("dlbridge.nd._manipulation", "_size");
  PyObject* x = a.given(0);
  if (a[1] == nullptr && is_array(x)) return PyLong_FromLongLong(tensor_of(x).size);
  return of_others(x, a[1] == nullptr ? Py_None : a[1]).release();
}

}  // namespace

PyObject* stack_arrays(PyObject* const* arrays, Py_ssize_t count) {
  std::vector<const Tensor*> parts;
  for (Py_ssize_t k = 0; k < count; ++k) parts.push_back(&tensor_of(arrays[k]));
  return make_result("stack()", [&](Tensor& out) { return core::stack(parts, 0, {}, out); });
}

std::vector<PyGetSetDef> part_attributes() {
  return {attribute<get_real, set_real>("real", "The real part: a view of a complex array, any other itself."),
          attribute<get_imag, set_imag>("imag",
                                        "The imaginary part: a view of a complex array, read-only zeros for others.")};
}

void init_views(PyObject* module) {
  add_functions(module, {method<kAsStrided, as_strided>(), method<kBroadcastTo, broadcast_to>(),
                         method<kCopyto, copyto>(), method<kSharesMemory, shares_memory>(),
                         method<kConcatenate, join<core::concatenate, 0>>(), method<kStack, join<core::stack, 1>>(),
                         method<kRepeatBy, repeat_by, kRepeatName>(), method<kNdim, ndim>(), method<kSize, size>()});
}

}  // namespace dlbridge::py::nd
