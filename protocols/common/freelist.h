// Dead objects, kept for the next that are made. The GIL guards every list.
#pragma once

namespace dlbridge::py {

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

}  // namespace dlbridge::py
