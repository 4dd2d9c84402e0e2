// Reads the autograd, conj and neg state of a torch.Tensor in three loads.
//
// PyTorch's own answers (Tensor.requires_grad, is_neg, is_conj) cost 28 to 55 ns each through their C functions, more
// than the whole exchange. The state itself is two words of the C++ tensor: the set of dispatch keys and the pointer
// to the autograd data. Where these lie is no interface, so nothing is assumed: sample tensors of every state are made
// with PyTorch's public functions, and the words that tell them apart are looked for. Only if exactly one place
// explains all samples is it used; otherwise, and for every tensor that has autograd data at all, PyTorch is asked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frameworks/samples.h"

namespace dlbridge::frameworks {

class TorchBits {
 public:
  // Makes the samples and looks, at the first calls only. Never sets a Python error. False: ask PyTorch.
  bool ready() noexcept {
    return learner_.ready([this] { return learn_from_samples(); });
  }

  // True: surely no grad, no conj bit, no neg bit. False: ask PyTorch. Only for objects of exactly torch.Tensor.
  bool surely_plain(PyObject* tensor) const noexcept {
    const auto* words =
        *reinterpret_cast<const std::uintptr_t* const*>(reinterpret_cast<const char*>(tensor) + impl_offset_);
    return words != nullptr && (words[keys_word_] & lazy_bits_) == 0 && words[autograd_word_] == 0;
  }

 private:
  bool learn_from_samples();

  Learner learner_{8};             // a mode (FakeTensorMode, inference mode) makes other tensors: nothing to learn then
  Py_ssize_t impl_offset_ = 0;     // of the C++ tensor's address in the Python object, bytes
  std::size_t keys_word_ = 0;      // of the dispatch key set in the C++ tensor, in words
  std::size_t autograd_word_ = 0;  // of the pointer to the autograd data, in words
  std::uintptr_t lazy_bits_ = 0;   // the keys Conjugate and Negative
};

}  // namespace dlbridge::frameworks
