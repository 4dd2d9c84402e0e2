// Containers of arrays: taken apart, each array given to convert(), and put together again. Dicts, lists, tuples and
// named tuples here; rarer ones by dlbridge/_tree.py.
#include <array>
#include <string>
#include <vector>

#include "frameworks/table.h"
#include "frameworks/type_cache.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/boundary.h"
#include "python/src/convert.h"
#include "python/src/kit/tables.h"

namespace dlbridge::py {

namespace {

// Deeper ones are cycles or mistakes; each level takes some hundred bytes of the C stack.
constexpr int kMaxDepth = 256;

// --- kinds of nodes --------------------------------------------------------------------------------------------------

enum class Node : std::uint8_t {
  kValue,   // stays as it is
  kObject,  // the same, unless optree knows the type
  kArray,
  kDict,
  kList,
  kTuple,
  kNamedTuple,  // or whatever else has _fields and _make()
  kOther,       // taken apart by dlbridge/_tree.py
};

constinit InternedName make_name("_make"), fields_name("_fields"), dataclass_name("__dataclass_fields__");

Node classify(PyTypeObject* type) {
  if (!frameworks::facts_of(type).kind->only_alone) return Node::kArray;
  if (type == &PyDict_Type) return Node::kDict;
  if (type == &PyList_Type) return Node::kList;
  if (type == &PyTuple_Type) return Node::kTuple;
  if (PyType_HasFeature(type, Py_TPFLAGS_TUPLE_SUBCLASS) && frameworks::type_has(type, checked(fields_name.get())) &&
      frameworks::type_has(type, checked(make_name.get())))
    return Node::kNamedTuple;
  if (PyType_HasFeature(type, Py_TPFLAGS_DICT_SUBCLASS | Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS) ||
      frameworks::type_has(type, checked(dataclass_name.get())))
    return Node::kOther;
  const Ref user_dict = loaded_global("collections", "UserDict");
  if (user_dict && PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(user_dict.get()))) return Node::kOther;
  const bool is_builtin = !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && std::strchr(type->tp_name, '.') == nullptr;
  return is_builtin ? Node::kValue : Node::kObject;
}

frameworks::TypeCache<Node, 128> known_nodes;

bool is_registered(PyTypeObject* type) {
  static PythonFunction ask("dlbridge._tree", "is_registered");
  return ask(reinterpret_cast<PyObject*>(type)).get() == Py_True;
}

// Registering does not change a type, so that it cannot be remembered here that one is not registered.
Node node_of(PyTypeObject* type, bool has_registry) {
  const Node node = known_nodes.get(type, classify);
  if (node != Node::kObject) [[likely]]
    return node;
  return has_registry && is_registered(type) ? Node::kOther : Node::kValue;
}

bool has_registry() { return static_cast<bool>(loaded_module("optree")); }

// --- what was met already --------------------------------------------------------------------------------------------

// Objects by identity, each with what was made of it. Keeps both alive, so that an address stays its object's.
class Seen {
 public:
  Seen() = default;
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;
  ~Seen() {
    for (const Slot& slot : slots()) {
      drop(slot.key);
      drop(slot.made);
    }
  }

  // True: it is new, and in progress from now on. Otherwise `made` is what became of it; null: it is in progress.
  bool begin(PyObject* key, PyObject*& made) {
    if (2 * (count_ + 1) > slots().size()) grow();
    Slot& slot = find(key);
    made = slot.made;
    if (slot.key != nullptr) return false;
    Py_INCREF(key);
    slot.key = key;
    ++count_;
    return true;
  }
  void finish(PyObject* key, PyObject* made) noexcept {
    Py_INCREF(made);
    find(key).made = made;
  }

 private:
  struct Slot {
    PyObject* key = nullptr;
    PyObject* made = nullptr;
  };

  std::span<Slot> slots() noexcept { return many_.empty() ? std::span<Slot>(few_) : std::span<Slot>(many_); }
  Slot& find(PyObject* key) noexcept {
    const std::span<Slot> all = slots();
    std::size_t at = (reinterpret_cast<std::uintptr_t>(key) >> 4) * 0x9E3779B97F4A7C15u >> 32;
    while (all[at % all.size()].key != key && all[at % all.size()].key != nullptr) ++at;
    return all[at % all.size()];
  }
  void grow() {
    std::vector<Slot> old(slots().begin(), slots().end());
    std::vector<Slot> wider(4 * old.size());
    many_.swap(wider);
    for (const Slot& slot : old)
      if (slot.key != nullptr) find(slot.key) = slot;
  }

  std::size_t count_ = 0;
  std::array<Slot, 32> few_{};  // sizes are powers of two
  std::vector<Slot> many_;
};

// --- paths -----------------------------------------------------------------------------------------------------------

std::string text_of(const Ref& string) {
  const char* utf8 = string && PyUnicode_Check(string.get()) ? PyUnicode_AsUTF8(string.get()) : nullptr;
  std::string text = utf8 != nullptr ? utf8 : "...";
  PyErr_Clear();
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

std::string item_label(PyObject* key) {
  if (PyUnicode_CheckExact(key)) {
    const std::string text = text_of(Ref::borrow(key));
    if (text.find_first_of("\"\\\n") == std::string::npos) return "[\"" + text + "\"]";
  }
  return "[" + text_of(Ref(PyObject_Repr(key))) + "]";
}
std::string item_label(Py_ssize_t index) { return "[" + std::to_string(index) + "]"; }
std::string field_label(PyObject* name) { return "." + text_of(Ref::borrow(name)); }

// "convert(): <message>" becomes "convert(): tree["x"]: <message>", of the same exception. One that has no message of
// one piece gets a note.
void name_path(const char* operation, const std::string& path) {
  const Ref error = take_exception();
  const std::string prefix = std::string(operation) + ": ";
  const Ref args(PyObject_GetAttrString(error.get(), "args"));
  const bool has_text = args && PyTuple_CheckExact(args.get()) && PyTuple_GET_SIZE(args.get()) == 1 &&
                        PyUnicode_Check(PyTuple_GET_ITEM(args.get(), 0)) &&
                        Py_TYPE(error.get())->tp_str == reinterpret_cast<PyTypeObject*>(PyExc_BaseException)->tp_str;
  if (has_text) {
    const char* utf8 = PyUnicode_AsUTF8(PyTuple_GET_ITEM(args.get(), 0));
    std::string message = utf8 != nullptr ? utf8 : "";
    if (message.starts_with("convert(): ")) message.erase(0, std::strlen("convert(): "));
    message = prefix + path + ": " + message;
    const Ref renewed(Py_BuildValue("(s)", message.c_str()));
    if (utf8 != nullptr && renewed) PyObject_SetAttrString(error.get(), "args", renewed.get());
  } else {
    PyErr_Clear();
    const Ref done(PyObject_CallMethod(error.get(), "add_note", "s", (prefix + "the array is " + path).c_str()));
  }
  PyErr_Clear();
  set_exception(Ref::borrow(error.get()));
}

// --- the walk that converts ------------------------------------------------------------------------------------------

class Walk {
 public:
  explicit Walk(const Conversion& wanted) : wanted_(wanted), has_registry_(has_registry()) {}

  const std::string& path() const noexcept { return path_; }

  Ref visit(PyObject* object) {
    const Node node = node_of(Py_TYPE(object), has_registry_);
    if (node == Node::kValue) return Ref::borrow(object);
    PyObject* made;
    if (!seen_.begin(object, made)) {
      if (made != nullptr) return Ref::borrow(made);
      throw_error(PyExc_ValueError,
                  "convert(): a container holds itself; only trees are converted. Break the cycle first");
    }
    Ref result = node == Node::kArray ? owned(convert_array(object, wanted_)) : enter(node, object);
    seen_.finish(object, result.get());
    return result;
  }

 private:
  Ref enter(Node node, PyObject* object) {
    struct Level {
      int& depth;
      ~Level() { --depth; }
    } const level{++depth_};
    if (depth_ > kMaxDepth)
      throw_error(PyExc_RecursionError, "convert(): the containers are nested more than %d deep", kMaxDepth);
    switch (node) {
      case Node::kDict: return visit_dict(object);
      case Node::kList: return visit_list(object);
      case Node::kTuple: return visit_tuple(object, nullptr);
      case Node::kNamedTuple: return visit_named_tuple(object);
      default: return visit_other(object);
    }
  }

  // The path is told from the array outwards, while the exception passes.
  template <class Label>
  Ref child(PyObject* object, Label label) {
    try {
      return visit(object);
    } catch (const PythonError&) {
      if (!is_final_error()) {
        const ErrorGuard error;
        path_.insert(0, label());
      }
      throw;
    }
  }

  // Copies are what is walked and filled: code of an array's may change the dict or list that the user has.
  Ref visit_dict(PyObject* dict) {
    Ref out = owned(PyDict_Copy(dict));
    Py_ssize_t at = 0;
    PyObject *key, *value;
    for (Py_ssize_t left = PyDict_GET_SIZE(out.get()); left > 0 && PyDict_Next(out.get(), &at, &key, &value); --left) {
      const Ref held_key = Ref::borrow(key), held = Ref::borrow(value);
      const Ref made = child(value, [&] { return item_label(key); });
      if (made.get() != value) checked(PyDict_SetItem(out.get(), key, made.get()));
    }
    return out;
  }

  Ref visit_list(PyObject* list) {
    Ref out = owned(PyList_GetSlice(list, 0, PyList_GET_SIZE(list)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(out.get()); ++i) {
      const Ref held = Ref::borrow(PyList_GET_ITEM(out.get(), i));
      Ref made = child(held.get(), [&] { return item_label(i); });
      if (made.get() != held.get()) checked(PyList_SetItem(out.get(), i, made.release()));
    }
    return out;
  }

  // Itself where nothing in it has become another object. `fields`: the names, where it has any.
  Ref visit_tuple(PyObject* tuple, PyObject* fields) {
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    Ref out;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* const item = PyTuple_GET_ITEM(tuple, i);
      Ref made = child(item, [&] {
        const bool named = fields != nullptr && i < PyTuple_GET_SIZE(fields);
        return named ? field_label(PyTuple_GET_ITEM(fields, i)) : item_label(i);
      });
      if (!out && made.get() == item) continue;
      if (!out) {
        out = owned(PyTuple_New(n));
        for (Py_ssize_t k = 0; k < i; ++k)
          PyTuple_SET_ITEM(out.get(), k, Ref::borrow(PyTuple_GET_ITEM(tuple, k)).release());
      }
      PyTuple_SET_ITEM(out.get(), i, made.release());
    }
    return out ? std::move(out) : Ref::borrow(tuple);
  }

  Ref visit_named_tuple(PyObject* tuple) {
    auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(tuple));
    const Ref fields = owned(PyObject_GetAttrString(type, "_fields"));
    Ref items = visit_tuple(tuple, PyTuple_Check(fields.get()) ? fields.get() : nullptr);
    if (items.get() == tuple) return items;
    return owned(PyObject_CallMethodOneArg(type, checked(make_name.get()), items.get()));
  }

  // By dlbridge/_tree.py: (names, parts, whether the names are fields, whether it is always made anew, how).
  Ref visit_other(PyObject* object) {
    static PythonFunction take_apart("dlbridge._tree", "take_apart");
    const Ref taken = take_apart(object);
    PyObject *names, *parts, *make;
    int are_fields, always;
    checked(PyArg_ParseTuple(taken.get(), "OOppO", &names, &parts, &are_fields, &always, &make) != 0);
    const Ref keys = owned(PySequence_Tuple(names)), items = owned(PySequence_Tuple(parts));
    const Ref made = owned(PyList_New(0));
    bool changed = always != 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
      PyObject* const item = PyTuple_GET_ITEM(items.get(), i);
      const Ref part = child(item, [&]() -> std::string {
        if (i >= PyTuple_GET_SIZE(keys.get())) return item_label(i);
        PyObject* const key = PyTuple_GET_ITEM(keys.get(), i);
        return are_fields != 0 ? field_label(key) : item_label(key);
      });
      changed |= part.get() != item;
      checked(PyList_Append(made.get(), part.get()));
    }
    return changed ? owned(PyObject_CallOneArg(make, made.get())) : Ref::borrow(object);
  }

  const Conversion& wanted_;
  const bool has_registry_;
  int depth_ = 0;
  std::string path_;
  Seen seen_;
};

// --- the walk that looks ---------------------------------------------------------------------------------------------

class Look {
 public:
  explicit Look(ArrayTaker& taker) : taker_(taker), has_registry_(has_registry()) {}

  bool visit(PyObject* object) {
    const Node node = node_of(Py_TYPE(object), has_registry_);
    if (node == Node::kValue) return true;
    if (node == Node::kArray) return taker_.take(object);
    PyObject* made;
    if (!seen_.begin(object, made)) return true;
    if (++depth_ > kMaxDepth)
      throw_error(PyExc_RecursionError, "convert(): the containers are nested more than %d deep", kMaxDepth);
    const bool more = node == Node::kDict ? visit_dict(object) : visit_items(node, object);
    --depth_;
    return more;
  }

 private:
  bool visit_dict(PyObject* given) {
    const Ref copy = kFreeThreaded ? owned(PyDict_Copy(given)) : Ref::borrow(given);  // other threads may change it
    PyObject* const dict = copy.get();
    Py_ssize_t at = 0;
    PyObject *key, *value;
    for (Py_ssize_t left = PyDict_GET_SIZE(dict); left > 0 && PyDict_Next(dict, &at, &key, &value); --left) {
      const Ref held = Ref::borrow(value);
      if (!visit(value)) return false;
    }
    return true;
  }
  bool visit_items(Node node, PyObject* object) {
    static PythonFunction parts_of("dlbridge._tree", "parts_of");
    const bool may_change = kFreeThreaded && node == Node::kList;
    const Ref items = node == Node::kOther ? parts_of(object)
                      : may_change         ? owned(PySequence_Tuple(object))
                                           : Ref::borrow(object);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      const Ref held = Ref::borrow(PySequence_Fast_GET_ITEM(items.get(), i));
      if (!visit(held.get())) return false;
    }
    return true;
  }

  ArrayTaker& taker_;
  const bool has_registry_;
  int depth_ = 0;
  Seen seen_;
};

}  // namespace

bool is_container(PyTypeObject* type) {
  const Node node = node_of(type, has_registry());
  return node != Node::kValue && node != Node::kArray;
}

PyObject* convert_tree(PyObject* object, const Conversion& wanted, const char* operation, const char* root) {
  Walk walk(wanted);
  try {
    return walk.visit(object).release();
  } catch (const PythonError&) {
    if (!is_final_error() && (!walk.path().empty() || *root != '\0')) name_path(operation, root + walk.path());
    throw;
  }
}

bool walk_arguments(PyObject* args, Py_ssize_t first, PyObject* kwargs, ArrayTaker& taker) {
  Look look(taker);
  for (Py_ssize_t i = first; i < PyTuple_GET_SIZE(args); ++i) {
    taker.position = i;
    if (!look.visit(PyTuple_GET_ITEM(args, i))) return false;
  }
  Py_ssize_t at = 0;
  PyObject* value;
  while (PyDict_Next(kwargs, &at, &taker.keyword, &value)) {
    const Ref held_name = Ref::borrow(taker.keyword), held = Ref::borrow(value);
    if (!look.visit(value)) return false;
  }
  return true;
}

}  // namespace dlbridge::py
