#include "ndarray/core/linear.h"

#include <algorithm>

#include "dlbridge/validate.h"
#include "ndarray/core/elementwise.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/ready.h"
#include "ndarray/core/views.h"
#include "ndarray/kernels/host/correlate.h"

namespace dlbridge::nd {

namespace {

Status as_matrix(const Tensor& x, bool as_row, Tensor& out) {
  if (x.dl.ndim != 1) return make_view(x, shape_of(x), {x.dl.strides, static_cast<std::size_t>(x.dl.ndim)}, 0, out);
  const std::int64_t n = x.dl.shape[0], s = x.dl.strides[0];
  const std::int64_t shape[2] = {as_row ? 1 : n, as_row ? n : 1};
  const std::int64_t strides[2] = {as_row ? n * s : s, as_row ? s : 1};
  return make_view(x, shape, strides, 0, out);
}

bool unit(std::int64_t extent, std::int64_t stride) noexcept { return extent <= 1 || stride == 1; }

// Bools on the host are read where they lie, whatever their bytes, and only until they decide.
bool reads_any_bools(const Tensor& x) noexcept { return is_bool(dtype_of(x)) && !is_cuda(x.dl.device); }

// Windows of a vector, as of a convolution, are read where they lie when a vector multiplies them, on any device.
bool reads_windows(const Tensor& x, const Tensor& other) noexcept {
  const int n = x.dl.ndim;
  return x.dl.strides[n - 2] == 1 && x.dl.strides[n - 1] == 1 && other.dl.shape[other.dl.ndim - 1] == 1;
}

// On the host a matrix that a vector multiplies is read once, where it lies: a copy would be read once more.
bool reads_any_matrix(const Tensor& x, const Tensor& vector) noexcept {
  return is_host(x.dl.device) &&
         std::min(vector.dl.shape[vector.dl.ndim - 1], vector.dl.shape[vector.dl.ndim - 2]) == 1;
}

// One matrix axis must have stride 1 and the other a positive one that BLAS can say; the batch axes one stride.
bool kernel_takes(const Tensor& x, const Tensor& other, std::int64_t& batch_stride) noexcept {
  if (!is_aligned(x)) return false;
  const int n = x.dl.ndim;
  const std::int64_t rows = x.dl.shape[n - 2], columns = x.dl.shape[n - 1];
  const std::int64_t row = x.dl.strides[n - 2], column = x.dl.strides[n - 1];
  const bool row_major = unit(columns, column) && (rows <= 1 || row >= columns);
  const bool column_major = unit(rows, row) && (columns <= 1 || column >= rows);
  if (!row_major && !column_major && !reads_any_bools(x) && !reads_any_matrix(x, other) && !reads_windows(x, other))
    return false;
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  std::reverse_copy(x.dl.shape, x.dl.shape + n - 2, shape);
  std::reverse_copy(x.dl.strides, x.dl.strides + n - 2, strides);
  std::int64_t* const batch_rows[] = {strides};
  const int batch_ndim = merge_dims(shape, n - 2, batch_rows, 1);
  if (batch_ndim > 1) return false;
  batch_stride = batch_ndim == 0 ? 0 : strides[0];
  return batch_stride >= 0;
}

struct Side {
  Tensor matrix, spread, copy;
  const Tensor* ready = nullptr;
  std::int64_t batch_stride = 0;
};

Status prepare_side(Side& side, const Tensor& other, Dims batch, DType dtype) {
  std::int64_t shape[kMaxDims];
  std::copy(batch.begin(), batch.end(), shape);
  std::copy_n(side.matrix.dl.shape + side.matrix.dl.ndim - 2, 2, shape + batch.size());
  DLBRIDGE_TRY(broadcast_view(side.matrix, {shape, batch.size() + 2}, side.spread));
  if (is_bool(dtype) && !reads_any_bools(side.spread)) {
    const Tensor* bools = nullptr;
    DLBRIDGE_TRY(comparable(side.spread, side.copy, bools));
    side.spread = std::move(side.copy);
    side.copy = Tensor();
  }
  side.ready = &side.spread;
  if (dtype_of(side.spread) == dtype && kernel_takes(side.spread, other, side.batch_stride)) return {};
  DLBRIDGE_TRY(copy_as(side.spread, dtype, CopyOrder::kC, side.copy));
  side.ready = &side.copy;
  static_cast<void>(kernel_takes(side.copy, other, side.batch_stride));
  return {};
}

// BLAS wants a leading dimension of at least the other extent, also for a single row or column.
void matrix_strides(const Tensor& x, std::int64_t& row, std::int64_t& column) noexcept {
  const int n = x.dl.ndim;
  const std::int64_t rows = x.dl.shape[n - 2], columns = x.dl.shape[n - 1];
  row = x.dl.strides[n - 2];
  column = x.dl.strides[n - 1];
  if (columns <= 1 && rows <= 1) {
    row = column = 1;
    return;
  }
  if (rows <= 1) row = column == 1 ? columns : 1;
  else if (columns <= 1) column = row == 1 ? rows : 1;
}

// The strides and extents are there.
Status run(MatmulArgs& args, const Tensor& a, const Tensor& b, const Tensor& c) {
  args.dtype = dtype_of(c);
  args.a = a.dl.data;
  args.b = b.dl.data;
  args.c = c.dl.data;
  const Tensor* const used[] = {&a, &b, &c};
  KernelCall call(c.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  args.stream = call.stream();
  args.workspace = call.workspace();
  return call.end(call.backend().matmul(args), "matmul");
}

Status launch(const Side& a, const Side& b, std::int64_t batch, const Tensor& c, bool conjugates) {
  const int n = c.dl.ndim;
  MatmulArgs args{};
  args.conjugates = conjugates;
  args.batch = batch;
  args.m = c.dl.shape[n - 2];
  args.n = c.dl.shape[n - 1];
  args.k = a.ready->dl.shape[a.ready->dl.ndim - 1];
  args.a_batch = a.batch_stride;
  args.b_batch = b.batch_stride;
  args.c_batch = args.m * args.n;
  matrix_strides(*a.ready, args.a_row, args.a_column);
  matrix_strides(*b.ready, args.b_row, args.b_column);
  return run(args, *a.ready, *b.ready, c);
}

// Two vectors on the host that are read as they lie.
bool is_plain_dot(const Tensor& a, const Tensor& b) noexcept {
  return a.dl.ndim == 1 && b.dl.ndim == 1 && a.size > 0 && is_host(a.dl.device) && dtype_of(a) == dtype_of(b) &&
         !is_bool(dtype_of(a)) && is_aligned(a) && is_aligned(b);
}
Status plain_dot(const Tensor& a, const Tensor& b, bool conjugates, Tensor& result) {
  DLBRIDGE_TRY(make_array(result, dtype_of(a), {}, a.dl.device));
  MatmulArgs args{};
  args.batch = args.m = args.n = args.c_batch = 1;
  args.k = args.a_row = a.size;
  args.b_column = 1;
  args.a_column = a.dl.strides[0];
  args.b_row = b.dl.strides[0];
  args.conjugates = conjugates;
  return run(args, a, b, result);
}

Status check_operands(const Tensor& a, const Tensor& b) {
  if (a.dl.ndim == 0 || b.dl.ndim == 0)
    return malformed("matmul takes arrays of at least one axis, got shapes " + shape_text(shape_of(a)) + " and " +
                     shape_text(shape_of(b)) + ". Use multiply for scalars");
  if (!same_device(a.dl.device, b.dl.device))
    return malformed("the operands are on " + device_name(a.dl.device) + " and " + device_name(b.dl.device) +
                     "; both must be on one device");
  const std::int64_t inner_a = a.dl.shape[a.dl.ndim - 1], inner_b = b.dl.shape[std::max(b.dl.ndim - 2, 0)];
  if (inner_a != inner_b)
    return malformed("the last axis of " + shape_text(shape_of(a)) + " and the " +
                     (b.dl.ndim == 1 ? "axis" : "second last axis") + " of " + shape_text(shape_of(b)) +
                     " must have one extent");
  return {};
}

// conjugates: the conjugate of `a` is meant; on the host.
Status multiply(const Tensor& a, const Tensor& b, bool conjugates, Tensor& result) {
  DLBRIDGE_TRY(check_operands(a, b));
  if (is_plain_dot(a, b)) return plain_dot(a, b, conjugates, result);
  Side left, right;
  DLBRIDGE_TRY(as_matrix(a, true, left.matrix));
  DLBRIDGE_TRY(as_matrix(b, false, right.matrix));
  Tensor left_batch, right_batch;  // views of the leading axes only, for their shapes
  const auto leading = [](const Tensor& t, Tensor& out) {
    const auto n = static_cast<std::size_t>(t.dl.ndim) - 2;
    return make_view(t, {t.dl.shape, n}, {t.dl.strides, n}, 0, out);
  };
  DLBRIDGE_TRY(leading(left.matrix, left_batch));
  DLBRIDGE_TRY(leading(right.matrix, right_batch));
  const Tensor* const batches[2] = {&left_batch, &right_batch};
  std::int64_t shape[kMaxDims];
  int ndim = 0;
  DLBRIDGE_TRY(broadcast_shapes(batches, shape, ndim));
  const Dims batch(shape, static_cast<std::size_t>(ndim));
  const DType dtype = promote(dtype_of(a), dtype_of(b));
  DLBRIDGE_TRY(prepare_side(left, right.matrix, batch, dtype));
  DLBRIDGE_TRY(prepare_side(right, left.matrix, batch, dtype));
  std::int64_t full[kMaxDims];
  std::copy(batch.begin(), batch.end(), full);
  full[ndim] = left.matrix.dl.shape[left.matrix.dl.ndim - 2];
  full[ndim + 1] = right.matrix.dl.shape[right.matrix.dl.ndim - 1];
  Tensor c;
  DLBRIDGE_TRY(make_array(c, dtype, {full, batch.size() + 2}, a.dl.device));
  std::int64_t batches_count = 1;
  for (const std::int64_t extent : batch) batches_count *= extent;
  if (c.size != 0) {
    if (left.ready->size == 0) DLBRIDGE_TRY(assign(c, Input{nullptr, Scalar::of_int(0)}, "matmul"));
    else DLBRIDGE_TRY(launch(left, right, batches_count, c, conjugates));
  }
  std::int64_t final_shape[kMaxDims];
  std::size_t n = 0;
  for (const std::int64_t extent : batch) final_shape[n++] = extent;
  if (a.dl.ndim > 1) final_shape[n++] = full[ndim];
  if (b.dl.ndim > 1) final_shape[n++] = full[ndim + 1];
  if (n == batch.size() + 2) {
    result = std::move(c);
    return {};
  }
  bool viewed = true;
  return reshape_view(c, {final_shape, n}, Order::kC, result, viewed);
}

}  // namespace

Status matmul(const Tensor& a, const Tensor& b, Tensor& result) { return multiply(a, b, false, result); }

namespace {
// With an axis of extent 1 before axis `at`.
Status with_unit_axis(const Tensor& x, int at, Tensor& out) {
  if (x.dl.ndim == kMaxDims)
    return malformed("an array of " + std::to_string(kMaxDims) + " axes has no room for one more");
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  std::copy_n(x.dl.shape, at, shape);
  std::copy_n(x.dl.strides, at, strides);
  shape[at] = 1;
  strides[at] = 0;
  std::copy(x.dl.shape + at, x.dl.shape + x.dl.ndim, shape + at + 1);
  std::copy(x.dl.strides + at, x.dl.strides + x.dl.ndim, strides + at + 1);
  const auto ndim = static_cast<std::size_t>(x.dl.ndim) + 1;
  return make_view(x, {shape, ndim}, {strides, ndim}, 0, out);
}

Status sum_products(const Tensor& a, const Tensor& b, bool conjugates, Tensor& result) {
  if (a.dl.ndim == 1 && b.dl.ndim == 1) return multiply(a, b, conjugates, result);
  Tensor row, column, product;
  DLBRIDGE_TRY(with_unit_axis(a, a.dl.ndim - 1, row));
  DLBRIDGE_TRY(with_unit_axis(b, b.dl.ndim, column));
  DLBRIDGE_TRY(multiply(row, column, conjugates, product));
  const auto ndim = static_cast<std::size_t>(product.dl.ndim) - 2;
  DLBRIDGE_TRY(make_view(product, {product.dl.shape, ndim}, {product.dl.strides, ndim}, 0, result));
  result.flags = product.flags;  // it outlives what it is a view of
  return {};
}
}  // namespace

Status vecdot(const Tensor& a, const Tensor& b, Tensor& result) {
  if (a.dl.ndim == 0 || b.dl.ndim == 0) return malformed("an array is 0-d; a vector has one or more dimensions");
  const std::int64_t n = a.dl.shape[a.dl.ndim - 1], other = b.dl.shape[b.dl.ndim - 1];
  if (n != other)
    return malformed(std::to_string(n) + " and " + std::to_string(other) +
                     " elements along the axis; they must be equal");
  const bool conjugates = is_complex(dtype_of(a));
  if (!conjugates || is_host(a.dl.device)) return sum_products(a, b, conjugates, result);
  const Input input{&a, {}};
  Tensor conjugate;
  DLBRIDGE_TRY(elementwise(Op::kConjugate, {&input, 1}, {}, conjugate));
  return sum_products(conjugate, b, false, result);
}

namespace {
template <class T>
void correlate_as(const Tensor& a, const Tensor& v, std::int64_t before, const Tensor& out) noexcept {
  host_kernels::correlate<T>(
      {elements<const T>(a), a.size, elements<const T>(v), v.size, before, out.size, elements<T>(out)});
}
}  // namespace

Status correlate(const Tensor& a, const Tensor& v, CorrelateMode mode, Tensor& out, bool& done) {
  constexpr std::int64_t kFew = 32;  // factors: for more the host multiplies matrices, too
  const DType dtype = promote(dtype_of(a), dtype_of(v));
  const bool is_plain_float = dtype == DType::kFloat32 || dtype == DType::kFloat64;
  const std::int64_t few = std::min(a.size, v.size), many = std::max(a.size, v.size);
  done = is_host(a.dl.device) && is_host(v.dl.device) && a.dl.ndim == 1 && v.dl.ndim == 1 && few > 0 && few <= kFew &&
         (is_plain_float || (is_integer(dtype) && itemsize(dtype) >= 4));
  if (!done) return {};
  const bool turns = v.size > a.size;  // the sums of products of `a` with each part of `v`, in reverse order
  const std::int64_t before = mode == CorrelateMode::kFull ? few - 1 : mode == CorrelateMode::kSame ? few / 2 : 0;
  const std::int64_t count = mode == CorrelateMode::kFull   ? many + few - 1
                             : mode == CorrelateMode::kSame ? many
                                                            : many - few + 1;
  Tensor copies[2];
  const Tensor *longer = nullptr, *shorter = nullptr;
  DLBRIDGE_TRY(ready_as(dtype, turns ? v : a, copies[0], longer));
  DLBRIDGE_TRY(ready_as(dtype, turns ? a : v, copies[1], shorter));
  DLBRIDGE_TRY(make_array(out, dtype, {&count, 1}, a.dl.device));
  const Tensor* const used[] = {longer, shorter, &out};
  KernelCall call(out.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  const bool is_wide = itemsize(dtype) == 8;
  const auto run = is_plain_float ? (is_wide ? &correlate_as<double> : &correlate_as<float>)
                                  : (is_wide ? &correlate_as<std::uint64_t> : &correlate_as<std::uint32_t>);
  run(*longer, *shorter, before, out);
  if (turns && is_wide) std::reverse(elements<std::uint64_t>(out), elements<std::uint64_t>(out) + count);
  else if (turns) std::reverse(elements<std::uint32_t>(out), elements<std::uint32_t>(out) + count);
  return call.end(0, "correlate");
}

}  // namespace dlbridge::nd
