#include "ndarray/core/elementwise.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "dlbridge/cuda_peer.h"
#include "ndarray/core/backend.h"
#include "ndarray/core/comparisons.h"
#include "ndarray/core/copy.h"
#include "ndarray/core/loop.h"
#include "ndarray/core/views.h"
#include "ndarray/kernels/host/copy.h"
#include "ndarray/runtime/lifetime.h"

namespace dlbridge::nd {

namespace {

std::string name_of(DType t) { return std::string(dlbridge::info(t).name); }

int kind_rank(DType t) noexcept {
  if (is_bool(t)) return 0;
  if (is_unsigned(t)) return 1;
  if (is_signed(t)) return 2;
  return is_float(t) ? 3 : 4;
}

struct Call {
  Op op;
  std::span<const Input> inputs;
  const ElementwiseOptions& options;
  const char* name;
  KernelTypes types;
  DLDevice device{kDLCPU, 0};
  const Tensor* arrays[kMaxInputs];  // null: a scalar
  Tensor temporaries[kMaxInputs];
};

[[gnu::cold]] Status no_loop(const Call& call, DType promoted) {
  return {ErrorCode::kWrongType, std::string(call.name) + " is not defined for " + name_of(promoted) +
                                     ". Convert the operands with astype() first"};
}

[[gnu::cold]] Status mixed_devices(const Tensor& a, DLDevice device) {
  return malformed("the operands are on " + device_name(device) + " and " + device_name(a.dl.device) +
                   "; all must be on one device. Move one there: nd.asarray(x, device='" + device_name(device) + "')");
}

// An operand on another GPU is copied where the two can reach each other (peer access); else the user decides.
[[gnu::cold]] Status bring_near(const Tensor& far, DLDevice device, Tensor& copy) {
  const bool reachable =
      is_cuda(far.dl.device) && is_cuda(device) && cuda::ensure_peer(device.device_id, far.dl.device.device_id).ok();
  return reachable ? copy_to(far, device, copy) : mixed_devices(far, device);
}

Status find_device(Call& call) {
  const Tensor* first = call.options.out;
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    const Tensor*& t = call.arrays[k];
    if (t == nullptr) continue;
    if (first == nullptr) {
      first = t;
    } else if (!same_device(t->dl.device, first->dl.device)) [[unlikely]] {
      DLBRIDGE_TRY(bring_near(*t, first->dl.device, call.temporaries[k]));
      t = &call.temporaries[k];
    }
  }
  call.device = first->dl.device;
  return {};
}

// Functions that have loops for floats alone take each operand as the float that holds it: uint8 and int8 meet in
// float16, and not, by way of int16, in float32. A Python int among bools alone is an int64, as elsewhere.
DType result_type_in_floats(std::span<const Input> inputs) noexcept {
  const DType plain = result_type(inputs);
  if (!is_integer(plain)) return plain;
  DType promoted = DType::kBool;
  bool any_integer = false;
  for (const Input& input : inputs) {
    if (is_weak(input)) continue;
    const DType t = dtype_of_operand(input);
    any_integer = any_integer || is_integer(t);
    promoted = promote(promoted, detail::float_for_integer(t));
  }
  return any_integer ? promoted : plain;
}

Status choose_loop(Call& call) {
  const OpInfo& row = info(call.op);
  const std::span operands = call.op == Op::kWhere ? call.inputs.subspan(1) : call.inputs;
  const DType* const asked = call.options.dtype;
  const bool compares = row.rule == TypeRule::kCompare;
  if (compares && asked != nullptr && !is_bool(*asked)) [[unlikely]]
    return {ErrorCode::kWrongType, std::string(call.name) + " returns bool, and dtype is " + name_of(*asked) +
                                       ". Convert the operands with astype() first"};
  const DType promoted = asked != nullptr && !compares  ? *asked
                         : row.rule == TypeRule::kFloat ? result_type_in_floats(operands)
                                                        : result_type(operands);
  if (is_bool(promoted) && row.rule == TypeRule::kNumber) [[unlikely]]
    return {ErrorCode::kWrongType, std::string(call.name) + " is not defined for bool. Use bitwise_xor or logical_not, "
                                                            "or convert with astype('int8')"};
  if (!resolve(row, promoted, call.types)) [[unlikely]]
    return no_loop(call, promoted);
  return {};
}

// Casts to the promoted dtype are safe; those to another one, and any under a stricter rule, must be allowed.
bool casts_safely(const ElementwiseOptions& options) noexcept {
  return options.dtype == nullptr && options.casting >= Casting::kSafe;
}

Status check_inputs(const Call& call) {
  for (std::size_t k = call.op == Op::kWhere ? 1 : 0; k < call.inputs.size(); ++k)
    if (!can_cast(call.inputs[k], call.types.compute, call.options.casting))
      return {ErrorCode::kWrongType, "cannot cast operand " + std::to_string(k) + " from " +
                                         name_of(result_type(call.inputs.subspan(k, 1))) + " to " +
                                         name_of(call.types.compute) + " (casting='" +
                                         std::string(name_of(call.options.casting)) + "')"};
  return {};
}

Status check_power(const Call& call) {
  const Input& exponent = call.inputs[1];
  if (exponent.array == nullptr && is_integer(call.types.compute) && exponent.scalar.i < 0) [[unlikely]]
    return malformed("integers to negative integer powers are not allowed. Convert the base to a float dtype first");
  return {};
}

Status check_out(const Call& call, Dims shape) {
  const Tensor& out = *call.options.out;
  if (out.readonly()) return malformed("the output array is read-only. Write to a copy of it");
  if (!can_cast(call.types.result, dtype_of(out), call.options.casting))
    return {ErrorCode::kWrongType, "cannot cast the result from " + name_of(call.types.result) + " to " +
                                       name_of(dtype_of(out)) + " of the output (casting='" +
                                       std::string(name_of(call.options.casting)) + "'). Use an output of that dtype"};
  const Dims own = shape_of(out);
  bool equal = own.size() >= shape.size();
  for (std::size_t k = 0; equal && k < shape.size(); ++k)
    equal = own[own.size() - shape.size() + k] == shape[k] || shape[k] == 1;
  if (!equal)
    return malformed("the operands broadcast to " + shape_text(shape) + ", which does not fit the output's shape " +
                     shape_text(own));
  return {};
}

// An input that shares memory with the output, other than element for element, is read from a copy.
Status separate(Call& call, const Tensor& out) {
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    const Tensor* t = call.arrays[k];
    if (t == nullptr || !may_overlap(*t, out) || same_elements(*t, out)) continue;
    DLBRIDGE_TRY(copy_as(*t, dtype_of(*t), CopyOrder::kKeep, call.temporaries[k]));
    call.arrays[k] = &call.temporaries[k];
  }
  return {};
}

// where() takes any condition; its kernel wants bool in memory.
Status prepare_condition(Call& call) {
  const Tensor* condition = call.arrays[0];
  if (condition != nullptr && is_bool(dtype_of(*condition))) return {};
  if (condition != nullptr) {
    Tensor as_bool;  // the condition may be the temporary itself, brought from another device
    DLBRIDGE_TRY(copy_as(*condition, DType::kBool, CopyOrder::kKeep, as_bool));
    call.temporaries[0] = std::move(as_bool);
  } else {
    DLBRIDGE_TRY(make_array(call.temporaries[0], DType::kBool, {}, call.device));
    DLBRIDGE_TRY(assign(call.temporaries[0], call.inputs[0], call.name));
  }
  call.arrays[0] = &call.temporaries[0];
  return {};
}

Status set_scalars(const Call& call, ElementwiseArgs& args) {
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    args.dtype[k + 1] = call.arrays[k] != nullptr ? dtype_of(*call.arrays[k]) : call.types.compute;
    if (call.arrays[k] != nullptr) continue;
    args.scalar_mask = static_cast<std::uint8_t>(args.scalar_mask | (1u << (k + 1)));
    DLBRIDGE_TRY(write_scalar(call.inputs[k].scalar, call.types.compute, args.scalars[k + 1]));
  }
  return {};
}

Status walk_outer(const Backend& backend, ElementwiseArgs& args, const OuterLoop& outer, int dim, const char* name) {
  if (dim < 0) return kernel_status(backend, backend.elementwise(args), name);
  for (std::int64_t i = 0; i < outer.shape[dim]; ++i) {
    DLBRIDGE_TRY(walk_outer(backend, args, outer, dim - 1, name));
    for (int k = 0; k < args.operands; ++k)
      if (args.data[k] != nullptr) args.data[k] = static_cast<char*>(args.data[k]) + outer.strides[k][dim];
  }
  for (int k = 0; k < args.operands; ++k)
    if (args.data[k] != nullptr)
      args.data[k] = static_cast<char*>(args.data[k]) - outer.strides[k][dim] * outer.shape[dim];
  return {};
}

Status launch(Call& call, const Tensor& out) {
  ElementwiseArgs args;
  args.op = call.op;
  args.compute = call.types.compute;
  args.scalar_mask = 0;
  args.dtype[0] = dtype_of(out);
  DLBRIDGE_TRY(set_scalars(call, args));
  if (out.size == 0) return {};
  const Tensor* operands[kMaxOperands] = {&out};
  for (std::size_t k = 0; k < call.inputs.size(); ++k) operands[k + 1] = call.arrays[k];
  const std::span used(operands, call.inputs.size() + 1);
  OuterLoop outer;
  plan_loop(used, args, outer);
  const Backend* backend = nullptr;
  DLBRIDGE_TRY(backend_for(call.device, backend));
  cuda::DeviceGuard guard;
  UseGuard uses;
  LongKernel long_kernel;
  args.stream = work_stream(call.device);
  if (args.stream != 0) {
    DLBRIDGE_TRY(guard.enter(call.device.device_id));
    uses.enter();
    for (const Tensor* t : used)
      if (t != nullptr) DLBRIDGE_TRY(acquire(*t, args.stream));
  } else {
    long_kernel.begin(out.size);
  }
  if (outer.ndim == 0) [[likely]]
    return kernel_status(*backend, backend->elementwise(args), call.name);
  return walk_outer(*backend, args, outer, outer.ndim - 1, call.name);
}

Status make_result(const Call& call, Dims shape, Tensor& result) {
  std::int8_t axes[kMaxDims];
  const std::span arrays(call.arrays, call.inputs.size());
  if (memory_order(arrays, shape, axes)) [[likely]]
    return make_array(result, call.types.result, shape, call.device);
  return make_array_as(result, call.types.result, shape, {axes, shape.size()}, call.device);
}

}  // namespace

DType result_type(std::span<const Input> inputs) noexcept {
  bool any = false;
  DType promoted = DType::kBool;
  const auto add = [&](DType t) {
    promoted = any ? promote(promoted, t) : t;
    any = true;
  };
  if (inputs.size() <= 2) [[likely]] {
    for (const Input& input : inputs)
      if (!is_weak(input)) add(dtype_of_operand(input));
  } else {
    // Floats first: each integer then meets the float by itself, int8 and uint8 meet float16 in float16. By way of
    // int16 they would in float32.
    for (const bool floats : {true, false})
      for (const Input& input : inputs)
        if (!is_weak(input) && contains(kInexactSet, dtype_of_operand(input)) == floats) add(dtype_of_operand(input));
  }
  for (const Input& input : inputs)
    if (is_weak(input)) {
      promoted = any ? promote(promoted, input.scalar.kind) : default_dtype(input.scalar.kind);
      any = true;
    }
  return promoted;
}

bool can_cast(DType from, DType to, Casting casting) noexcept {
  switch (casting) {
    case Casting::kNo:
    case Casting::kEquiv: return from == to;
    case Casting::kSafe: return promote(from, to) == to;
    case Casting::kSameKind: return kind_rank(from) <= kind_rank(to);
    case Casting::kUnsafe: break;
  }
  return true;
}

bool can_cast(const Input& from, DType to, Casting casting) noexcept {
  if (!is_weak(from)) return can_cast(dtype_of_operand(from), to, casting);
  const DType natural = default_dtype(from.scalar.kind);
  if (casting == Casting::kEquiv || (casting == Casting::kNo && is_bool(natural))) return natural == to;
  return casting == Casting::kUnsafe || promote(to, from.scalar.kind) == to;
}

std::string_view name_of(Casting casting) noexcept {
  constexpr std::string_view kNames[] = {"no", "equiv", "safe", "same_kind", "unsafe"};
  return kNames[static_cast<std::size_t>(casting)];
}

Status elementwise(Op op, std::span<const Input> inputs, const ElementwiseOptions& options, Tensor& result) {
  if (info(op).rule == TypeRule::kCompare && inputs.size() == 2) {
    bool done = false;
    DLBRIDGE_TRY(compare_beyond_loops(op, inputs, options, result, done));
    if (done) [[unlikely]]
      return {};
  }
  Call call{op, inputs, options, options.name != nullptr ? options.name : info(op).name.data(), {}, {}, {}, {}};
  for (std::size_t k = 0; k < inputs.size(); ++k) call.arrays[k] = inputs[k].array;
  DLBRIDGE_TRY(find_device(call));
  DLBRIDGE_TRY(choose_loop(call));
  if (!casts_safely(options)) [[unlikely]]
    DLBRIDGE_TRY(check_inputs(call));
  if (op == Op::kPower) DLBRIDGE_TRY(check_power(call));
  if (op == Op::kWhere) DLBRIDGE_TRY(prepare_condition(call));
  std::int64_t shape[kMaxDims];
  int ndim = 0;
  DLBRIDGE_TRY(broadcast_shapes({call.arrays, inputs.size()}, shape, ndim));
  const Dims dims(shape, static_cast<std::size_t>(ndim));
  if (options.out == nullptr) [[likely]] {
    DLBRIDGE_TRY(make_result(call, dims, result));
    return launch(call, result);
  }
  DLBRIDGE_TRY(check_out(call, dims));
  DLBRIDGE_TRY(separate(call, *options.out));
  return launch(call, *options.out);
}

Status assign(const Tensor& out, const Input& source, const char* name) {
  const ElementwiseOptions options{&out, nullptr, name};
  Call call{Op::kPositive, {&source, 1}, options, name, {dtype_of(out), dtype_of(out)}, {}, {}, {}};
  call.arrays[0] = source.array;
  Tensor shorter;
  if (source.array != nullptr && source.array->dl.ndim > out.dl.ndim) [[unlikely]]
    DLBRIDGE_TRY(drop_leading_ones(call.arrays[0], out.dl.ndim, shorter));
  DLBRIDGE_TRY(find_device(call));
  DLBRIDGE_TRY(check_out(call, call.arrays[0] != nullptr ? shape_of(*call.arrays[0]) : Dims{}));
  DLBRIDGE_TRY(separate(call, out));
  return launch(call, out);
}

Status store(const Tensor& result, const Tensor& out, const char* name) {
  if (!std::ranges::equal(shape_of(out), shape_of(result)))
    return malformed("the output has shape " + shape_text(shape_of(out)) + ", the result " +
                     shape_text(shape_of(result)) + ". Give an output of that shape");
  const ElementwiseOptions options{&out, nullptr, name};
  const Input source{&result, {}};
  Tensor unused;
  return elementwise(Op::kPositive, {&source, 1}, options, unused);
}

Status comparable(const Tensor& x, Tensor& copy, const Tensor*& out) {
  out = &x;
  if (!is_bool(dtype_of(x))) return {};
  const Input inputs[2] = {{&x, {}}, {nullptr, Scalar::of_bool(false)}};
  out = &copy;
  return elementwise(Op::kNotEqual, inputs, {}, copy);
}

namespace {

// Whether the bytes of `source` are those of its copy, on the host, and so few that to look for a loop takes longer
// than to copy them. Bools are read: every byte but 0 is true.
bool is_small_image(const Tensor& source, const Tensor& copy) noexcept {
  constexpr std::int64_t kMostBytes = 4096;
  const DType dtype = dtype_of(source);
  return is_host(source.dl.device) && dtype == dtype_of(copy) && !is_bool(dtype) &&
         source.size * source.itemsize() <= kMostBytes && source.size > 0 &&
         ((is_c_contiguous(source) && is_c_contiguous(copy)) || (is_f_contiguous(source) && is_f_contiguous(copy)));
}

// The same of few elements that lie apart, of a vector or a matrix.
bool copy_few(const Tensor& source, const Tensor& copy) noexcept {
  constexpr std::int64_t kMostApart = 64;
  const DType dtype = dtype_of(source);
  const bool is_few = source.dl.ndim > 0 && source.dl.ndim <= 2 && source.size > 0 && source.size <= kMostApart;
  if (!is_few || !is_host(source.dl.device) || dtype != dtype_of(copy)) return false;
  const int last = source.dl.ndim - 1, along = last == 1 && source.dl.shape[0] > source.dl.shape[1] ? 0 : last;
  const std::int64_t size = source.itemsize(), n = source.dl.shape[along];
  const std::int64_t strides[] = {copy.dl.strides[along] * size, source.dl.strides[along] * size};
  char* data[] = {static_cast<char*>(copy.dl.data), static_cast<char*>(source.dl.data)};
  const auto copy_line = host_kernels::copy_loop(static_cast<int>(size));
  for (std::int64_t done = 0; done < source.size; done += n) {
    copy_line(data, strides, n);
    data[0] += copy.dl.strides[last - along] * size;
    data[1] += source.dl.strides[last - along] * size;
  }
  auto* const bytes = static_cast<char*>(copy.dl.data);
  if (is_bool(dtype))
    for (std::int64_t i = 0; i < source.size; ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
  return true;
}

}  // namespace

Status copy_as(const Tensor& source, DType dtype, CopyOrder order, Tensor& out) {
  const Tensor* const input = &source;
  std::int8_t axes[kMaxDims];
  const Dims shape = shape_of(source);
  if (order == CopyOrder::kKeep && !copied_order({&input, 1}, shape, axes))
    DLBRIDGE_TRY(make_array_as(out, dtype, shape, {axes, shape.size()}, source.dl.device));
  else DLBRIDGE_TRY(make_array(out, dtype, shape, source.dl.device, order == CopyOrder::kF ? Order::kF : Order::kC));
  if (is_small_image(source, out)) {
    std::memcpy(out.dl.data, source.dl.data, static_cast<std::size_t>(out.size * out.itemsize()));
    return {};
  }
  if (copy_few(source, out)) return {};
  return assign(out, Input{&source, {}}, "copy");
}

}  // namespace dlbridge::nd
