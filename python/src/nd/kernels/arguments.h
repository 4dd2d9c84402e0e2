// The arguments of a kernel launch: Python objects packed into the values that cuLaunchKernel takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dlbridge/errors.h"
#include "ndarray/core/kernel_value.h"
#include "ndarray/kernels/ops.h"
#include "ndarray/runtime/module.h"
#include "python/src/nd/kernels/launch.h"

namespace dlbridge::py::nd {

// One declared parameter of a kernel, as far as its source tells.
struct KernelParameter {
  enum class Kind : std::uint8_t { kUnknown, kPointer, kScalar };
  Kind kind = Kind::kUnknown;
  bool read_only = false;      // const T*
  DType dtype = DType::kInt8;  // kScalar: the dtype of the value
  core::DTypeSet allowed = 0;  // dtypes that may be given; 0: any
  std::string text;            // "const float* x", for messages
};

// What the launch of one kernel asks of its arguments.
struct KernelRules {
  const char* name = "";
  const std::vector<KernelParameter>* declared = nullptr;  // null: the signature is not known
  bool require_contiguous = true;
};

// Packs the arguments of one call; lives on the stack while it runs. Objects that are passed in must outlive it.
class KernelArguments {
 public:
  explicit KernelArguments(const KernelRules& rules) noexcept;
  KernelArguments(const KernelArguments&) = delete;
  KernelArguments& operator=(const KernelArguments&) = delete;
  ~KernelArguments();

  // They throw with a Python error set.
  void pack(PyObject* const* arguments, Py_ssize_t count);
  // Compares with what the driver knows of the kernel, and narrows Python scalars whose type the source did not tell.
  void fit(const core::Function& function);

  void** pointers() noexcept { return pointers_; }
  const ArrayUses& uses() const noexcept { return uses_; }
  int device() const noexcept { return device_; }  // of the arrays; -1: there are none

 private:
  static constexpr int kInline = 24;

  void reserve(Py_ssize_t count);
  void pack_one(PyObject* argument, Py_ssize_t k);
  void pack_tensor(const Tensor& tensor, PyObject* held, Py_ssize_t k);
  void pack_scalar(const core::Scalar& scalar, Py_ssize_t k);
  void pack_foreign(PyObject* argument, Py_ssize_t k);
  bool pack_structure(PyObject* argument, Py_ssize_t k);  // false: it is none
  void pack_address(std::uintptr_t address, Py_ssize_t k);
  const KernelParameter* declared(Py_ssize_t k) const noexcept;
  // Of "argument 2 (const float* x)".
  [[noreturn]] void fail(Py_ssize_t k, ErrorCode code, const std::string& what) const;
  void require(Py_ssize_t k, const Status& status) const {
    if (!status.ok()) [[unlikely]]
      fail(k, status.code(), status.message());
  }

  KernelRules rules_;
  Py_ssize_t count_ = 0;
  int device_ = -1;
  void** pointers_ = inline_pointers_;
  core::KernelValue* values_ = inline_values_;
  ArrayUses uses_;
  std::vector<Py_buffer> structures_;

  void* inline_pointers_[kInline];
  core::KernelValue inline_values_[kInline];
  std::vector<void*> heap_pointers_;  // of kernels with more arguments than fit beside the object
  std::vector<core::KernelValue> heap_values_;
};

}  // namespace dlbridge::py::nd
