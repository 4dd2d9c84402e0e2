#include "python/src/nd/runtime/deferred.h"

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "ndarray/runtime/lifetime.h"

namespace dlbridge::py::nd {

namespace {

// A call, or a reference to be dropped where there is no `done`.
using Deferred = FreeCall;

struct Queue {
  std::mutex mutex;
  std::vector<Deferred> items;
  std::atomic<bool> filled{false};
};
Queue& queue() {
  static auto* made = new Queue;  // releases come until the very end
  return *made;
}

void run(const Deferred& item) noexcept {
  ErrorGuard guard;
  if (item.done == nullptr) return drop(item.function);
  const Ref pointer(PyLong_FromSize_t(item.pointer));
  const Ref device(PyLong_FromLong(item.device));
  PyObject* arguments[] = {pointer.get(), device.get()};
  const Ref done(outlive_thread_exit(
      [&] { return pointer && device ? PyObject_Vectorcall(item.function, arguments, 2, nullptr) : nullptr; }));
  if (!done) PyErr_WriteUnraisable(item.function);
  item.done(item.context);
}

int run_pending(void*) noexcept {
  run_deferred();
  return 0;
}

void submit(const Deferred& item) noexcept {
  if (!interpreter_alive() || ::dlbridge::nd::life() == ::dlbridge::nd::Life::kForked) return;
  if (PyGILState_Check() != 0) [[likely]] {
    if (queue().filled.load(std::memory_order_relaxed)) run_deferred();
    return run(item);
  }
  try {
    const std::lock_guard lock(queue().mutex);
    queue().items.push_back(item);
    queue().filled.store(true, std::memory_order_relaxed);
  } catch (...) {
    return;  // no memory to remember it: it stays alive
  }
  // The main thread does it soon; where its list is full, the next release that has the GIL does.
  static_cast<void>(Py_AddPendingCall(run_pending, nullptr));
}

}  // namespace

void drop_reference(PyObject* object) noexcept {
  if (object != nullptr) submit({object, 0, 0, nullptr, nullptr});
}

void call_to_free(const FreeCall& call) noexcept { submit(call); }

void run_deferred() noexcept {
  std::vector<Deferred> items;
  {
    const std::lock_guard lock(queue().mutex);
    items.swap(queue().items);
    queue().filled.store(false, std::memory_order_relaxed);
  }
  for (const Deferred& item : items) run(item);
}

}  // namespace dlbridge::py::nd
