#include "frameworks/torch_bits.h"

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "frameworks/samples.h"

namespace dlbridge::frameworks {

namespace {

// The key set is the last member of PyTorch's C++ tensor: word 21 of it in PyTorch 2.13, 22 in 2.11.
constexpr std::size_t kMaxWords = 24;

struct Sample {
  py::Ref object;
  const std::uintptr_t* impl = nullptr;  // Tensor._cdata
};

bool take(PyTypeObject* type, py::Ref object, Sample& out) {
  if (!object || !Py_IS_TYPE(object.get(), type)) return false;  // a mode made something else
  const py::Ref address(PyObject_GetAttrString(object.get(), "_cdata"));
  out.impl = address ? static_cast<const std::uintptr_t*>(PyLong_AsVoidPtr(address.get())) : nullptr;
  out.object = std::move(object);
  return out.impl != nullptr;
}

py::Ref method(const py::Ref& object, const char* name) {
  return py::Ref(object ? PyObject_CallMethod(object.get(), name, nullptr) : nullptr);
}

// No word is read that is not the object's: it comes from operator new, and the allocator knows how large it is.
std::size_t words_of(const Sample& sample) noexcept {
  return ::malloc_usable_size(const_cast<std::uintptr_t*>(sample.impl)) / sizeof(std::uintptr_t);
}

// One tensor of each state, the odd ones made as users make them.
struct Samples {
  Sample real, other_real, complex, conj, neg, grad;

  bool make(PyObject* torch) {
    const auto empty = [torch](const char* dtype_name) {
      const py::Ref dtype(PyObject_GetAttrString(torch, dtype_name));
      const py::Ref arguments(Py_BuildValue("(i)", 3));
      const py::Ref options(dtype ? Py_BuildValue("{s:O,s:s}", "dtype", dtype.get(), "device", "cpu") : nullptr);
      const py::Ref function(PyObject_GetAttrString(torch, "zeros"));
      if (!options || !function || !arguments) return py::Ref();
      return py::Ref(PyObject_Call(function.get(), arguments.get(), options.get()));
    };
    const py::Ref type_object(PyObject_GetAttrString(torch, "Tensor"));
    if (!type_object) return false;
    auto* type = reinterpret_cast<PyTypeObject*>(type_object.get());
    const py::Ref lazy = method(empty("complex64"), "conj");
    py::Ref wants_grad = method(empty("float32"), "requires_grad_");
    return take(type, empty("float32"), real) && take(type, empty("float32"), other_real) &&
           take(type, empty("complex64"), complex) && take(type, method(empty("complex64"), "conj"), conj) &&
           take(type, attribute(lazy.get(), "imag"), neg) && take(type, std::move(wants_grad), grad);
  }
};

template <class Predicate>
std::optional<std::size_t> first_word(std::size_t count, Predicate holds) {
  for (std::size_t i = 0; i < count; ++i)
    if (holds(i)) return i;
  return std::nullopt;
}

}  // namespace

bool TorchBits::learn_from_samples() {
  const py::Ref torch = py::loaded_module("torch");
  Samples s;
  if (!torch || !s.make(torch.get())) return false;

  const auto object_word = [](const Sample& sample, std::size_t i) {
    return reinterpret_cast<const std::uintptr_t*>(sample.object.get())[i];
  };
  const auto impl_word =
      only_word(sizeof(PyObject) / sizeof(std::uintptr_t),
                static_cast<std::size_t>(Py_TYPE(s.real.object.get())->tp_basicsize) / sizeof(std::uintptr_t),
                [&](std::size_t i) {
                  for (const Sample* sample : {&s.real, &s.other_real, &s.complex, &s.conj, &s.neg, &s.grad})
                    if (object_word(*sample, i) != reinterpret_cast<std::uintptr_t>(sample->impl)) return false;
                  return true;
                });
  std::size_t words = kMaxWords;
  for (const Sample* sample : {&s.real, &s.other_real, &s.complex, &s.conj, &s.neg, &s.grad})
    words = std::min(words, words_of(*sample));
  const auto keys_word = first_word(words, [&](std::size_t i) {
    const std::uintptr_t plain = s.real.impl[i];
    const std::uintptr_t neg_bit = s.neg.impl[i] & ~plain, conj_bit = s.conj.impl[i] & ~plain;
    return s.other_real.impl[i] == plain && s.complex.impl[i] == plain && s.grad.impl[i] == plain &&
           std::has_single_bit(neg_bit) && std::has_single_bit(conj_bit) && neg_bit != conj_bit &&
           s.neg.impl[i] == (plain | neg_bit) && s.conj.impl[i] == (plain | conj_bit);
  });
  if (!impl_word || !keys_word) return false;
  const auto autograd_word = only_word(0, *keys_word, [&](std::size_t i) {
    return s.real.impl[i] == 0 && s.other_real.impl[i] == 0 && s.complex.impl[i] == 0 && s.grad.impl[i] > 0xffff;
  });
  if (!autograd_word) return false;
  impl_offset_ = static_cast<Py_ssize_t>(*impl_word * sizeof(std::uintptr_t));
  keys_word_ = *keys_word;
  autograd_word_ = *autograd_word;
  lazy_bits_ = (s.neg.impl[keys_word_] | s.conj.impl[keys_word_]) & ~s.real.impl[keys_word_];
  const auto plain = [this](const Sample& sample) { return surely_plain(sample.object.get()); };
  return plain(s.real) && plain(s.complex) && !plain(s.conj) && !plain(s.neg) && !plain(s.grad);
}

}  // namespace dlbridge::frameworks
