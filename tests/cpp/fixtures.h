// DLPack structs as a producer would make them, with a count of the deleter's calls.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "dlbridge/dlpack.h"

namespace dlbridge::test {

// The producer of one managed tensor. The deleter only counts: memory belongs to this object, so a second call shows
// as a number and not as a crash.
template <class Managed>
struct Producer {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::vector<char> bytes;
  int deleted = 0;
  Managed managed{};

  explicit Producer(std::vector<std::int64_t> extents = {2, 3}, DLDataType dtype = {kDLFloat, 32, 1})
      : shape(std::move(extents)), bytes(4096) {
    DLTensor& t = managed.dl_tensor;
    t.data = bytes.data();
    t.device = {kDLCPU, 0};
    t.ndim = static_cast<std::int32_t>(shape.size());
    t.dtype = dtype;
    t.shape = shape.data();
    t.strides = nullptr;
    t.byte_offset = 0;
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; };
    if constexpr (requires { managed.version; }) managed.version = kDLPackVersion;
  }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  void set_strides(std::vector<std::int64_t> elements) {
    strides = std::move(elements);
    managed.dl_tensor.strides = strides.data();
  }
};

using LegacyProducer = Producer<DLManagedTensor>;
using VersionedProducer = Producer<DLManagedTensorVersioned>;

}  // namespace dlbridge::test
