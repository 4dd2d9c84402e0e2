// What dlbridge/_adapt.py asks of the arguments of a call, and what it does to them.
#include "python/src/convert.h"

#include "frameworks/table.h"
#include "protocols/common/boundary.h"
#include "python/src/kit/tables.h"

namespace dlbridge::py {

namespace {

using frameworks::Framework;

const Framework& named_target(PyObject* to) {
  const Target target = find_target(to);
  checked(static_cast<bool>(target));
  if (target.framework == nullptr)
    throw_error(PyExc_ValueError, "adapt(): %R is none of the frameworks that dlbridge knows by their arrays", to);
  return *target.framework;
}

constexpr char kTargetName[] = "target_name($module, to, /)\n--\n\n"
                               "The table's name of a framework. ValueError where it is not in the table.";
PyObject* target_name(PyObject*, PyObject* to) { return PyUnicode_FromString(named_target(to).name); }

constexpr char kFrameworkName[] = "framework_name($module, obj, /)\n--\n\n"
                                  "The table's name of the framework that the object's type belongs to, or None.";
PyObject* framework_name(PyObject*, PyObject* object) {
  const Framework* framework = find_own_target(object);
  if (framework == nullptr) Py_RETURN_NONE;
  return PyUnicode_FromString(framework->name);
}

class Matcher final : public ArrayTaker {
 public:
  explicit Matcher(const Framework& framework) noexcept : framework_(framework) {}
  bool take(PyObject* array) override { return find_own_target(array) == &framework_; }

 private:
  const Framework& framework_;
};

class Collector final : public ArrayTaker {
 public:
  bool take(PyObject* array) override {
    const Ref key = keyword != nullptr ? Ref::borrow(keyword) : owned(PyLong_FromSsize_t(position));
    const Ref pair = owned(PyTuple_Pack(2, key.get(), array));
    checked(PyList_Append(found_.get(), pair.get()));
    return true;
  }
  PyObject* release() noexcept { return found_.release(); }

 private:
  Ref found_ = owned(PyList_New(0));
};

constexpr char kSurvey[] =
    "survey($module, to, args, kwargs, first, /)\n--\n\n"
    "The arrays in the arguments of a call from position `first` on, as (position or keyword, array). None where all\n"
    "belong to the framework `to`; to=None: a list in any case.";
PyObject* survey(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs != 4 || !PyTuple_Check(args[1]) || !PyDict_Check(args[2]))
    throw_error(PyExc_TypeError, "survey() takes to, a tuple, a dict and a number");
  const Py_ssize_t first = PyLong_AsSsize_t(args[3]);
  checked(first != -1 || PyErr_Occurred() == nullptr);
  if (args[0] != Py_None) {
    Matcher matcher(named_target(args[0]));
    if (walk_arguments(args[1], first, args[2], matcher)) Py_RETURN_NONE;
  }
  Collector collector;
  walk_arguments(args[1], first, args[2], collector);
  return collector.release();
}

constexpr char kConvertPart[] =
    "convert_part($module, tree, to, like, device, operation, root, /)\n--\n\n"
    "convert() of what may be no array and no container, too. operation, root: how messages begin.";
PyObject* convert_part(PyObject*, const Call& call) {
  Conversion wanted;
  wanted.read.operation = "convert()";
  checked(parse_read_options(nullptr, call.given(3), nullptr, wanted.read));
  if (call[1] != nullptr) {
    wanted.target = find_target(call[1]);
    checked(static_cast<bool>(wanted.target));
  }
  wanted.is_plain = wanted.target && !wanted.read.device;
  if (call[2] != nullptr) follow_array(call[2], false, wanted);
  const char* operation = PyUnicode_AsUTF8(call.given(4));
  const char* root = operation != nullptr ? PyUnicode_AsUTF8(call.given(5)) : nullptr;
  checked(root != nullptr);
  return convert_tree(call.given(0), wanted, operation, root);
}

}  // namespace

void init_adapt(PyObject* module) {
  add_functions(module, {method<kTargetName, target_name>(), method<kFrameworkName, framework_name>(),
                         method<kSurvey, survey>(), method<kConvertPart, convert_part>()});
}

}  // namespace dlbridge::py
