// How objects die: kept for the next that are made, and in long chains.
#pragma once

#include "protocols/common/threads.h"

namespace dlbridge::py {

// Dead objects. The GIL guards the one list of a kind; without it each thread has a list of its own (declare it
// DLBRIDGE_PER_THREAD), which is emptied by `free` when its thread state goes. A thread that only releases has none.
template <class Object, void (*free)(Object*) noexcept, int kCapacity = 128>
class Freelist {
 public:
  bool empty() const noexcept { return count_ == 0; }
  Object* pop() noexcept {
    if (count_ > 0) [[likely]]
      return items_[--count_];
    if (kFreeThreaded && limit_ == 0) [[unlikely]]
      open();
    return nullptr;
  }
  // False where the list is full: the caller frees the object.
  bool push(Object* object) noexcept {
    if (count_ == limit_) return false;
    items_[count_++] = object;
    return true;
  }

 private:
  // The thread state's dictionary goes while the thread still has its state, and takes the capsule with it.
  [[gnu::cold, gnu::noinline]] void open() noexcept {
    PyObject* const of_thread = PyThreadState_GetDict();
    const ErrorGuard guard;
    const Ref key(PyLong_FromVoidPtr(this));
    const Ref closer(of_thread != nullptr ? PyCapsule_New(this, nullptr, close) : nullptr);
    if (key && closer && PyDict_SetItem(of_thread, key.get(), closer.get()) == 0) limit_ = kCapacity;
    PyErr_Clear();
  }
  static void close(PyObject* capsule) noexcept {
    if (!interpreter_alive()) return;  // perhaps from another thread than the list's; the process frees the rest
    auto* list = static_cast<Freelist*>(PyCapsule_GetPointer(capsule, nullptr));
    list->limit_ = 0;
    while (list->count_ > 0) free(list->items_[--list->count_]);
  }

  Object* items_[kCapacity] = {};
  int count_ = 0;
  int limit_ = kFreeThreaded ? 0 : kCapacity;  // 0: not open
};

// Arrays that were exchanged to and fro form chains (tensor, array, tensor, ...) of any length: CPython's trashcan
// takes them down without recursion. `dealloc` is the type's own slot, by which the trashcan knows its objects.
template <void (*dealloc)(PyObject*) noexcept, void (*free)(PyObject*)>
[[gnu::noinline]] void free_chain(PyObject* object) {
  PyObject_GC_UnTrack(object);
  Py_TRASHCAN_BEGIN(object, dealloc) free(object);
  Py_TRASHCAN_END
}

}  // namespace dlbridge::py
