#include <algorithm>
#include <string>

#include "dlbridge/layout.h"
#include "protocols/buffer/buffer.h"
#include "protocols/common/boundary.h"

namespace dlbridge::buffer {

namespace {

constexpr char kOperation[] = "Tensor (buffer protocol)";

bool has(int flags, int wanted) noexcept { return (flags & wanted) == wanted; }

// What the request asks for and the tensor cannot give (PEP 3118).
Status check_request(const Tensor& tensor, int flags) {
  if (tensor.dtype().pep3118.empty())
    return refused("dtype " + std::string(tensor.dtype().name) +
                   " has no PEP 3118 code, so a buffer cannot carry it. Use DLPack: the tensor has __dlpack__");
  if (has(flags, PyBUF_WRITABLE) && tensor.readonly())
    return refused("the tensor is read-only and a writable buffer was asked for. Take a read-only view, or "
                   "asdlpack(x, copy=True)");
  const bool c_contiguous = is_c_contiguous(tensor.dl);
  if (has(flags, PyBUF_C_CONTIGUOUS) && !c_contiguous)
    return refused("a C-contiguous buffer was asked for, and the tensor is not. Use asdlpack(x, copy=True)");
  if (has(flags, PyBUF_F_CONTIGUOUS) && !is_f_contiguous(tensor.dl))
    return refused("a Fortran-contiguous buffer was asked for, and the tensor is not. Copy it first");
  if (has(flags, PyBUF_ANY_CONTIGUOUS) && !c_contiguous && !is_f_contiguous(tensor.dl))
    return refused("a contiguous buffer was asked for, and the tensor is not. Use asdlpack(x, copy=True)");
  if (!has(flags, PyBUF_STRIDES) && !c_contiguous)
    return refused("a buffer without strides was asked for, and the tensor is not C-contiguous. Ask for strides, or "
                   "use asdlpack(x, copy=True)");
  return {};
}

// Byte strides: the descriptor's own where an item is one byte, else an array that release_buffer() frees. Those of an
// empty tensor mean nothing, but consumers compare them: memoryview.c_contiguous is False unless they are dense.
Py_ssize_t* byte_strides(const Tensor& tensor, void*& allocation) {
  auto* own = reinterpret_cast<Py_ssize_t*>(tensor.dl.strides);
  if (tensor.itemsize() == 1 && tensor.size != 0) return own;
  auto* strides = static_cast<Py_ssize_t*>(PyMem_Malloc(static_cast<std::size_t>(tensor.dl.ndim) * sizeof(Py_ssize_t)));
  if (strides == nullptr) return nullptr;
  std::int64_t dense = tensor.itemsize();
  for (int i = tensor.dl.ndim - 1; i >= 0; --i) {
    strides[i] = tensor.size != 0 ? tensor.dl.strides[i] * tensor.itemsize() : dense;
    if (tensor.size == 0) dense *= std::max<std::int64_t>(tensor.dl.shape[i], 1);
  }
  allocation = strides;
  return strides;
}

}  // namespace

int get_buffer(PyObject* object, Py_buffer* view, int flags) noexcept {
  return py::guarded([&] {
    const Tensor& tensor = py::as_tensor(object)->tensor;
    view->obj = nullptr;  // PEP 3118: on failure obj is NULL
    py::throw_if_bad(check_request(tensor, flags), kOperation);
    static char nowhere[16];  // an empty buffer still has an address
    view->buf = tensor.dl.data != nullptr ? tensor.dl.data : nowhere;
    view->len = tensor.nbytes();
    view->readonly = tensor.readonly() ? 1 : 0;
    view->itemsize = tensor.itemsize();
    view->format = has(flags, PyBUF_FORMAT) ? const_cast<char*>(tensor.dtype().pep3118.data()) : nullptr;
    view->ndim = has(flags, PyBUF_ND) ? tensor.dl.ndim : 1;
    const bool has_axes = tensor.dl.ndim > 0;  // PEP 3118: with ndim 0, shape and strides are NULL
    view->shape = has_axes && has(flags, PyBUF_ND) ? reinterpret_cast<Py_ssize_t*>(tensor.dl.shape) : nullptr;
    view->suboffsets = nullptr;
    view->internal = nullptr;
    view->strides = nullptr;
    if (has_axes && has(flags, PyBUF_STRIDES)) {
      view->strides = byte_strides(tensor, view->internal);
      if (view->strides == nullptr) throw std::bad_alloc();
    }
    Py_INCREF(object);
    view->obj = object;
    return 0;
  });
}

void release_buffer(PyObject*, Py_buffer* view) noexcept { PyMem_Free(view->internal); }

}  // namespace dlbridge::buffer
