// What a call of a generated kernel depends on beside its values, as bytes: keys of the tables that Python keeps.
#include <string>

#include "python/src/kit/tables.h"
#include "python/src/nd/kernels/launch.h"
#include "python/src/nd/kernels/user_kernels.h"

namespace dlbridge::py::nd {

namespace {

// What a call of a fused function depends on: "c" (all arrays on a CUDA device) or "h" (some are not, or there are
// none), then two characters an argument: its type_letter() and an array's ndim. None
// where an argument is neither an array of ours nor a scalar.
constexpr char kFusionKey[] = "fusion_key($module, args, /)\n--\n\nWhat a call of a fused function depends on.";
PyObject* fusion_key(PyObject*, PyObject* args) {
  std::string key = "h";
  bool any = false, all_cuda = true;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args); ++k) {
    core::Input input;
    const Parsed parsed = parse_operand(PyTuple_GET_ITEM(args, k), input);
    if (parsed == Parsed::kError) checked(pardon_numpy(PyTuple_GET_ITEM(args, k)));  // the function itself says so
    if (parsed != Parsed::kYes) Py_RETURN_NONE;
    any |= input.array != nullptr;
    all_cuda &= input.array == nullptr || is_cuda(input.array->dl.device);
    key += type_letter(input.array, input.scalar);
    key += static_cast<char>(input.array != nullptr ? input.array->dl.ndim : 0);
  }
  if (any && all_cuda) key[0] = 'c';
  return PyBytes_FromStringAndSize(key.data(), static_cast<Py_ssize_t>(key.size()));
}

// Everything that the plan of a reduction depends on, addresses aside: dtypes, devices, shapes and strides of the
// arrays, types of the scalars. None where an argument is no array of ours on a CUDA device and no scalar.
constexpr char kLayoutKey[] = "layout_key($module, args, /)\n--\n\nWhat the plan of a reduction depends on.";
PyObject* layout_key(PyObject*, PyObject* args) {
  std::string key;
  const auto append = [&key](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args); ++k) {
    core::Input input;
    const Parsed parsed = parse_operand(PyTuple_GET_ITEM(args, k), input);
    if (parsed == Parsed::kError) checked(pardon_numpy(PyTuple_GET_ITEM(args, k)));
    if (parsed != Parsed::kYes) Py_RETURN_NONE;
    if (input.array == nullptr) {
      append(input.scalar.strong ? 32 + static_cast<int>(input.scalar.dtype)
                                 : 64 + static_cast<int>(input.scalar.kind));
      continue;
    }
    const DLTensor& t = input.array->dl;
    if (!is_cuda(t.device)) Py_RETURN_NONE;
    append(static_cast<int>(input.array->dtype().id));
    append(t.device);
    append(t.ndim);
    const std::size_t bytes = static_cast<std::size_t>(t.ndim) * sizeof(std::int64_t);
    key.append(reinterpret_cast<const char*>(t.shape), bytes);
    key.append(reinterpret_cast<const char*>(t.strides), bytes);
  }
  return PyBytes_FromStringAndSize(key.data(), static_cast<Py_ssize_t>(key.size()));
}

}  // namespace

void init_kernel_keys(PyObject* module) {
  add_functions(module, {method<kFusionKey, fusion_key>(), method<kLayoutKey, layout_key>()});
}

}  // namespace dlbridge::py::nd
