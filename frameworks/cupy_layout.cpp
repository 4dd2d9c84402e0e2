#include "frameworks/cupy_layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "frameworks/samples.h"

namespace dlbridge::frameworks {

namespace {

using Word = std::uintptr_t;
constexpr std::size_t kHeaderWords = sizeof(PyObject) / sizeof(Word);

// No two samples, and no two members of one, have a value in common. The addresses are never read.
struct Recipe {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides_bytes;
  const char* dtype;
  Word address;
  Word offset;
  int device;
};
const std::array<Recipe, 4>& recipes() {
  static const std::array<Recipe, 4> table{{
      {{3, 5}, {56, 8}, "<f4", 0x51a00000, 0x100, 3},
      {{7, 2, 11}, {264, 96, 6}, "<i2", 0x52b00000, 0x300, 5},
      {{13}, {48}, "<c16", 0x53c00000, 0x700, 9},
      {{2, 17, 4, 6, 19}, {24832, 776, 152, 40, 1}, "|u1", 0x54d00000, 0xb00, 12},
  }};
  return table;
}

struct Sample {
  const Recipe* recipe = nullptr;
  py::Ref array, dtype, data;

  const Word* words() const noexcept { return reinterpret_cast<const Word*>(array.get()); }
  const Word* pointer_words() const noexcept { return reinterpret_cast<const Word*>(data.get()); }
};
using Samples = std::array<Sample, 4>;

py::Ref dims(const std::vector<std::int64_t>& values) {
  py::Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (std::size_t i = 0; tuple && i < values.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(values[i]));
  return tuple;
}

// cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(address, …), offset), strides)
bool make_sample(PyObject* cupy, PyObject* cuda, const Recipe& recipe, Sample& out) {
  const py::Ref memory(PyObject_CallMethod(
      cuda, "UnownedMemory", "KiOi", static_cast<unsigned long long>(recipe.address), 1 << 20, Py_None, recipe.device));
  const py::Ref pointer(
      memory ? PyObject_CallMethod(cuda, "MemoryPointer", "Oi", memory.get(), static_cast<int>(recipe.offset))
             : nullptr);
  const py::Ref shape = dims(recipe.shape), strides = dims(recipe.strides_bytes);
  if (!pointer || !shape || !strides) return false;
  out.recipe = &recipe;
  out.array =
      py::Ref(PyObject_CallMethod(cupy, "ndarray", "OsOO", shape.get(), recipe.dtype, pointer.get(), strides.get()));
  out.dtype = attribute(out.array.get(), "dtype");
  out.data = attribute(out.array.get(), "data");
  return out.dtype && out.data;
}

std::size_t words_of(PyTypeObject* type) noexcept {
  return static_cast<std::size_t>(type->tp_basicsize) / sizeof(Word);
}

// The one word of the first `count` for which `holds` in every sample; nothing where there is none or more than one.
template <class Predicate>
std::optional<std::size_t> find_word(const Samples& samples, std::size_t count, Predicate holds) {
  return only_word(kHeaderWords, count, [&](std::size_t i) {
    return std::ranges::all_of(samples, [&](const Sample& sample) { return holds(sample, i); });
  });
}

// Two words that span as many numbers as there are axes, in arrays of 1, 2, 3 and 5 axes alike, are a vector's: only
// then are they followed.
std::optional<std::size_t> find_vector(const Samples& samples, std::size_t count,
                                       std::vector<std::int64_t> Recipe::* values) {
  const auto spans = [](const Sample& sample, std::size_t i) {
    const Word* words = sample.words();
    return words[i] > 0xffff && words[i] % alignof(std::int64_t) == 0 &&
           words[i + 1] - words[i] == sample.recipe->shape.size() * sizeof(std::int64_t);
  };
  const auto holds_values = [values](const Sample& sample, std::size_t i) {
    const auto& wanted = sample.recipe->*values;
    return std::memcmp(reinterpret_cast<const void*>(sample.words()[i]), wanted.data(),
                       wanted.size() * sizeof(std::int64_t)) == 0;
  };
  return only_word(kHeaderWords, count - 1, [&](std::size_t i) {
    return std::ranges::all_of(samples, [&](const Sample& sample) { return spans(sample, i); }) &&
           std::ranges::all_of(samples, [&](const Sample& sample) { return holds_values(sample, i); });
  });
}

bool same_members(const CupyMembers& members, const Sample& sample) {
  const Recipe& recipe = *sample.recipe;
  const std::size_t bytes = recipe.shape.size() * sizeof(std::int64_t);
  return members.ndim == static_cast<std::int64_t>(recipe.shape.size()) &&
         std::memcmp(members.shape, recipe.shape.data(), bytes) == 0 &&
         std::memcmp(members.strides_bytes, recipe.strides_bytes.data(), bytes) == 0 &&
         members.dtype == sample.dtype.get() && members.data == recipe.address + recipe.offset &&
         members.device == recipe.device;
}

// The C function that CuPy's own Cython modules call. Cython exports it with its signature as the capsule's name, so
// that another signature is noticed.
void* find_stream_function() {
  const py::Ref functions = py::loaded_global("cupy_backends.cuda.stream", "__pyx_capi__");
  if (!functions || !PyDict_Check(functions.get())) return nullptr;
  const py::Ref capsule = py::dict_item(functions.get(), "get_stream_ptr");
  constexpr const char* kSignature = "intptr_t (int)";
  if (!capsule || !PyCapsule_IsValid(capsule.get(), kSignature)) return nullptr;
  return PyCapsule_GetPointer(capsule.get(), kSignature);
}

}  // namespace

bool CupyLayout::learn_from_samples() {
  const py::Ref cupy = py::loaded_module("cupy");
  const py::Ref cuda = attribute(cupy.get(), "cuda");
  Samples samples;
  if (!cuda) return false;
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (!make_sample(cupy.get(), cuda.get(), recipes()[i], samples[i])) return false;
  pointer_type_ = Py_TYPE(samples[0].data.get());
  for (const Sample& sample : samples)
    if (Py_TYPE(sample.array.get()) != Py_TYPE(samples[0].array.get()) || Py_TYPE(sample.data.get()) != pointer_type_)
      return false;

  const std::size_t array_words = words_of(Py_TYPE(samples[0].array.get()));
  const std::size_t pointer_words = words_of(pointer_type_);
  const auto shape = find_vector(samples, array_words, &Recipe::shape);
  const auto strides = find_vector(samples, array_words, &Recipe::strides_bytes);
  const auto dtype = find_word(samples, array_words, [](const Sample& sample, std::size_t i) {
    return sample.words()[i] == reinterpret_cast<Word>(sample.dtype.get());
  });
  const auto data = find_word(samples, array_words, [](const Sample& sample, std::size_t i) {
    return sample.words()[i] == reinterpret_cast<Word>(sample.data.get());
  });
  const auto address = find_word(samples, pointer_words, [](const Sample& sample, std::size_t i) {
    return sample.pointer_words()[i] == sample.recipe->address + sample.recipe->offset;
  });
  const auto device = find_word(samples, pointer_words, [](const Sample& sample, std::size_t i) {
    return static_cast<std::uint32_t>(sample.pointer_words()[i]) == static_cast<std::uint32_t>(sample.recipe->device);
  });
  stream_function_ = reinterpret_cast<StreamFunction>(find_stream_function());
  if (!shape || !strides || !dtype || !data || !address || !device || stream_function_ == nullptr) return false;
  shape_word_ = *shape, strides_word_ = *strides, dtype_word_ = *dtype, data_word_ = *data;
  address_word_ = *address, device_word_ = *device;
  for (const Sample& sample : samples) {
    CupyMembers members;
    if (!read(sample.array.get(), members) || !same_members(members, sample)) return false;
  }
  Py_INCREF(pointer_type_);
  return true;
}

}  // namespace dlbridge::frameworks
