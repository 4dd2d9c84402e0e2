// Arrow arrays -> the descriptor, without Python: validated once, shared where the layout allows it, copied where the
// caller allows that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "dlbridge/arrow_nulls.h"
#include "dlbridge/arrow_type.h"
#include "dlbridge/host_copy.h"
#include "dlbridge/tensor.h"
#include "dlbridge/validate.h"

namespace dlbridge::arrow_c {

enum class Nulls : std::uint8_t {
  kRefuse,
  kNan,   // floats only
  kMask,  // a second tensor of bools says which elements are null
};
enum class Copies : std::uint8_t {
  kNever,
  kDeclared,  // only where nulls are to become NaN: that asks for other elements than there are
  kAllowed,
};

// One array of a column, and the rows of it that are meant. Whoever calls keeps it.
struct Part {
  const ArrowArray* array;
  std::int64_t first;
  std::int64_t rows;
};

struct Column {
  const ArrowSchema& schema;
  const ColumnType& type;
  std::span<const Part> parts;
  DLDevice device{kDLCPU, 0};
};

struct ReadOptions {
  Nulls nulls = Nulls::kRefuse;
  Copies copies = Copies::kNever;
  // What the user can do, in the words of the interface that he uses.
  const char* null_remedy = "Hint: fill_null() or drop_null()";
  const char* copy_remedy = "Hint: join chunks, and cast booleans to uint8, first";
};

inline Status device_of(ArrowDeviceType type, std::int64_t id, DLDevice& out) {
  out = {static_cast<DLDeviceType>(type), static_cast<std::int32_t>(id)};
  if (is_host(out)) out.device_id = 0;
  else if (!is_cuda(out))
    return refused("expected memory of the CPU or of CUDA, got " + device_name(out) + ". Copy the array there first");
  if (is_host(out) || (id >= 0 && id <= INT32_MAX)) return {};
  return malformed("the Arrow array says device_id " + std::to_string(id) + ", which no GPU has. " +
                   detail::kFixProducer);
}
inline Status device_of(const ArrowDeviceArray& a, DLDevice& out) { return device_of(a.device_type, a.device_id, out); }

// The specification: for CUDA, sync_event points to a cudaEvent_t; null means that nothing is to be waited for.
inline Ordering ordering_of(const ArrowDeviceArray& a) noexcept {
  return a.sync_event != nullptr ? Ordering::at_event(*static_cast<const std::uintptr_t*>(a.sync_event))
                                 : Ordering::ready();
}

namespace detail {
// Nulls of one level: rows of the column, or of the lists in them. Each takes `block` elements along.
struct Level {
  const std::uint8_t* validity;  // null: no nulls
  std::int64_t begin;
  std::int64_t count;
  std::int64_t block;
};

// Where a part's elements lie.
struct Placed {
  const std::uint8_t* data = nullptr;  // the first element, or the bitmap of packed ones
  std::int64_t bit = 0;                // in the bitmap
  std::int64_t count = 0;              // elements
  std::int64_t nulls = 0;              // of all levels
  std::int32_t levels = 0;
  Level level[kMaxDims + 1];
};

inline std::string column_text(const Column& column) {
  const char* name = column.schema.name;
  return name != nullptr && *name != '\0' ? "column '" + std::string(name) + "'" : std::string("the Arrow array");
}

[[gnu::cold]] inline Status damaged(const std::string& what) { return malformed(what + ". " + kFixProducer); }

inline Status check_array(const ArrowArray& a, std::int64_t buffers, std::int64_t children) {
  if (a.release == nullptr)
    return malformed("the Arrow array, or a child of it, is released already. Hint: each may be imported once");
  if (a.length < 0 || a.offset < 0 || a.n_buffers != buffers || a.n_children != children)
    return damaged("the Arrow array has length " + std::to_string(a.length) + ", offset " + std::to_string(a.offset) +
                   ", " + std::to_string(a.n_buffers) + " buffers and " + std::to_string(a.n_children) +
                   " children; its type has " + std::to_string(buffers) + " and " + std::to_string(children) +
                   ", and no negative numbers");
  if (a.buffers == nullptr) return damaged("the Arrow array's list of buffers is null");
  if (children != 0 && (a.children == nullptr || a.children[0] == nullptr))
    return damaged("the Arrow array's child is null");
  if (a.null_count < -1 || a.null_count > a.length)
    return damaged("the Arrow array has length " + std::to_string(a.length) + " and null_count " +
                   std::to_string(a.null_count));
  if (a.dictionary != nullptr) return damaged("the Arrow array has a dictionary, its schema none");
  if (a.null_count > 0 && a.buffers[0] == nullptr)
    return damaged("the Arrow array says null_count " + std::to_string(a.null_count) + " and has no validity bitmap");
  return {};
}

// Adds the nulls of the rows [begin, begin + level.count) of `a`. null_count says it of all rows, -1 nothing.
inline Status add_nulls(const ArrowArray& a, bool on_host, Level& level, Placed& out) {
  if (a.null_count == 0 || a.buffers[0] == nullptr || level.count == 0) return {};
  if (!on_host)
    return refused("the Arrow array has a validity bitmap in device memory, and may have nulls. Fill or drop them "
                   "first, or copy it to the host");
  level.validity = static_cast<const std::uint8_t*>(a.buffers[0]);
  const bool whole = level.begin == a.offset && level.count == a.length && a.null_count > 0;
  const std::int64_t nulls = whole ? a.null_count : count_zeros(level.validity, level.begin, level.count);
  if (nulls == 0) level.validity = nullptr;
  out.nulls += nulls;
  return {};
}

// Walks down through the lists to the elements. Every product and sum is checked: the numbers are foreign.
inline Status place(const Column& column, const Part& part, Placed& out) {
  const ColumnType& type = column.type;
  const ArrowArray* a = part.array;
  std::int64_t first = part.first, count = part.rows;
  for (std::int32_t i = 0; i <= type.lists; ++i) {
    const bool leaf = i == type.lists;
    DLBRIDGE_TRY(check_array(*a, leaf ? 2 : 1, leaf ? 0 : 1));
    std::int64_t end, begin, last;
    if (first < 0 || count < 0 || __builtin_add_overflow(first, count, &end) || end > a->length)
      return damaged(column_text(column) + " reaches " + std::to_string(count) + " elements from " +
                     std::to_string(first) + " on into an Arrow array of length " + std::to_string(a->length));
    // All that the array claims to have, and not only what is taken of it.
    if (__builtin_add_overflow(a->offset, a->length, &last) ||
        (leaf && __builtin_mul_overflow(last, std::int64_t{type.dtype->itemsize}, &last)))
      return overflow("offset " + std::to_string(a->offset) + " and length " + std::to_string(a->length) +
                      " of the Arrow array leave the address space. " + kFixProducer);
    begin = a->offset + first;
    Level& level = out.level[out.levels++];
    level = {nullptr, begin, count, 1};
    DLBRIDGE_TRY(add_nulls(*a, is_host(column.device), level, out));
    if (leaf) {
      out.data = static_cast<const std::uint8_t*>(a->buffers[1]);
      out.bit = type.packed ? begin : 0;
      out.count = count;
      if (out.data != nullptr && !type.packed) out.data += begin * type.dtype->itemsize;
      if (out.data == nullptr && count != 0) return dlbridge::detail::null_data();
    } else if (__builtin_mul_overflow(begin, type.list_sizes[i], &first) ||
               __builtin_mul_overflow(count, type.list_sizes[i], &count)) {
      return overflow("the lists of the Arrow array hold more elements than 63 bits count. " +
                      std::string(kFixProducer));
    }
    if (!leaf) a = a->children[0];
  }
  for (std::int32_t i = type.lists - 1; i >= 0; --i) out.level[i].block = out.level[i + 1].block * type.list_sizes[i];
  return {};
}

// Shape and strides of `rows` dense rows, by the axes' order in memory.
inline Status lay_out(const ColumnType& type, std::int64_t rows, Tensor& out) {
  std::int64_t dense[kMaxDims], shape[kMaxDims], strides[kMaxDims], stride = 1;
  for (std::int32_t i = type.ndim - 1; i >= 0; --i) {
    dense[i] = stride;
    const std::int64_t extent = i == 0 ? rows : type.extents[i];
    if (extent > 1 && __builtin_mul_overflow(stride, extent, &stride)) return dlbridge::detail::size_overflow();
  }
  for (std::int32_t i = 0; i < type.ndim; ++i) {
    shape[i] = type.order[i] == 0 ? rows : type.extents[type.order[i]];
    strides[i] = dense[type.order[i]];
  }
  return build_layout<StrideUnit::kElements>(out, type.ndim, shape, strides);
}

// Dense memory for `rows` rows, in the order of memory.
inline Status allocate_rows(const ColumnType& type, const DTypeInfo& dtype, std::int64_t rows, Tensor& out) {
  std::int64_t shape[kMaxDims];
  for (std::int32_t i = 0; i < type.ndim; ++i) shape[i] = i == 0 ? rows : type.extents[i];
  return allocate_host(to_dl(dtype.id), type.ndim, shape, out);
}

template <class Visit>
void for_each_null(const Placed& placed, Visit visit) {
  for (std::int32_t i = 0; i < placed.levels; ++i) {
    const Level& level = placed.level[i];
    if (level.validity != nullptr)
      for_each_zero(level.validity, level.begin, level.count,
                    [&](std::int64_t k) { visit(k * level.block, level.block); });
  }
}

inline void fill_nan(const DTypeInfo& dtype, const Placed& placed, void* out) {
  const auto fill = [&]<class T>(T nan) {
    for_each_null(placed,
                  [&](std::int64_t first, std::int64_t n) { std::fill_n(static_cast<T*>(out) + first, n, nan); });
  };
  if (dtype.itemsize == 2) fill(std::uint16_t{0x7e00});
  else if (dtype.itemsize == 4) fill(std::numeric_limits<float>::quiet_NaN());
  else fill(std::numeric_limits<double>::quiet_NaN());
}

inline void copy_part(const ColumnType& type, const Placed& placed, Nulls nulls, std::uint8_t* out) {
  if (type.packed) unpack_bits(placed.data, placed.bit, placed.count, out);
  else std::memcpy(out, placed.data, static_cast<std::size_t>(placed.count * type.dtype->itemsize));
  if (nulls == Nulls::kNan) fill_nan(*type.dtype, placed, out);
}

inline std::string null_text(std::int64_t nulls) { return std::to_string(nulls) + (nulls == 1 ? " null" : " nulls"); }

[[gnu::cold]] inline Status refuse_nulls(const Column& column, std::int64_t nulls, const char* remedy) {
  return refused(column_text(column) + " of Arrow type " + type_name(column.schema) + " has " + null_text(nulls) +
                 ", and a tensor has no place for them. " + remedy);
}

inline Status check_copy(const Column& column, std::int64_t parts, bool nan, const ReadOptions& options) {
  if (options.copies == Copies::kAllowed || (nan && parts == 1 && options.copies == Copies::kDeclared)) return {};
  std::string why = nan ? "its nulls become NaN in a copy of it"
                        : "is of Arrow type " + type_name(column.schema) + ", whose elements are packed to bits";
  if (parts > 1) why = "is in " + std::to_string(parts) + " chunks";
  return {ErrorCode::kCopyRefused, column_text(column) + (nan && parts == 1 ? ": " : " ") + why +
                                       ". A tensor needs a copy of it, and copies are made on request only. " +
                                       options.copy_remedy};
}

struct Totals {
  std::int64_t rows = 0;
  std::int64_t nulls = 0;
  std::int64_t parts = 0;              // that are not empty
  const Part* only = nullptr;          // where there is one, and
  const std::uint8_t* data = nullptr;  // its elements
};

inline Status measure(const Column& column, Totals& out) {
  for (const Part& part : column.parts) {
    Placed placed;
    DLBRIDGE_TRY(place(column, part, placed));
    if (part.rows == 0) continue;
    out.nulls += placed.nulls;
    if (__builtin_add_overflow(out.rows, part.rows, &out.rows)) return dlbridge::detail::size_overflow();
    ++out.parts;
    out.only = &part;
    out.data = placed.data;
  }
  return {};
}

// Validity alone decides which bytes are written: a mask is all false elsewhere.
inline Status make_mask(const Column& column, const Totals& totals, Tensor& mask) {
  Tensor made;
  DLBRIDGE_TRY(allocate_rows(column.type, info(DType::kBool), totals.rows, made));
  auto* out = static_cast<std::uint8_t*>(made.dl.data);
  if (made.size != 0) std::memset(out, 0, static_cast<std::size_t>(made.size));
  for (const Part& part : column.parts) {
    Placed placed;
    DLBRIDGE_TRY(place(column, part, placed));
    for_each_null(placed, [&](std::int64_t first, std::int64_t n) { std::fill_n(out + first, n, std::uint8_t{1}); });
    out += placed.count;
  }
  DLBRIDGE_TRY(lay_out(column.type, totals.rows, made));
  mask = std::move(made);
  return {};
}

inline Status copy_column(const Column& column, const Totals& totals, const ReadOptions& options, Tensor& out) {
  Tensor made;
  DLBRIDGE_TRY(allocate_rows(column.type, *column.type.dtype, totals.rows, made));
  auto* at = static_cast<std::uint8_t*>(made.dl.data);
  for (const Part& part : column.parts) {
    Placed placed;
    DLBRIDGE_TRY(place(column, part, placed));
    if (placed.count == 0) continue;
    copy_part(column.type, placed, options.nulls, at);
    at += placed.count * column.type.dtype->itemsize;
  }
  DLBRIDGE_TRY(lay_out(column.type, totals.rows, made));
  out = std::move(made);
  return {};
}
}  // namespace detail

// Fills `out`: a view of the one part that has rows, read-only and with no owner, for which the caller keeps that part;
// or a copy that owns its memory, where `options` allow one. `mask` is filled for Nulls::kMask, and always owns its
// memory.
inline Status read_column(const Column& column, const ReadOptions& options, Tensor& out, Tensor* mask,
                          const Part** shared) {
  using namespace detail;
  Totals totals;
  DLBRIDGE_TRY(measure(column, totals));
  const DTypeInfo& dtype = *column.type.dtype;
  if (totals.nulls != 0 && options.nulls == Nulls::kRefuse)
    return refuse_nulls(column, totals.nulls, options.null_remedy);
  const bool nan = totals.nulls != 0 && options.nulls == Nulls::kNan;
  if (nan && dtype.code != kDLFloat)
    return {ErrorCode::kMalformed, column_text(column) + " of Arrow type " + type_name(column.schema) + " has " +
                                       null_text(totals.nulls) +
                                       ", and only floats have a NaN. Cast the column to float64 first, or pass "
                                       "nulls='mask'"};
  const bool copies = totals.parts > 1 || nan || (column.type.packed && totals.parts != 0);
  if (!is_host(column.device) && (copies || options.nulls == Nulls::kMask))
    return refused(column_text(column) + " of Arrow type " + type_name(column.schema) +
                   " lies in device memory, where it would have to be rewritten. Copy it to the host first");
  if (copies) DLBRIDGE_TRY(check_copy(column, totals.parts, nan, options));
  if (options.nulls == Nulls::kMask) DLBRIDGE_TRY(make_mask(column, totals, *mask));
  *shared = copies ? nullptr : totals.only;
  if (copies) return copy_column(column, totals, options, out);
  out.set_dtype(dtype);
  out.dl.data = const_cast<std::uint8_t*>(totals.data);
  out.dl.device = column.device;
  out.flags = kFlagReadOnly;  // Arrow's arrays are immutable
  return lay_out(column.type, totals.rows, out);
}

}  // namespace dlbridge::arrow_c
