// Functions of NVIDIA's libraries as Python objects: found when first called, given machine words, ordered on the
// stream of the arrays among them.
#include <dlfcn.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "dlbridge/cuda_device.h"
#include "ndarray/runtime/lifetime.h"
#include "python/src/nd/call.h"
#include "python/src/nd/kernels/launcher_object.h"
#include "python/src/nd/runtime/runtime.h"

namespace dlbridge::py::nd {

namespace {

constexpr std::size_t kMostWords = 24;
using Words = std::array<std::uint64_t, kMostWords>;

// The libraries take integers and pointers only. The calling conventions of Linux on x86-64 and AArch64 give each a
// register or 8 bytes of the stack, extended to them, and the caller clears up: words that a function does not take are
// in nobody's way.
template <std::size_t... kIndex>
int call_words(std::uintptr_t address, const Words& words, std::index_sequence<kIndex...>) noexcept {
  using Entry = int (*)(std::tuple_element_t<kIndex, Words>...);
  return reinterpret_cast<Entry>(address)(words[kIndex]...);
}

struct Target {
  std::uintptr_t address;
  std::string arguments;  // a letter each: see Function in dlbridge/nd/_nvidia.py
  std::string name;       // "cufftXtExec of libcufft"
};

struct FunctionState {
  Atomic<Target*> target;  // owned; null: not looked for yet

  FunctionState() = default;
  FunctionState(const FunctionState&) = delete;
  FunctionState& operator=(const FunctionState&) = delete;
  ~FunctionState() { delete target.load(); }
};
using FunctionObject = LauncherObject<FunctionState>;

const Target& target_of(PyObject* self) {
  Atomic<Target*>& slot = reinterpret_cast<FunctionObject*>(self)->state->target;
  if (const Target* found = slot; found != nullptr) [[likely]]
    return *found;
  const Ref loaded = owned(PyObject_CallMethod(self, "_load", nullptr));
  unsigned long long address = 0;
  const char *arguments = nullptr, *name = nullptr;
  checked(PyArg_ParseTuple(loaded.get(), "Kss", &address, &arguments, &name) != 0);
  if (std::char_traits<char>::length(arguments) > kMostWords)
    throw_error(PyExc_SystemError, "%s: more than %zu arguments", name, kMostWords);
  auto made = std::make_unique<Target>(Target{address, arguments, name});
  Target* nobodys = nullptr;
  if (slot.replace(nobodys, made.get())) made.release();  // else another thread was faster
  return *slot.load();
}

// What a call needs beside its words: arrays to be ordered, memory of the host to be held.
class WordArguments {
 public:
  explicit WordArguments(const Target& target) noexcept : target_(target) {}
  WordArguments(const WordArguments&) = delete;
  WordArguments& operator=(const WordArguments&) = delete;
  ~WordArguments() {
    for (std::size_t k = 0; k < held_; ++k) PyBuffer_Release(&buffers_[k]);
  }

  void read(PyObject* const* given, Py_ssize_t count) {
    if (count != static_cast<Py_ssize_t>(target_.arguments.size()))
      throw_error(PyExc_TypeError, "%s: takes %zu arguments, got %zd", target_.name.c_str(), target_.arguments.size(),
                  count);
    for (std::size_t k = 0; k < target_.arguments.size(); ++k)
      words_[k] = target_.arguments[k] == 'p' ? pointer(given[k]) : number(given[k], target_.arguments[k]);
  }

  // Uses of the arrays are ordered as KernelCall does it. The library may wait for the device: nothing is held
  // meanwhile, and who used an array in between is joined behind the call.
  int call() {
    if (arrays_ == 0) return call_unlocked();
    const DLDevice device = used_[0]->dl.device;
    const StreamHandle stream = core::work_stream(device);
    cuda::DeviceGuard guard;
    throw_if_bad(guard.enter(device.device_id), target_.name.c_str());
    core::UseGuard alone;
    alone.enter();
    acquire(stream);
    const int status = call_unlocked();
    acquire(stream);
    return status;
  }

 private:
  int call_unlocked() const noexcept {
    const core::Unlocked unlocked;
    return call_words(target_.address, words_, std::make_index_sequence<kMostWords>());
  }

  void acquire(StreamHandle stream) const {
    for (std::size_t k = 0; k < arrays_; ++k) throw_if_bad(core::acquire(*used_[k], stream), target_.name.c_str());
  }

  static std::uint64_t number(PyObject* object, char letter) {
    if (letter == 'z') return checked_number(PyLong_AsSize_t(object));
    const long long value = checked_number(PyLong_AsLongLong(object));
    const long long most = letter == 'i' ? 0x7fffffffLL : letter == 'b' ? 0x7fLL : 0x7fffffffffffffffLL;
    if (value > most || value < -most - 1)
      throw_error(PyExc_OverflowError, "%lld is out of range for an argument '%c'", value, letter);
    return static_cast<std::uint64_t>(value);
  }

  std::uint64_t pointer(PyObject* object) {
    if (object == Py_None) return 0;
    if (PyLong_Check(object)) return checked_number(PyLong_AsUnsignedLongLong(object));
    if (is_array(object)) {
      const Tensor& t = tensor_of(object);
      if (is_cuda(t.dl.device)) {
        if (arrays_ == used_.size()) throw_error(PyExc_SystemError, "%s: too many arrays", target_.name.c_str());
        used_[arrays_++] = &t;
      }
      return reinterpret_cast<std::uintptr_t>(t.dl.data) + t.dl.byte_offset;
    }
    if (held_ == buffers_.size()) throw_error(PyExc_SystemError, "%s: too many buffers", target_.name.c_str());
    checked(PyObject_GetBuffer(object, &buffers_[held_], PyBUF_WRITABLE));
    return reinterpret_cast<std::uintptr_t>(buffers_[held_++].buf);
  }

  const Target& target_;
  Words words_{};
  std::array<const Tensor*, 8> used_{};
  std::size_t arrays_ = 0;
  std::array<Py_buffer, 4> buffers_;
  std::size_t held_ = 0;
};

PyObject* function_vectorcall(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  const Target& target = target_of(self);
  if (kwnames != nullptr && PyTuple_GET_SIZE(kwnames) != 0)
    throw_error(PyExc_TypeError, "%s: takes no keyword arguments", target.name.c_str());
  WordArguments arguments(target);
  arguments.read(args, PyVectorcall_NARGS(nargsf));
  if (const int status = arguments.call(); status != 0)
    throw_error(PyExc_RuntimeError, "%s failed with status %d", target.name.c_str(), status);
  Py_RETURN_NONE;
}

constexpr char kOpenLibrary[] = "open_library($module, path, /)\n--\n\n"
                                "The handle of a shared library, opened for good; OSError says why it was not.";
PyObject* open_library(PyObject*, PyObject* path) {
  const char* text = PyUnicode_AsUTF8(path);
  checked(text != nullptr);
  void* handle = nullptr;
  std::string problem;
  {
    const GilRelease unlocked;
    handle = ::dlopen(text, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) problem = ::dlerror();
  }
  if (handle == nullptr) throw_error(PyExc_OSError, "%s", problem.c_str());
  return PyLong_FromVoidPtr(handle);
}

constexpr char kFindSymbol[] = "find_symbol($module, handle, name)\n--\n\nAn address in a library; 0: it has none.";
PyObject* find_symbol(PyObject*, const Call& a) {
  void* handle = PyLong_AsVoidPtr(a.given(0));
  checked(PyErr_Occurred() == nullptr);
  const char* name = PyUnicode_AsUTF8(a.given(1));
  checked(name != nullptr);
  return PyLong_FromVoidPtr(::dlsym(handle, name));
}

constexpr char kWorkStream[] = "work_stream($module, device)\n--\n\nThe handle of the stream that the thread works on.";
PyObject* work_stream(PyObject*, const Call& a) {
  return PyLong_FromUnsignedLongLong(core::work_stream({kDLCUDA, static_cast<int>(a.integer(0, 0))}));
}

}  // namespace

void init_library_functions(PyObject* module) {
  LauncherType<FunctionState, Guard<function_vectorcall>::call>::add_to(
      module, "dlbridge.nd._native.LibraryFunction",
      "A function of a library that returns a status: RuntimeError where that is not 0. The base of Function.");
  add_functions(module, {method<kOpenLibrary, open_library>(), method<kFindSymbol, find_symbol>(),
                         method<kWorkStream, work_stream>()});
}

}  // namespace dlbridge::py::nd
