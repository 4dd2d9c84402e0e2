// Methods of nd.ndarray that deserve C++: shapes, copies and casts.
#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "ndarray/core/copy.h"
#include "ndarray/core/elementwise.h"
#include "ndarray/core/flat.h"
#include "ndarray/core/promotion.h"
#include "ndarray/core/views.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/byte_order.h"
#include "protocols/common/threads.h"
#include "python/src/nd/host_only.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

constexpr char kReshape[] = "reshape($self, /, *shape, order='C', copy=None)\n--\n\n"
                            "The elements in another shape: a view where the strides allow it. One extent may be -1.";
PyObject* reshape(PyObject* self, const Call& a) {
  const Tensor& t = tensor_of(self);
  Shape shape = a.variadic_shape(0);
  const char order = a.order(1, 'C');
  const core::Order walk = order == 'A' ? core::order_of(t) : order == 'F' ? core::Order::kF : core::Order::kC;
  const std::optional<bool> copy = a.copy(2);
  return make_result(a.operation(), [&](Tensor& out) { return core::reshape(t, shape.get(), walk, copy, out); });
}

constexpr char kTranspose[] = "transpose($self, /, *axes)\n--\n\nA view with the axes permuted.";
PyObject* transpose(PyObject* self, const Call& a) {
  const Tensor& t = tensor_of(self);
  if (a[0] == nullptr && (a.all_count() == 0 || (a.all_count() == 1 && a.all()[0] == Py_None)))
    return make_result(a.operation(), [&](Tensor& out) { return core::reverse_axes(t, out); });
  const Shape axes = a.variadic_shape(0);
  return make_result(a.operation(), [&](Tensor& out) { return core::permute(t, axes.get(), out); });
}

core::CopyOrder copy_order(const Tensor& t, char order) noexcept {
  if (order == 'A') return core::order_of(t) == core::Order::kF ? core::CopyOrder::kF : core::CopyOrder::kC;
  return order == 'C' ? core::CopyOrder::kC : order == 'F' ? core::CopyOrder::kF : core::CopyOrder::kKeep;
}

bool lies_in_order(const Tensor& t, char order) noexcept {
  if (order == 'C') return core::is_c_contiguous(t);
  if (order == 'F') return core::is_f_contiguous(t);
  return true;
}

constexpr char kAstype[] = "astype($self, /, dtype, order='K', casting='unsafe', subok=True, copy=True)\n--\n\n"
                           "A copy cast to a dtype, as C casts.";
PyObject* astype(PyObject* self, const Call& a) {
  const std::optional<DType> dtype = a.dtype(0);
  const char order = a.order(1, 'K');
  const core::Casting casting = a.casting(2, core::Casting::kUnsafe);
  const bool copy = a.flag(4, true);
  const Tensor& t = tensor_of(self);
  const DType target = dtype.value_or(core::kDefaultFloat);
  if (!core::can_cast(core::dtype_of(t), target, casting))
    throw_issue(a.operation(), ErrorCode::kWrongType,
                "cannot cast " + std::string(t.dtype().name) + " to " + std::string(dlbridge::info(target).name) +
                    " (casting='" + std::string(core::name_of(casting)) + "')");
  if (!copy && target == core::dtype_of(t) && lies_in_order(t, order)) return Ref::borrow(self).release();
  return make_result(a.operation(), [&](Tensor& out) { return core::copy_as(t, target, copy_order(t, order), out); });
}

constexpr char kCopy[] = "copy($self, /, order='C')\n--\n\nA dense copy.";
PyObject* copy(PyObject* self, const Call& a) {
  const char order = a.order(0, 'C');
  const Tensor& t = tensor_of(self);
  return make_result(a.operation(),
                     [&](Tensor& out) { return core::copy_as(t, core::dtype_of(t), copy_order(t, order), out); });
}

constexpr char kByteswap[] = "byteswap($self, /, inplace=False)\n--\n\n"
                             "The elements with their bytes in the opposite order, each part of a complex number for "
                             "itself; the dtype stays.\n\n"
                             "inplace: the array itself is changed and returned. Source: NumPy.";
PyObject* byteswap(PyObject* self, const Call& a) {
  static PythonFunction swapped_by_views("dlbridge.nd._flat", "swapped_by_views");
  const Tensor& t = tensor_of(self);
  const auto swap = [&](Tensor& out) -> Status {
    DLBRIDGE_TRY(core::copy_as(t, core::dtype_of(t), core::CopyOrder::kC, out));
    swap_bytes(out);
    return {};
  };
  Ref swapped = is_host(t.dl.device) ? owned(make_result(a.operation(), swap)) : swapped_by_views(self);
  if (!a.flag(0, false)) return swapped.release();
  checked(PyObject_SetItem(self, Py_Ellipsis, swapped.get()));
  return Ref::borrow(self).release();
}

constexpr char kConj[] = "conj($self, /)\n--\n\nThe complex conjugate; the array itself where it is real.";
constexpr char kConjugate[] = "conjugate($self, /)\n--\n\nThe complex conjugate; the array itself where it is real.";
PyObject* conjugate(PyObject* self) {
  const Tensor& t = tensor_of(self);
  if (!core::is_complex(core::dtype_of(t))) return Ref::borrow(self).release();
  const core::Input x{&t, {}};
  return make_result("conjugate()",
                     [&](Tensor& out) { return core::elementwise(core::Op::kConjugate, {&x, 1}, {}, out); });
}

constexpr char kRound[] =
    "round($self, /, decimals=0, out=None)\n--\n\nRounded to this many decimals, halves to even; as nd.round().";
PyObject* round(PyObject* self, const Call& a) {
  static PythonFunction general("dlbridge.nd._elementwise", "round");
  const Tensor& t = tensor_of(self);
  const DType dtype = core::dtype_of(t);
  const bool is_whole = core::is_integer(dtype);
  if (a.given(0) != nullptr || a[1] != nullptr || !(is_whole || core::is_float(dtype))) {
    const Ref decimals = a.given(0) != nullptr ? Ref::borrow(a.given(0)) : owned(PyLong_FromLong(0));
    return general(self, decimals.get(), a[1] != nullptr ? a[1] : Py_None).release();
  }
  const core::Input x{&t, {}};
  return make_result(a.operation(), [&](Tensor& out) {
    return is_whole ? core::copy_as(t, dtype, core::CopyOrder::kKeep, out)
                    : core::elementwise(core::Op::kRint, {&x, 1}, {}, out);
  });
}

constexpr char kRavel[] = "ravel($self, /, order='C')\n--\n\nThe elements on one axis, a view if possible.";
constexpr char kFlatten[] = "flatten($self, /, order='C')\n--\n\nA copy of the elements on one axis.";
template <bool kCopies>
PyObject* flattened(PyObject* self, const Call& a) {
  const Tensor& t = tensor_of(self);
  const core::CopyOrder order = copy_order(t, a.order(0, 'C'));
  return make_result(a.operation(), [&](Tensor& out) { return core::flatten(t, order, kCopies, out); });
}

constexpr char kSqueeze[] =
    "squeeze($self, /, axis=None)\n--\n\nA view without axes of extent 1; the array itself where none is dropped.";
PyObject* squeeze(PyObject* self, const Call& a) {
  const Tensor& t = tensor_of(self);
  // An array of no dimensions has one axis here, where an integer names it (NumPy).
  const bool names_none = t.dl.ndim == 0 && a[0] != nullptr && PyIndex_Check(a[0]) != 0;
  const std::uint64_t axes = a.axes(0, names_none ? 1 : t.dl.ndim);
  const std::span extents(t.dl.shape, static_cast<std::size_t>(t.dl.ndim));
  if (a[0] == nullptr && std::ranges::find(extents, 1) == extents.end()) return Ref::borrow(self).release();
  return make_result(a.operation(), [&](Tensor& out) { return core::squeeze(t, axes, a[0] != nullptr, out); });
}

constexpr char kSwapaxes[] = "swapaxes($self, /, axis1, axis2)\n--\n\nA view with two axes exchanged.";
PyObject* swapaxes(PyObject* self, const Call& a) {
  const Tensor& t = tensor_of(self);
  const int first = a.axis(0, t.dl.ndim);
  const int second = a.axis(1, t.dl.ndim);
  std::int8_t axes[kMaxDims];
  for (int k = 0; k < t.dl.ndim; ++k) axes[k] = static_cast<std::int8_t>(k);
  std::swap(axes[first], axes[second]);
  return make_result(a.operation(), [&](Tensor& out) {
    return core::transpose_view(t, {axes, static_cast<std::size_t>(t.dl.ndim)}, out);
  });
}

constexpr char kDiagonal[] = "diagonal($self, /, offset=0, axis1=0, axis2=1)\n--\n\n"
                             "A view of the diagonals of the planes of two axes, the last axis of the result.";
PyObject* diagonal(PyObject* self, const Call& a) {
  const Tensor& t = tensor_of(self);
  if (t.dl.ndim < 2)
    throw_issue(a.operation(), ErrorCode::kMalformed,
                "the array has " + std::to_string(t.dl.ndim) + " dimension(s); a diagonal needs two");
  const std::int64_t offset = a.integer(0, 0);
  const int axis1 = a.given(1) == nullptr ? 0 : a.axis(1, t.dl.ndim);
  const int axis2 = a.given(2) == nullptr ? 1 : a.axis(2, t.dl.ndim);
  return make_result(a.operation(), [&](Tensor& out) { return core::diagonal(t, offset, axis1, axis2, out); });
}

constexpr char kView[] = "view($self, /, dtype=None)\n--\n\nThe same memory, as another dtype.";
PyObject* view(PyObject* self, const Call& a) {
  const std::optional<DType> dtype = a.dtype(0);
  const Tensor& t = tensor_of(self);
  return make_result(a.operation(),
                     [&](Tensor& out) { return core::view_as(t, dtype.value_or(core::dtype_of(t)), out); });
}

constexpr char kFill[] = "fill($self, value, /)\n--\n\nSets every element to a scalar.";
PyObject* fill(PyObject* self, PyObject* value) {
  const core::Input source = need_operand(value, "fill()");
  const CriticalSection of_target(self);
  throw_if_bad(core::assign(tensor_of(self), source, "fill()"), "fill()");
  Py_RETURN_NONE;
}

// The coordinates of a position in C order, as a key.
Ref key_of_position(const Tensor& t, PyObject* object) {
  const Py_ssize_t position = checked_number(PyNumber_AsSsize_t(object, PyExc_IndexError));
  std::int64_t rest = position < 0 ? position + t.size : position;
  if (rest < 0 || rest >= t.size)
    throw_issue("ndarray.item()", ErrorCode::kIndex,
                "index " + std::to_string(position) + " is out of bounds for size " + std::to_string(t.size));
  std::int64_t coordinates[kMaxDims];
  for (int k = t.dl.ndim - 1; k >= 0; --k) {
    coordinates[k] = rest % t.dl.shape[k];
    rest /= t.dl.shape[k];
  }
  return owned(make_dims(coordinates, t.dl.ndim, 1));
}

// The axes from `axis` on as nested lists of elements, T each.
template <class T>
Ref list_of(const Tensor& t, int axis, const char* at) {
  const std::int64_t stride = t.dl.strides[axis] * t.itemsize();
  const auto extent = static_cast<Py_ssize_t>(t.dl.shape[axis]);
  Ref list = owned(PyList_New(extent));
  const bool is_last = axis + 1 == t.dl.ndim;
  for (Py_ssize_t k = 0; k < extent; ++k, at += stride)
    PyList_SET_ITEM(
        list.get(), k,
        is_last ? owned(scalar_to_python(core::read_scalar<T>(at))).release() : list_of<T>(t, axis + 1, at).release());
  return list;
}

constexpr char kTolist[] = "tolist($self, /)\n--\n\nNested lists of Python scalars; a scalar for a 0-d array.";
PyObject* tolist(PyObject* self) {
  const Tensor* t = &tensor_of(self);
  Tensor host;
  if (!is_host(t->dl.device)) {
    throw_if_bad(core::copy_to(*t, {kDLCPU, 0}, host), "tolist()");
    t = &host;
  }
  const auto* const at = static_cast<const char*>(t->dl.data);
  const DType dtype = core::dtype_of(*t);
  if (t->dl.ndim == 0) return scalar_to_python(core::read_scalar(at, dtype));
  return core::visit_dtype<core::kAllSet>(
      dtype, [&]<class T>() { return list_of<T>(*t, 0, at).release(); }, static_cast<PyObject*>(nullptr));
}

constexpr char kTobytes[] =
    "tobytes($self, /, order='C')\n--\n\n"
    "The bytes of the elements, in Fortran's order for \"F\", and for \"A\" where the array lies "
    "in that order; else in C's. Waits for the device.";
PyObject* tobytes(PyObject* self, const Call& a) {
  const Tensor* t = &tensor_of(self);
  const bool is_f = copy_order(*t, a.order(0, 'C')) == core::CopyOrder::kF;
  const Ref bytes = owned(PyBytes_FromStringAndSize(nullptr, t->size * t->itemsize()));
  const auto size = static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.get()));
  char* const to = PyBytes_AS_STRING(bytes.get());
  if (size == 0) return Ref::borrow(bytes.get()).release();
  Tensor host, target;
  if (!is_host(t->dl.device)) {
    throw_if_bad(core::copy_to(*t, {kDLCPU, 0}, host), a.operation());
    t = &host;
  }
  if (lies_in_order(*t, is_f ? 'F' : 'C')) {
    std::memcpy(to, t->dl.data, size);
    return Ref::borrow(bytes.get()).release();
  }
  core::Storage* const storage = core::adopt_storage({kDLCPU, 0}, to, size, 0, {});
  if (storage == nullptr) throw std::bad_alloc();
  const Owner held(storage, core::release_storage_owner);
  const core::Dims shape{t->dl.shape, static_cast<std::size_t>(t->dl.ndim)};
  const core::Order order = is_f ? core::Order::kF : core::Order::kC;
  throw_if_bad(core::make_dense_at(*storage, 0, core::dtype_of(*t), shape, order, target), a.operation());
  throw_if_bad(core::copy_into(target, {t, {}}, core::Casting::kNo), a.operation());
  return Ref::borrow(bytes.get()).release();
}

// Where on the host an element lies that Python's ints name: as many as there are axes, or one position in C order.
const char* find_element(const Tensor& t, PyObject* const* args, Py_ssize_t nargs) {
  if (!is_host(t.dl.device) || (nargs != 1 && nargs != t.dl.ndim)) return nullptr;
  std::int64_t place = 0, offset = 0;
  if (nargs == t.dl.ndim) {
    for (int k = 0; k < t.dl.ndim; ++k) {
      if (!parse_place(args[k], t.dl.shape[k], false, place)) return nullptr;
      offset += place * t.dl.strides[k];
    }
  } else {
    if (!parse_place(args[0], t.size, false, place)) return nullptr;
    return static_cast<const char*>(t.dl.data) + core::flat_offset(t, place);
  }
  return static_cast<const char*>(t.dl.data) + offset * t.itemsize();
}

constexpr char kItem[] = "item($self, /, *index)\n--\n\nOne element as a Python scalar; waits for the device.";
PyObject* item(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  const Tensor& t = tensor_of(self);
  if (nargs == 0 && t.size == 1) return element_to_python(t);
  if (const char* at = find_element(t, args, nargs); at != nullptr)
    return scalar_to_python(core::read_scalar(at, core::dtype_of(t)));
  if (nargs == 0)
    throw_issue("ndarray.item()", ErrorCode::kMalformed,
                "the array has " + std::to_string(t.size) + " elements; give the index of one");
  Ref key;
  if (nargs == 1 && PyTuple_Check(args[0])) {
    key = Ref::borrow(args[0]);
  } else if (nargs == 1 && t.dl.ndim != 1) {
    key = key_of_position(t, args[0]);
  } else {
    key = owned(PyTuple_New(nargs));
    for (Py_ssize_t k = 0; k < nargs; ++k) PyTuple_SET_ITEM(key.get(), k, Ref::borrow(args[k]).release());
  }
  const Ref element = owned(PyObject_GetItem(self, key.get()));
  if (!is_array(element.get()) || tensor_of(element.get()).size != 1)
    throw_issue("ndarray.item()", ErrorCode::kMalformed, "the index does not name one element");
  return element_to_python(tensor_of(element.get()));
}

}  // namespace

std::vector<PyMethodDef> array_methods() {
  return {method<kReshape, reshape>(),
          method<kTranspose, transpose>(),
          method<kAstype, astype>(),
          method<kCopy, copy>(),
          method<kByteswap, byteswap>(),
          method<kConj, conjugate>(),
          method<kConjugate, conjugate>(),
          method<kRound, round>(),
          method<kRavel, flattened<false>>(),
          method<kFlatten, flattened<true>>(),
          method<kSqueeze, squeeze>(),
          method<kSwapaxes, swapaxes>(),
          method<kDiagonal, diagonal>(),
          method<kView, view>(),
          method<kFill, fill>(),
          method<kItem, item>(),
          method<kTobytes, tobytes>(),
          method<kTolist, tolist>()};
}

}  // namespace dlbridge::py::nd
