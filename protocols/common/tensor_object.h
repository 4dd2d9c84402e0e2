// The Python object around one descriptor: what every reader fills and every exporter takes.
#pragma once

#include <new>

#include "dlbridge/tensor.h"
#include "protocols/common/freelist.h"
#include "protocols/common/python.h"

namespace dlbridge::py {

enum class Protocol : std::uint8_t { kNone, kDLPack, kArrayInterface, kCudaArrayInterface, kBuffer, kArrow };
inline constexpr const char* kProtocolNames[] = {"none",   "dlpack", "array_interface", "cuda_array_interface",
                                                 "buffer", "arrow"};

struct StreamNotes;

// Two things may keep the memory alive: tensor.owner (a Py_buffer, a managed tensor, memory of our own) and
// `source`, the object that was passed in. Both are released once, under the GIL, when the object dies.
struct TensorHead {                // standard layout, for offsetof
  PyObject_HEAD PyObject* source;  // t.owner; null for a copy that dlbridge made or a bare capsule
  PyObject* weakrefs;
};
struct TensorObject : TensorHead {
  Protocol protocol;
  bool tracked;  // the collector sees it: only where a cycle through `source` could be collected at all
  Tensor tensor;
  Py_buffer view;      // storage for the buffer reader's hold; valid while tensor.owner releases it
  StreamNotes* notes;  // what only some device tensors know of streams (streams.h); mostly null
};

struct TensorTypes {
  PyTypeObject* base;  // dlbridge.Tensor: devices that only DLPack reaches
  PyTypeObject* host;  // dlbridge.HostTensor: also buffer, __array_interface__, __array_struct__
  PyTypeObject* cuda;  // dlbridge.CudaTensor: also __cuda_array_interface__
};
extern TensorTypes tensor_types;

// Live objects, for leak tests.
struct LiveCounts {
  SharedCount tensors;
  SharedCount exports;
};
extern LiveCounts live;

// An object that holds no reference any more but the one to its type.
inline void free_memory(TensorObject* self) noexcept {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}
using TensorFreelist = Freelist<TensorObject, free_memory>;

// Of the three exact types: the small case allocates nothing.
extern DLBRIDGE_PER_THREAD TensorFreelist tensor_freelist;

inline bool is_tensor(PyObject* object) noexcept {
  PyTypeObject* type = Py_TYPE(object);
  return type == tensor_types.host || type == tensor_types.cuda || PyType_IsSubtype(type, tensor_types.base);
}
inline TensorObject* as_tensor(PyObject* object) noexcept { return reinterpret_cast<TensorObject*>(object); }
inline PyObject* as_object(TensorObject* tensor) noexcept { return reinterpret_cast<PyObject*>(tensor); }

// Makes an object from the freelist live again; it kept its type, HostTensor, and the reference to that.
inline void revive(TensorObject* self) noexcept {
#if defined(Py_REF_DEBUG) || defined(Py_TRACE_REFS) || defined(Py_GIL_DISABLED)
  _Py_NewReference(as_object(self));
#else
  Py_SET_REFCNT(as_object(self), 1);  // what _Py_NewReference does, less a call and a look at tracemalloc
#endif
}

inline void begin_contents(TensorObject* self, Protocol protocol) noexcept {
  self->tracked = false;
  new (&self->tensor) Tensor();
  self->notes = nullptr;
  self->source = nullptr;
  self->weakrefs = nullptr;
  self->protocol = protocol;
  live.tensors.add(1);
}

// Orders the release of the memory behind the streams that are noted, and frees the notes. Before anything is released.
void settle_notes(TensorObject* self) noexcept;  // streams.cpp

// Foreign code runs (owners, deleters, allocators in Python): it must not see or lose a pending exception.
inline void drop_contents(TensorObject* self) noexcept {
  ErrorGuard guard;
  if (self->notes != nullptr) [[unlikely]]
    settle_notes(self);
  self->tensor.~Tensor();
  drop(std::exchange(self->source, nullptr));
  live.tensors.add(-1);
}

// The end of a dead object of a Tensor type. One of an `exact` type goes to `recycle`.
template <void (*recycle)(TensorObject*) noexcept>
void free_object(PyObject* object, bool exact) {
  TensorObject* self = as_tensor(object);
  PyTypeObject* type = Py_TYPE(object);
  if (self->tracked || !exact) PyObject_GC_UnTrack(object);
  if (self->weakrefs != nullptr) [[unlikely]]
    PyObject_ClearWeakRefs(object);
  drop_contents(self);
  if (exact) [[likely]]
    return recycle(self);
  type->tp_free(object);
  Py_DECREF(type);
}

// A new object with an empty descriptor, not yet tracked by the collector. Null with MemoryError set.
inline TensorObject* begin_tensor(Protocol protocol) noexcept {
  TensorObject* self = tensor_freelist.pop();
  if (self != nullptr) [[likely]] {
    revive(self);
  } else {
    self = PyObject_GC_New(TensorObject, tensor_types.host);
    if (self == nullptr) return nullptr;
  }
  begin_contents(self, protocol);
  return self;
}

inline void change_type(TensorObject* self, PyTypeObject* type) noexcept {
  PyTypeObject* old = Py_TYPE(as_object(self));
  Py_INCREF(type);
  Py_SET_TYPE(as_object(self), type);
  Py_DECREF(old);
}

// Keeps a dead object of one of the three types, or frees it. It holds no reference any more but the one to its type.
inline void recycle_tensor(TensorObject* self) noexcept {
  if (Py_TYPE(as_object(self)) != tensor_types.host) [[unlikely]]
    change_type(self, tensor_types.host);
  if (!tensor_freelist.push(self)) [[unlikely]]
    free_memory(self);
}

// The last step of every reader: picks the type that the device allows, and shows the object to the collector where
// its source is an object that the collector follows (an ndarray, bytes or a bytearray is not).
inline TensorObject* commit_tensor(TensorObject* self) noexcept {
  const DLDevice device = self->tensor.dl.device;
  if (!is_host(device)) [[unlikely]]
    change_type(self, is_cuda(device) ? tensor_types.cuda : tensor_types.base);
  if (self->source != nullptr && PyType_IS_GC(Py_TYPE(self->source))) {
    self->tracked = true;
    PyObject_GC_Track(self);
  }
  return self;
}

// Drops an object that commit_tensor() has not seen.
inline void abandon_tensor(TensorObject* self) noexcept {
  drop_contents(self);
  recycle_tensor(self);
}

// A tensor while a reader fills it: dropped again unless it is committed, also when std::bad_alloc passes.
class PendingTensor {
 public:
  explicit PendingTensor(Protocol protocol) noexcept : self_(begin_tensor(protocol)) {}
  explicit PendingTensor(TensorObject* taken_over) noexcept : self_(taken_over) {}
  PendingTensor(const PendingTensor&) = delete;
  PendingTensor& operator=(const PendingTensor&) = delete;
  ~PendingTensor() { abandon(); }

  TensorObject* get() const noexcept { return self_; }  // null: MemoryError is set
  TensorObject* release() noexcept { return std::exchange(self_, nullptr); }
  TensorObject* commit() noexcept { return commit_tensor(release()); }
  void abandon() noexcept {
    if (self_ != nullptr) abandon_tensor(release());
  }

 private:
  TensorObject* self_;
};

// Wraps a descriptor (moved in) in a new object. Null with a Python error set.
inline TensorObject* wrap_tensor(Tensor&& tensor, Protocol protocol, PyObject* source) noexcept {
  TensorObject* self = begin_tensor(protocol);
  if (self == nullptr) return nullptr;
  self->tensor = std::move(tensor);
  Py_XINCREF(source);
  self->source = source;
  return commit_tensor(self);
}

}  // namespace dlbridge::py
