// Where convert() takes an array to: by name, by module, or by an array that is there already.
#include <string>

#include "frameworks/table.h"
#include "protocols/common/errors.h"
#include "protocols/common/threads.h"
#include "python/src/convert.h"

namespace dlbridge::py {

namespace {

using frameworks::Framework;

// The names and modules that were asked for last, each held so that its address stays its own.
struct KnownTarget {
  PyObject* to = nullptr;
  const Framework* framework = nullptr;
};
SharedWords<KnownTarget> known_targets[16];

SharedWords<KnownTarget>& known_target(PyObject* to) noexcept {
  return known_targets[(reinterpret_cast<std::uintptr_t>(to) >> 4) % std::size(known_targets)];
}

const Framework* find_by_name(std::string_view name) noexcept {
  return name == kOwnTarget.name ? &kOwnTarget : frameworks::find_framework(name);
}

// Empty with a Python error set.
[[gnu::noinline]] Target search_target(PyObject* to) {
  const bool is_module = PyModule_Check(to);
  if (!is_module && !PyUnicode_Check(to)) {
    raise("convert()", ErrorCode::kWrongType,
          "to is of type " + std::string(Py_TYPE(to)->tp_name) +
              "; it names a framework, as 'torch' or as the module. To follow an array: like=x");
    return {};
  }
  const Ref name = is_module ? Ref(PyModule_GetNameObject(to)) : Ref::borrow(to);
  Py_ssize_t length = 0;
  const char* text = name ? PyUnicode_AsUTF8AndSize(name.get(), &length) : nullptr;
  if (text == nullptr) return {};
  const Framework* found = find_by_name({text, static_cast<std::size_t>(length)});
  if (found == nullptr) {
    PyObject* const half = python_half();
    return {nullptr, Ref(half != nullptr ? PyObject_CallMethod(half, "find_importer", "O", name.get()) : nullptr)};
  }
  if (is_module || PyUnicode_CheckExact(to)) {
    Py_INCREF(to);
    KnownTarget old;
    if (!known_target(to).replace({to, found}, old)) old.to = to;
    drop(old.to);
  }
  return {found, {}};
}

}  // namespace

constinit const Framework kOwnTarget{.name = "dlbridge", .module = "dlbridge"};

PyObject* python_half() {
  static constinit Atomic<PyObject*> module;
  return find_once(module, [] { return PyImport_ImportModule("dlbridge._convert"); });
}

Target find_target(PyObject* to) {
  if (KnownTarget known; known_target(to).read(known) && known.to == to) [[likely]]
    return {known.framework, {}};
  return search_target(to);
}

const Framework* find_own_target(PyObject* object) noexcept {
  if (const Framework* framework = frameworks::framework_of(Py_TYPE(object)); framework != nullptr) [[likely]]
    return framework;
  return frameworks::facts_of(Py_TYPE(object)).kind == &frameworks::kOwnTensor ? &kOwnTarget : nullptr;
}

const Framework* own_target(PyObject* object, const char* operation, const char* remedy) {
  const Framework* framework = find_own_target(object);
  if (framework == nullptr)
    raise(operation, ErrorCode::kWrongType, type_name(object) + " is of no framework that dlbridge knows. " + remedy);
  return framework;
}

const Framework* find_target_framework(PyObject* to, bool& failed) {
  const Target target = find_target(to);
  failed = !target;
  return target.framework == &kOwnTarget ? nullptr : target.framework;
}

}  // namespace dlbridge::py
