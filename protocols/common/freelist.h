// How objects die: kept for the next that are made, and in long chains.
#pragma once

#include "protocols/common/python.h"

namespace dlbridge::py {

// Dead objects. The GIL guards every list.
template <class Object, int kCapacity = 128>
class Freelist {
 public:
  bool empty() const noexcept { return count_ == 0; }
  Object* pop() noexcept { return count_ > 0 ? items_[--count_] : nullptr; }
  // False where the list is full: the caller frees the object.
  bool push(Object* object) noexcept {
    if (count_ == kCapacity) return false;
    items_[count_++] = object;
    return true;
  }

 private:
  Object* items_[kCapacity];
  int count_ = 0;
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
