// What convert() shares with asdlpack(), with the walk through containers and with the diagnosis.
#pragma once

#include <optional>

#include "frameworks/framework.h"
#include "protocols/arrow/arrow.h"
#include "protocols/common/python.h"
#include "protocols/common/streams.h"

namespace dlbridge::py {

// --- asdlpack.cpp: asdlpack() in two steps --------------------------------------------------------------------------

struct ReadOptions {
  const char* operation = "asdlpack()";
  bool* swapped = nullptr;  // where a reader says that the bytes are in the other order, if it may
  Protocol protocol = Protocol::kNone;
  StreamArgument stream;
  std::optional<DLDevice> device;
  bool must_copy = false;
  bool never_copy = false;
  arrow_c::Nulls nulls = arrow_c::Nulls::kRefuse;
  Tensor* mask = nullptr;  // for Nulls::kMask

  // Data is copied in any case where the target cannot read host memory, and a copy can mend more than a view.
  bool will_copy_from_host() const noexcept { return must_copy || (device && !is_host(*device) && !never_copy); }
};

// Null and None: not given. False with a Python error set.
bool parse_read_options(PyObject* stream, PyObject* device, PyObject* copy, ReadOptions& out);
// Any array as a tensor, with nothing copied yet. `swapped`: its bytes are in the other order, which
// apply_options() mends. New references; null with a Python error set.
PyObject* read_unapplied(PyObject* object, ReadOptions options, bool& swapped);
// What stream=, device= and copy= ask for.
PyObject* apply_options(Ref tensor, const ReadOptions& options, bool swapped);

// --- target.cpp: where to -------------------------------------------------------------------------------------------

// A framework of the table, or a module that is none but has from_dlpack(): it knows best what it takes.
struct Target {
  const frameworks::Framework* framework = nullptr;
  Ref module;

  explicit operator bool() const noexcept { return framework != nullptr || module; }
};

extern const frameworks::Framework kOwnTarget;  // dlbridge.Tensor itself; not in the table

// Of a name or a module. Empty with a Python error set.
Target find_target(PyObject* to);
// The one that the object's own type belongs to; null, with no Python error set, where that is not known.
const frameworks::Framework* find_own_target(PyObject* object) noexcept;
// The same. Null with a Python error set, which says what `what` is good for.
const frameworks::Framework* own_target(PyObject* object, const char* operation, const char* remedy);
// The framework of the table that `to` means to convert(). Null: none of the table, or `failed`, with a Python error
// set.
const frameworks::Framework* find_target_framework(PyObject* to, bool& failed);
// dlbridge._convert. Borrowed, kept for good; null with a Python error set.
PyObject* python_half();

// --- recast.cpp: what happens to a tensor before it goes in ----------------------------------------------------------

// layout="HWC->CHW", a letter for each axis as it is and as it shall be; of "CHW" `from` is empty, and each array's own
// framework is asked. Views into the string that the user gave.
struct AxisLayout {
  std::string_view text, from, to;
};
// Throws with a Python error set.
AxisLayout parse_layout(PyObject* layout, const char* operation);
// A view with the axes in that order. `array`: what the tensor was read from. New references, never null; they throw
// with a Python error set.
Ref with_axes(Ref tensor, const AxisLayout& layout, PyObject* array, const char* operation);
DLDataType parse_cast(PyObject* dtype, const char* operation);
// A copy in another dtype, by the ndarray's kernels, on the device where the data is.
Ref cast_tensor(Ref tensor, DLDataType dtype, const char* operation);

// --- convert.cpp: one array -----------------------------------------------------------------------------------------

// The parameters of convert() are read from here.
inline constexpr char kConvertDoc[] =
    "convert($module, tree, to=None, *, like=None, dtype=None, device=None, copy=None, layout=None, stream=None)\n"
    "--\n\n"
    "An array, or all arrays in a container, as objects of another framework, by the cheapest routes.\n\n"
    "tree: any array that asdlpack() takes; or a dict, list, tuple, named tuple or dataclass, a subclass of these, or\n"
    "what optree has registered, nested. The result has the same types and order; dicts and lists are new ones, and\n"
    "what is not an array (strings, numbers, None, bytes, objects) stays as it is. An array that is there twice is\n"
    "converted once.\n"
    "to: 'numpy', 'torch', 'jax', 'tensorflow', 'cupy', …, the module itself, or 'dlbridge' for a Tensor. None:\n"
    "each array stays in its own framework.\n"
    "like: an array of the framework, and on the device, that are wanted.\n"
    "dtype: casts, on the device where the data is, by the ndarray's kernels; 'like' is the dtype of `like`.\n"
    "device: 'cpu', 'cuda', 'cuda:1', …: the data is copied there if it is elsewhere.\n"
    "copy: None copies only what must be (a cast, a move, read-only data into PyTorch, negative strides, …); False\n"
    "raises CopyError instead; True always copies.\n"
    "layout: 'HWC->CHW' permutes the axes, as a view where the framework takes its strides; 'HWC->NCHW' adds one of\n"
    "extent 1; 'CHW' does where the array says what its axes are (Pillow, DALI, xarray, OpenCV's GpuMat).\n\n"
    "Raises what asdlpack() raises, with the path of the array in the message (tree[\"x\"][2]); ImportError where the\n"
    "framework is missing; ValueError for a container that holds itself, RecursionError for one that is 256 deep.";

// What one call asks for, of each array.
struct Conversion {
  Target target;  // none: each array's own framework
  ReadOptions read;
  std::optional<DLDataType> dtype;
  std::optional<AxisLayout> layout;
  bool is_plain = false;  // asks for the target only
};

// New reference; null or an exception with a Python error set.
PyObject* convert_array(PyObject* object, const Conversion& wanted);
// What like= asks for. Throws with a Python error set.
void follow_array(PyObject* like, bool and_dtype, Conversion& out);

// --- tree.cpp: containers of arrays ---------------------------------------------------------------------------------

// Whether objects of the type hold others that convert() goes into. Throws with a Python error set.
bool is_container(PyTypeObject* type);
// The object with the arrays in it converted, or itself. `operation` and `root`: how the path of an array that fails
// begins. New reference; throws with a Python error set.
PyObject* convert_tree(PyObject* object, const Conversion& wanted, const char* operation, const char* root);
// The arrays in the arguments of a call, in their order: `take` is given each, and ends the walk by false.
class ArrayTaker {
 public:
  virtual bool take(PyObject* array) = 0;

  Py_ssize_t position = 0;      // of the argument that it is in; or
  PyObject* keyword = nullptr;  // its name. Borrowed

 protected:
  ~ArrayTaker() = default;
};
// From position `first` on. What take() gave last. Throws with a Python error set.
bool walk_arguments(PyObject* args, Py_ssize_t first, PyObject* kwargs, ArrayTaker& taker);

// --- adapt.cpp ------------------------------------------------------------------------------------------------------
void init_adapt(PyObject* module);  // throws with a Python error set

}  // namespace dlbridge::py
