// Captured graphs in Python.
#include <string>
#include <unordered_map>

#include "ndarray/runtime/caching_pool.h"
#include "ndarray/runtime/lifetime.h"
#include "protocols/common/threads.h"
#include "python/src/nd/runtime/objects.h"

namespace dlbridge::py::nd {

namespace {

using core::driver;

constinit Mutex keeping;
std::unordered_map<std::uint64_t, pyb::list>& kept() {
  static auto* made = new std::unordered_map<std::uint64_t, pyb::list>;  // guarded by `keeping`
  return *made;
}

struct GraphValue {
  core::CUgraph graph = nullptr;
  core::CUgraphExec exec = nullptr;
  int device = 0;
  std::uint64_t capture = 0;
  StreamHandle origin = 0;  // where it was captured: what its arrays say is their stream
  StreamHandle last = 0;    // where it was launched last
  pyb::object origin_stream;
  pyb::list alive;

  GraphValue() = default;
  GraphValue(const GraphValue&) = delete;
  GraphValue& operator=(const GraphValue&) = delete;
  // The driver keeps what launches still need; the graph's memory is reused behind the last of them.
  ~GraphValue() {
    if (!core::is_running()) return;
    if (exec != nullptr) static_cast<void>(driver().graph_exec_destroy(exec));
    if (graph != nullptr) static_cast<void>(driver().graph_destroy(graph));
    if (capture != 0) core::forget_capture(device, capture, last != 0 ? last : origin);
  }
};

int capture_mode(const pyb::object& mode) {
  constexpr const char* kNames[] = {"global", "thread_local", "relaxed"};
  if (mode.is_none()) return cuda::kCaptureModeRelaxed;
  for (int i = 0; i < 3; ++i)
    if (mode.equal(pyb::str(kNames[i])) || mode.equal(pyb::int_(i))) return i;
  throw_issue("Stream.begin_capture()", ErrorCode::kMalformed,
              "mode is " + pyb::repr(mode).cast<std::string>() + ". Give 'global', 'thread_local', 'relaxed' or None");
}

void begin(const StreamValue& stream, const pyb::object& mode) {
  if (stream.handle == kLegacyStream)
    throw_issue("Stream.begin_capture()", ErrorCode::kCuda,
                "the legacy default stream cannot be captured. Use a Stream()");
  const OnDevice here(stream.device_or_current("Stream.begin_capture()"), "Stream.begin_capture()");
  throw_if_bad(core::begin_capture(stream.handle, capture_mode(mode)), "Stream.begin_capture()");
}

std::unique_ptr<GraphValue> end(const pyb::object& self) {
  const auto& stream = self.cast<const StreamValue&>();
  auto out = std::make_unique<GraphValue>();
  out->device = stream.device_or_current("Stream.end_capture()");
  out->origin = stream.handle;
  out->origin_stream = self;
  out->capture = core::capture_of(stream.handle).value_or(0);
  if (out->capture != 0) out->alive = take_kept(out->capture);
  const OnDevice here(out->device, "Stream.end_capture()");
  throw_if_bad(core::end_capture(stream.handle, out->graph), "Stream.end_capture()");
  check_call(driver().graph_instantiate(&out->exec, out->graph, 0), "cuGraphInstantiate", "Stream.end_capture()");
  return out;
}

void launch(GraphValue& graph, const pyb::object& stream) {
  const StreamHandle on = stream_argument(stream, graph.device, "Graph.launch()");
  const OnDevice here(graph.device, "Graph.launch()");
  // The arrays that it writes say that the origin is their stream: that is kept true for a launch elsewhere.
  if (on != graph.origin)
    throw_if_bad(cuda::order(on, Ordering::on_stream(graph.origin), graph.device), "Graph.launch()");
  check_call(driver().graph_launch(graph.exec, cuda::detail::as_stream(on)), "cuGraphLaunch", "Graph.launch()");
  graph.last = on;
  if (on != graph.origin)
    throw_if_bad(cuda::order(graph.origin, Ordering::on_stream(on), graph.device), "Graph.launch()");
}

void upload(const GraphValue& graph, const pyb::object& stream) {
  const StreamHandle on = stream_argument(stream, graph.device, "Graph.upload()");
  const OnDevice here(graph.device, "Graph.upload()");
  check_call(driver().graph_upload(graph.exec, cuda::detail::as_stream(on)), "cuGraphUpload", "Graph.upload()");
}

}  // namespace

void keep_for_capture(std::uint64_t capture, pyb::object object) {
  const MutexHold hold(keeping);
  kept()[capture].append(std::move(object));
}

pyb::list take_kept(std::uint64_t capture) {
  const MutexHold hold(keeping);
  const auto found = kept().find(capture);
  if (found == kept().end()) return pyb::list();
  pyb::list out = std::move(found->second);
  kept().erase(found);
  return out;
}

void init_graphs(pyb::module_& m) {
  pyb::class_<GraphValue>(m, "Graph",
                          "Work captured once, to be launched many times. The memory that was allocated "
                          "inside the capture belongs to it, also where an array of it is still in use.")
      .def_readonly("device_id", &GraphValue::device)
      .def_property_readonly("ptr", [](const GraphValue& g) { return reinterpret_cast<std::uintptr_t>(g.exec); })
      .def("launch", &launch, pyb::arg("stream") = pyb::none(), "Queues the work on a stream, None: the current one.")
      .def("upload", &upload, pyb::arg("stream") = pyb::none(), "Brings it to the device before the first launch.");
  const pyb::object base = m.attr("BaseStream");
  const auto method = [&](const char* name, auto function, auto&&... extra) {
    base.attr(name) = pyb::cpp_function(function, pyb::name(name), pyb::is_method(base), extra...);
  };
  method("begin_capture", &begin, pyb::arg("mode") = pyb::none());
  method("end_capture", &end);
  method("is_capturing", [](const StreamValue& s) { return core::capture_of(s.handle).has_value(); });
  base.attr("capturing") = pyb::module_::import("builtins").attr("property")(base.attr("is_capturing"));
}

}  // namespace dlbridge::py::nd
