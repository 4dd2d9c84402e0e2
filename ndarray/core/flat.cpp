#include "ndarray/core/flat.h"

#include <cstring>

#include "ndarray/core/ready.h"
#include "ndarray/runtime/lifetime.h"

namespace dlbridge::nd {

namespace {

// Values as the bytes of elements of x, one behind the other, in memory that is not written to.
struct Values {
  ScalarValue scalar;
  Tensor copy;
  const char* bytes = nullptr;
  std::int64_t count = 1;
};

Status prepare(const Tensor& x, const Input& given, Values& out) {
  const DType dtype = dtype_of(x);
  if (given.array == nullptr) {
    DLBRIDGE_TRY(write_scalar(given.scalar, dtype, out.scalar));
    out.bytes = reinterpret_cast<const char*>(out.scalar.bytes);
    return {};
  }
  const Tensor* ready = nullptr;
  DLBRIDGE_TRY(ready_as(dtype, *given.array, out.copy, ready));
  if (ready != &out.copy && (is_bool(dtype) || may_overlap(*ready, x))) {  // bools become 0 and 1
    DLBRIDGE_TRY(copy_as(*ready, dtype, CopyOrder::kC, out.copy));
    ready = &out.copy;
  }
  out.bytes = elements<const char>(*ready);
  out.count = ready->size;
  return {};
}

template <std::size_t kSize, class Place>
void write_each(const Tensor& x, std::int64_t n, Place place, const Values& values) noexcept {
  char* const base = elements<char>(x);
  const bool is_line = is_c_contiguous(x);
  std::int64_t at = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t offset = is_line ? place(k) * static_cast<std::int64_t>(kSize) : flat_offset(x, place(k));
    std::memcpy(base + offset, values.bytes + at * static_cast<std::int64_t>(kSize), kSize);
    if (++at == values.count) at = 0;
  }
}

template <std::size_t kSize>
void write_all(const Tensor& x, const FlatPlaces& places, const Values& values) noexcept {
  const auto* listed = elements<const std::int64_t>(places.listed);
  if (listed != nullptr) write_each<kSize>(x, places.count, [=](std::int64_t k) { return listed[k]; }, values);
  else if (places.step == 1) {
    write_each<kSize>(x, places.count, [first = places.first](std::int64_t k) { return first + k; }, values);
  } else {
    write_each<kSize>(
        x, places.count, [first = places.first, step = places.step](std::int64_t k) { return first + k * step; },
        values);
  }
}

}  // namespace

std::int64_t flat_offset(const Tensor& x, std::int64_t place) noexcept {
  if (is_c_contiguous(x)) return place * x.itemsize();
  std::int64_t offset = 0;
  for (int k = x.dl.ndim - 1; k > 0; place /= x.dl.shape[k--]) offset += place % x.dl.shape[k] * x.dl.strides[k];
  return (offset + place * x.dl.strides[0]) * x.itemsize();
}

Status list_places(const Tensor& positions, std::int64_t size, FlatPlaces& out, bool& found) {
  DLBRIDGE_TRY(copy_as(positions, DType::kInt64, CopyOrder::kC, out.listed));
  out.count = out.listed.size;
  found = dtype_of(positions) != DType::kUInt64;  // those past int64 would look as if they counted from the end
  for (std::int64_t& place : std::span(elements<std::int64_t>(out.listed), static_cast<std::size_t>(out.count))) {
    found = found && place >= -size && place < size;
    if (place < 0) place += size;
  }
  return {};
}

Status write_flat(const Tensor& x, const FlatPlaces& places, const Input& values) {
  Values ready;
  DLBRIDGE_TRY(prepare(x, values, ready));
  LongKernel long_kernel;
  long_kernel.begin(places.count);
  switch (x.itemsize()) {
    case 1: write_all<1>(x, places, ready); break;
    case 2: write_all<2>(x, places, ready); break;
    case 4: write_all<4>(x, places, ready); break;
    case 8: write_all<8>(x, places, ready); break;
    default: write_all<16>(x, places, ready);
  }
  return {};
}

}  // namespace dlbridge::nd
