// One call of an ElementwiseKernel: dtypes, broadcasting, outputs, and the launch of the variant that fits.
#include "python/src/nd/kernels/elementwise_call.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "frameworks/numpy.h"
#include "ndarray/core/elementwise.h"
#include "ndarray/core/scalar.h"
#include "python/src/kit/pybind.h"
#include "python/src/nd/kernels/launch.h"

namespace dlbridge::py::nd {

namespace {

using pyb::literals::operator""_a;

constexpr std::size_t kMaxWords = 500;  // kernels take 4 KiB of parameters
constexpr std::int64_t kMaxBlocks = 0x7fffffff;

// One call, step by step. Every step throws with a Python error set.
class LaunchCall {
 public:
  LaunchCall(PyObject* self, ElementwiseState& state, const ElementwiseOptions& options)
      : self_(self), state_(state), options_(options) {}

  PyObject* run(PyObject* const* args, Py_ssize_t nargs) {
    read_arguments(args, nargs);
    resolve_types();
    find_shape();
    make_outputs();
    separate_outputs();
    cast_scalars();
    if (count_ != 0) launch();
    return results();
  }

 private:
  int parameters() const noexcept { return static_cast<int>(state_.raw.size()); }
  bool is_raw(int k) const noexcept { return state_.raw[static_cast<std::size_t>(k)]; }
  const char* name() const noexcept { return state_.name.c_str(); }
  [[noreturn]] void fail(ErrorCode code, const std::string& message) const { throw_issue(name(), code, message); }
  [[noreturn]] void fail(int k, ErrorCode code, const std::string& message) const {
    fail(code, "argument " + std::to_string(k) + " " + message);
  }

  void read_arguments(PyObject* const* args, Py_ssize_t nargs) {
    if (nargs != state_.inputs && nargs != parameters())
      fail(ErrorCode::kWrongType, "takes " + std::to_string(state_.inputs) + " arguments, or " +
                                      std::to_string(parameters()) + " with the outputs; got " + std::to_string(nargs));
    given_ = static_cast<int>(nargs);
    for (int k = 0; k < given_; ++k) read_argument(args[k], k);
    if (device_ < 0) throw_if_bad(cuda::current_device(device_), name());
  }

  void read_argument(PyObject* argument, int k) {
    if (is_tensor(argument)) return take_array(as_tensor(argument)->tensor, argument, nullptr, k);
    if (Py_TYPE(argument) == frameworks::numpy_array_type)
      fail(k, ErrorCode::kWrongType,
           "is a NumPy array, in the host's memory. Copy it to the device first: "
           "nd.asarray(x)");
    const Parsed parsed = parse_operand(argument, inputs_[k]);
    checked(parsed != Parsed::kError);
    if (parsed == Parsed::kNo) return read_framework_array(argument, k);
    if (is_raw(k) || k >= state_.inputs)
      fail(k, ErrorCode::kWrongType,
           is_raw(k) ? "is a scalar, and the parameter is raw: it takes an array"
                     : "is a scalar, and the parameter is an output: it takes an array");
  }

  void read_framework_array(PyObject* argument, int k) {
    TensorObject* foreign = read_foreign(argument);
    if (foreign != nullptr) return take_array(foreign->tensor, argument, as_object(foreign), k);
    fail(k, ErrorCode::kWrongType, "is a " + type_name(argument) + "; give an array on a CUDA device or a scalar");
  }

  void take_array(const Tensor& tensor, PyObject* object, PyObject* held, int k) {
    uses_.add(tensor, held);
    arrays_[k] = &tensor;
    objects_[k] = object;
    const DLDevice device = tensor.dl.device;
    if (!is_cuda(device))
      fail(k, ErrorCode::kWrongType,
           "is an array on " + device_name(device) +
               "; user kernels run on CUDA "
               "devices. Copy it there first: nd.asarray(x, device='cuda')");
    if (device_ < 0) device_ = device.device_id;
    if (device.device_id != device_)
      fail(k, ErrorCode::kMalformed,
           "is an array on " + device_name(device) + ", and others are on cuda:" + std::to_string(device_) +
               "; all must be on one device");
    if (!core::is_supported(tensor.dtype().id))
      fail(k, ErrorCode::kWrongType,
           "is an array of " + std::string(tensor.dtype().name) + ", which kernels do not take. Convert it first");
    if (k >= state_.inputs && tensor.readonly())
      fail(k, ErrorCode::kRefused, "is a read-only array, and the parameter is an output. Pass a copy");
  }

  void resolve_types() {
    std::string key;
    for (int k = 0; k < given_; ++k) key += type_letter(arrays_[k], inputs_[k].scalar);
    {
      const MutexHold hold(state_.looking);
      if (const auto found = state_.signatures.find(key); found != state_.signatures.end()) [[likely]] {
        dtypes_ = &found->second;
        return;
      }
    }
    std::vector<DType> made = ask_types(key);
    const MutexHold hold(state_.looking);
    dtypes_ = &state_.signatures.emplace(std::move(key), std::move(made)).first->second;
  }

  // self._resolve(given) -> the dtype number of every parameter; raises for a mismatch.
  std::vector<DType> ask_types(const std::string& key) {
    const Ref types = owned(PyObject_CallMethod(self_, "_resolve", "s", key.c_str()));
    const Ref tuple = owned(PySequence_Tuple(types.get()));
    std::vector<DType> out;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple.get()); ++k)
      out.push_back(static_cast<DType>(PyLong_AsLong(PyTuple_GET_ITEM(tuple.get(), k))));
    checked(PyErr_Occurred() == nullptr);
    if (out.size() != state_.raw.size()) throw_error(PyExc_SystemError, "_resolve() gave a wrong number of types");
    return out;
  }

  void find_shape() {
    std::vector<const Tensor*> loop;  // the inputs; the outputs where no input is part of the loop
    for (int k = 0; k < given_ && (k < state_.inputs || loop.empty()); ++k)
      if (arrays_[k] != nullptr && !is_raw(k)) loop.push_back(arrays_[k]);
    if (options_.size != nullptr && options_.size != Py_None) {
      if (!loop.empty())
        fail(ErrorCode::kMalformed, "size is given, and an argument that is not raw already determines it. Leave "
                                    "size out");
      shape_[0] = checked_number(PyLong_AsLongLong(owned(PyNumber_Index(options_.size)).get()));
      if (shape_[0] < 0) fail(ErrorCode::kMalformed, "size is negative");
      ndim_ = 1;
    } else {
      if (loop.empty() && std::any_of(state_.raw.begin(), state_.raw.end(), [](bool raw) { return raw; }))
        fail(ErrorCode::kMalformed, "all array arguments are raw: nothing determines how often to run. Give size=");
      throw_if_bad(core::broadcast_shapes(loop, shape_, ndim_), name());
    }
    count_ = 1;
    for (int k = 0; k < ndim_; ++k) count_ *= shape_[k];
  }
  core::Dims shape() const noexcept { return {shape_, static_cast<std::size_t>(ndim_)}; }

  void make_outputs() {
    for (int k = state_.inputs; k < given_; ++k) {
      if (is_raw(k)) continue;
      const Tensor& out = *arrays_[k];
      if (!std::ranges::equal(core::shape_of(out), shape()))
        fail(k, ErrorCode::kMalformed,
             "is an output of shape " + core::shape_text(core::shape_of(out)) + ", and the arguments broadcast to " +
                 core::shape_text(shape()));
      for (int d = 0; d < ndim_; ++d)
        if (out.dl.strides[d] == 0 && shape_[d] > 1)
          fail(k, ErrorCode::kMalformed, "is an output whose elements share memory (a broadcast view)");
    }
    if (given_ == parameters()) return;
    std::vector<const Tensor*> inputs;
    for (int k = 0; k < state_.inputs; ++k)
      if (arrays_[k] != nullptr && !is_raw(k)) inputs.push_back(arrays_[k]);
    std::int8_t axes[kMaxDims];
    const bool c_order = core::memory_order(inputs, shape(), axes) || state_.traits.uses_index;
    for (int k = state_.inputs; k < parameters(); ++k) {
      if (is_raw(k)) fail(ErrorCode::kWrongType, "a raw output must be given: its size is not known");
      make_output(k, c_order, axes);
    }
  }

  void make_output(int k, bool c_order, const std::int8_t* axes) {
    NewArray& made = made_.emplace_back();
    const DType dtype = (*dtypes_)[static_cast<std::size_t>(k)];
    const DLDevice device{kDLCUDA, device_};
    const Status status =
        c_order ? core::make_array(made.tensor(), dtype, shape(), device)
                : core::make_array_as(made.tensor(), dtype, shape(), {axes, static_cast<std::size_t>(ndim_)}, device);
    arrays_[k] = &made.tensor();
    uses_.add(made.tensor(), nullptr);
    throw_if_bad(status, name());
  }

  // An input that overlaps an output, other than element for element, is read from a copy.
  void separate_outputs() {
    for (int k = state_.inputs; k < given_; ++k)
      for (int other = 0; other < given_; ++other) {
        if (other == k || arrays_[other] == nullptr || is_raw(k) || is_raw(other)) continue;
        const Tensor& a = *arrays_[k];
        const Tensor& b = *arrays_[other];
        if (!core::may_overlap(a, b) || (core::same_elements(a, b) && other < state_.inputs)) continue;
        if (other >= state_.inputs)
          fail(k, ErrorCode::kMalformed, "and another output share memory. Give outputs of their own");
        Tensor& copy = copies_.emplace_back();
        throw_if_bad(core::copy_as(b, b.dtype().id, core::CopyOrder::kKeep, copy), name());
        arrays_[other] = &copy;
        uses_.add(copy, nullptr);
      }
  }

  void cast_scalars() {
    for (int k = 0; k < parameters(); ++k) {
      operands_[k].array = arrays_[k];
      operands_[k].raw = is_raw(k);
      if (arrays_[k] != nullptr) continue;
      const DType dtype = (*dtypes_)[static_cast<std::size_t>(k)];
      throw_if_bad(core::write_scalar(inputs_[k].scalar, dtype, operands_[k].scalar), name());
    }
  }

  void launch() {
    core::GeneratedLoop plan;
    core::plan_generated_loop({operands_, state_.raw.size()}, shape(), state_.traits, plan);
    if (plan.words.size() > kMaxWords)
      fail(ErrorCode::kMalformed, "the call needs " + std::to_string(plan.words.size() * 8) +
                                      " bytes of kernel parameters, and the limit is 4000. Use fewer arrays");
    const ElementwiseVariant* variant = find_variant(plan);
    const StreamHandle stream = resolve_launch_stream(options_.stream, device_, name());
    unsigned threads = 256;
    if (options_.block_size != nullptr && options_.block_size != Py_None) {
      const long wanted = checked_number(PyLong_AsLong(options_.block_size));
      if (wanted < 1 || wanted > 1024) fail(ErrorCode::kMalformed, "block_size must be 1 to 1024");
      threads = static_cast<unsigned>(wanted);
    }
    const std::int64_t tile = std::int64_t{threads} * variant->unroll;
    std::int64_t blocks = std::clamp<std::int64_t>((plan.vectors + tile - 1) / tile, 1, kMaxBlocks);
    if (state_.persistent) blocks = std::min<std::int64_t>(blocks, resident_blocks());
    void* parameters[kMaxKernelParameters + 1];
    std::size_t count = 0;
    for (const std::size_t word : plan.addresses) parameters[count++] = &plan.words[word];
    parameters[count] = plan.words.data();
    const LaunchRequest request{
        variant->function, {static_cast<unsigned>(blocks), 1, 1}, {threads, 1, 1}, 0, stream, false};
    throw_if_bad(launch_ordered(request, parameters, uses_), name());
  }

  std::int64_t resident_blocks() const {
    const core::LaunchLimits* limits = nullptr;
    const Status status = core::launch_limits(device_, limits);
    return status.ok() ? std::max(1, 8 * limits->multiprocessors) : 1;
  }

  const ElementwiseVariant* find_variant(const core::GeneratedLoop& plan) {
    const core::LoopVariant& v = plan.variant;
    std::string key{static_cast<char>(device_), static_cast<char>(v.vector), static_cast<char>(v.ndim),
                    static_cast<char>(v.wide), static_cast<char>(v.index_ndim)};
    key += v.walks;
    for (const int n : v.raw_ndim) key += static_cast<char>(n);
    key += v.raw_dense;
    for (int k = 0; k < parameters(); ++k) {
      key += static_cast<char>((*dtypes_)[static_cast<std::size_t>(k)]);
      key += arrays_[k] != nullptr ? 'a' : 's';
    }
    {
      const MutexHold hold(state_.looking);
      if (const auto found = state_.variants.find(key); found != state_.variants.end()) [[likely]]
        return found->second.get();
    }
    return build_variant(plan, key);
  }

  // self._build(device, **fields of codegen.Loop) -> (module, symbol, unroll): the variant, compiled and loaded.
  const ElementwiseVariant* build_variant(const core::GeneratedLoop& plan, const std::string& key) {
    const core::LoopVariant& v = plan.variant;
    std::string kinds;
    pyb::tuple dtypes(static_cast<std::size_t>(parameters()));
    for (int k = 0; k < parameters(); ++k) {
      kinds += arrays_[k] == nullptr ? 's' : is_raw(k) ? 'r' : 'a';
      dtypes[static_cast<std::size_t>(k)] = info((*dtypes_)[static_cast<std::size_t>(k)]).name;
    }
    auto variant = std::make_unique<ElementwiseVariant>();
    without_pybind([&] {
      const pyb::object built = pyb::handle(self_).attr("_build")(
          device_, "vector"_a = v.vector, "ndim"_a = v.ndim, "wide"_a = v.wide, "index_ndim"_a = v.index_ndim,
          "walks"_a = v.walks, "raw_ndim"_a = pyb::tuple(pyb::cast(v.raw_ndim)), "raw_dense"_a = v.raw_dense,
          "dtypes"_a = dtypes, "kinds"_a = kinds, "words"_a = plan.words.size());
      const auto [module, symbol, unroll] = built.cast<std::tuple<std::uintptr_t, std::string, int>>();
      variant->unroll = unroll;
      throw_if_bad(
          core::get_function(reinterpret_cast<core::CUmodule>(module), device_, symbol.c_str(), variant->function),
          name());
    });
    // Where another thread was faster, its variant stays: it may be at a launch.
    const MutexHold hold(state_.looking);
    return state_.variants.try_emplace(key, std::move(variant)).first->second.get();
  }

  PyObject* results() {
    const int outputs = parameters() - state_.inputs;
    if (state_.no_return) Py_RETURN_NONE;
    if (outputs == 1 && !state_.return_tuple) return result(state_.inputs);
    Ref tuple = owned(PyTuple_New(outputs));
    for (int k = 0; k < outputs; ++k) PyTuple_SET_ITEM(tuple.get(), k, result(state_.inputs + k));
    return tuple.release();
  }
  PyObject* result(int k) {
    if (given_ == parameters()) return Ref::borrow(objects_[k]).release();
    return made_[static_cast<std::size_t>(k - state_.inputs)].commit();
  }

  // Constructed in place, never moved: others hold the addresses of their tensors.
  template <class T>
  class Fixed {
   public:
    template <class... A>
    T& emplace_back(A&&... a) {
      items_.push_back(std::make_unique<T>(std::forward<A>(a)...));
      return *items_.back();
    }
    T& operator[](std::size_t k) { return *items_[k]; }

   private:
    std::vector<std::unique_ptr<T>> items_;
  };

  PyObject* self_;
  ElementwiseState& state_;
  const ElementwiseOptions& options_;
  int given_ = 0;
  int device_ = -1;
  int ndim_ = 0;
  std::int64_t count_ = 0;
  std::int64_t shape_[kMaxDims];
  const std::vector<DType>* dtypes_ = nullptr;
  core::Input inputs_[kMaxKernelParameters];
  const Tensor* arrays_[kMaxKernelParameters] = {};
  PyObject* objects_[kMaxKernelParameters];
  core::KernelOperand operands_[kMaxKernelParameters];
  Fixed<NewArray> made_;
  Fixed<Tensor> copies_;
  ArrayUses uses_;
};

}  // namespace

PyObject* call_elementwise(PyObject* self, ElementwiseState& state, const ElementwiseOptions& options,
                           PyObject* const* args, Py_ssize_t nargs) {
  return LaunchCall(self, state, options).run(args, nargs);
}

}  // namespace dlbridge::py::nd
