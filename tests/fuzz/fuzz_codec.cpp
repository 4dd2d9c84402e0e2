// The DLPack codec: a managed tensor built from fuzz bytes, whole or damaged in every field, is taken or refused, never
// half; its deleter runs exactly once; what is taken keeps the invariants of Tensor, checked against 128-bit
// arithmetic.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "dlbridge/dlpack_codec.h"
#include "dlbridge/layout.h"
#include "tests/fuzz/check.h"

namespace {

using dlbridge::Tensor;
using Wide = __int128;
constexpr Wide kMax = std::numeric_limits<std::int64_t>::max();

int deleted = 0;

std::int64_t any_extent(FuzzedDataProvider& in) {
  switch (in.ConsumeIntegralInRange(0, 4)) {
    case 0: return 0;
    case 1: return in.ConsumeIntegral<std::int64_t>();
    default: return in.ConsumeIntegralInRange<std::int64_t>(-1, 9);
  }
}

std::int32_t any_ndim(FuzzedDataProvider& in) {
  switch (in.ConsumeIntegralInRange(0, 7)) {
    case 0: return in.ConsumeIntegral<std::int32_t>();
    case 1: return in.ConsumeIntegralInRange(dlbridge::kMaxDims - 1, dlbridge::kMaxDims + 1);
    default: return in.ConsumeIntegralInRange(0, dlbridge::kInlineDims + 2);
  }
}

DLDataType any_dtype(FuzzedDataProvider& in) {
  if (in.ConsumeIntegralInRange(0, 7) == 0)
    return {in.ConsumeIntegral<std::uint8_t>(), in.ConsumeIntegral<std::uint8_t>(),
            in.ConsumeIntegral<std::uint16_t>()};
  return dlbridge::to_dl(in.PickValueInArray(dlbridge::kDTypes).id);
}

// The DLTensor with arrays of exactly the claimed length, so that AddressSanitizer sees one element too far; where
// nobody may read them, they point nowhere.
struct Source {
  std::vector<std::int64_t> shape, strides;
  DLTensor tensor{};

  explicit Source(FuzzedDataProvider& in) {
    tensor.ndim = any_ndim(in);
    tensor.dtype = any_dtype(in);
    tensor.device = {static_cast<DLDeviceType>(in.ConsumeIntegralInRange(-1, 20)), in.ConsumeIntegral<std::int32_t>()};
    tensor.data =
        in.ConsumeIntegralInRange(0, 7) == 0 ? nullptr : reinterpret_cast<void*>(in.ConsumeIntegral<std::uintptr_t>());
    tensor.byte_offset = in.ConsumeBool() ? 0 : in.ConsumeIntegral<std::uint64_t>();
    auto* nowhere = reinterpret_cast<std::int64_t*>(std::uintptr_t{8});
    tensor.shape = tensor.strides = nowhere;
    if (tensor.ndim < 0 || tensor.ndim > dlbridge::kMaxDims) return;
    for (std::int32_t i = 0; i < tensor.ndim; ++i) {
      shape.push_back(any_extent(in));
      strides.push_back(in.ConsumeBool() ? in.ConsumeIntegralInRange<std::int64_t>(-20, 20)
                                         : in.ConsumeIntegral<std::int64_t>());
    }
    shape.shrink_to_fit();
    strides.shrink_to_fit();
    const int without = in.ConsumeIntegralInRange(0, 9);
    tensor.shape = without == 0 || tensor.ndim == 0 ? nullptr : shape.data();
    tensor.strides = without <= 3 || tensor.ndim == 0 ? nullptr : strides.data();
  }
};

void check_layout(const Tensor& t, const Source& source) {
  const auto& shape = source.shape;
  const bool given = source.tensor.strides != nullptr;
  bool empty = false, negative = false, zero = false, dense_c = true;
  Wide size = 1, low = 0, high = 0, expected = 1;
  for (std::int64_t extent : shape) empty = empty || extent == 0;
  for (std::size_t i = shape.size(); i-- > 0;) {
    DLBRIDGE_CHECK(t.dl.shape[i] == shape[i] && shape[i] >= 0);
    const std::int64_t stride = t.dl.strides[i];
    const Wide stride_bytes = static_cast<Wide>(stride) * t.itemsize();
    DLBRIDGE_CHECK(stride_bytes <= kMax && stride_bytes >= -kMax);  // of unused axes, too: exporters multiply
    if (shape[i] <= 1) continue;
    DLBRIDGE_CHECK(empty || stride == (given ? source.strides[i] : static_cast<std::int64_t>(expected)));
    size *= shape[i];
    dense_c = dense_c && stride == expected;
    expected *= shape[i];
    negative = negative || stride < 0;
    zero = zero || stride == 0;
    (stride < 0 ? low : high) += static_cast<Wide>(stride) * (shape[i] - 1);
  }
  DLBRIDGE_CHECK(size * t.itemsize() <= kMax);
  DLBRIDGE_CHECK(t.size == (empty ? 0 : static_cast<std::int64_t>(size)));
  DLBRIDGE_CHECK((t.dl.data == nullptr) == empty || source.tensor.byte_offset != 0);
  DLBRIDGE_CHECK(dlbridge::is_c_contiguous(t.dl) == (empty || dense_c));
  DLBRIDGE_CHECK(dlbridge::has_negative_stride(t.dl) == (negative && !empty));
  DLBRIDGE_CHECK(dlbridge::has_zero_stride(t.dl) == (zero && !empty));
  const dlbridge::ElementSpan span = dlbridge::element_span(t.dl);
  if (empty) {
    DLBRIDGE_CHECK(span.low == 0 && span.high == 0);
  } else {
    DLBRIDGE_CHECK((high - low + 1) * t.itemsize() <= kMax);
    DLBRIDGE_CHECK(span.low == low && span.high == high + 1);
  }
  (void)dlbridge::is_f_contiguous(t.dl);
}

void check_tensor(const Tensor& t, const Source& source) {
  DLBRIDGE_CHECK(dlbridge::find_dtype(t.dl.dtype) != nullptr);
  DLBRIDGE_CHECK(dlbridge::find_device_type(t.dl.device.device_type) != nullptr);
  DLBRIDGE_CHECK(t.dl.ndim == source.tensor.ndim && t.dl.shape != nullptr && t.dl.strides != nullptr);
  DLBRIDGE_CHECK((t.flags & ~dlbridge::kKnownFlags) == 0);
  if (dlbridge::find_device_type(t.dl.device.device_type)->direct_address) DLBRIDGE_CHECK(t.dl.byte_offset == 0);
  if (dlbridge::is_host(t.dl.device)) DLBRIDGE_CHECK(t.dl.device.device_id == 0);
  check_layout(t, source);
}

// Sends the tensor through both exports and takes it back: nothing of it may change, and the owner travels along.
void check_round_trip(Tensor&& tensor, const Source& source, bool legacy) {
  const std::uint64_t flags = tensor.flags;
  Tensor back;
  const dlbridge::Status status = legacy ? import_managed(dlbridge::export_legacy(std::move(tensor)), back)
                                         : import_managed(dlbridge::export_managed(std::move(tensor)), back);
  DLBRIDGE_CHECK(status.ok());
  DLBRIDGE_CHECK(legacy || back.flags == flags);
  Tensor moved;
  moved = std::move(back);
  DLBRIDGE_CHECK(moved.dl.ndim == source.tensor.ndim);
  for (std::size_t i = 0; i < source.shape.size(); ++i) DLBRIDGE_CHECK(moved.dl.shape[i] == source.shape[i]);
  DLBRIDGE_CHECK(deleted == 0);
}

template <class Managed>
void run(Managed* managed, const Source& source, bool legacy_next) {
  const std::vector<std::int64_t> shape = source.shape, strides = source.strides;
  const DLTensor before = source.tensor;
  const bool has_deleter = managed->deleter != nullptr;
  deleted = 0;
  {
    Tensor t;
    const dlbridge::Status status = import_managed(managed, t);
    if (status.ok()) {
      DLBRIDGE_CHECK(deleted == 0);
      check_tensor(t, source);
      check_round_trip(std::move(t), source, legacy_next);
    } else {
      DLBRIDGE_CHECK(deleted == (has_deleter ? 1 : 0));
      DLBRIDGE_CHECK(!status.message().empty() && !t.owner);
    }
  }
  DLBRIDGE_CHECK(deleted == (has_deleter ? 1 : 0));
  DLBRIDGE_CHECK(shape == source.shape && strides == source.strides);
  DLBRIDGE_CHECK(std::memcmp(&before, &source.tensor, sizeof(before)) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider in(data, size);
  const bool versioned = in.ConsumeBool();
  const bool legacy_next = in.ConsumeBool();
  const bool has_deleter = in.ConsumeIntegralInRange(0, 9) != 0;
  if (!versioned) {
    Source source(in);
    DLManagedTensor managed{source.tensor, nullptr, has_deleter ? [](DLManagedTensor*) { ++deleted; } : nullptr};
    run(&managed, source, legacy_next);
    return 0;
  }
  const std::uint32_t major = in.ConsumeIntegralInRange(0, 4) == 0 ? in.ConsumeIntegral<std::uint32_t>() : 1;
  const std::uint64_t flags = in.ConsumeIntegral<std::uint64_t>();
  DLManagedTensorVersioned whole{};
  whole.version = {major, in.ConsumeIntegral<std::uint32_t>()};
  whole.flags = flags;
  whole.deleter = has_deleter ? [](DLManagedTensorVersioned*) { ++deleted; } : nullptr;
  Source source(in);
  whole.dl_tensor = source.tensor;
  // Of another major version only the ABI prefix exists: reading on is an overflow of this allocation.
  const std::size_t bytes = major == 1 ? sizeof(whole) : offsetof(DLManagedTensorVersioned, dl_tensor);
  auto* managed = static_cast<DLManagedTensorVersioned*>(std::malloc(bytes));
  std::memcpy(static_cast<void*>(managed), &whole, bytes);
  run(managed, source, legacy_next);
  std::free(managed);
  return 0;
}
