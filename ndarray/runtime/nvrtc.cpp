#include "ndarray/runtime/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <mutex>

namespace dlbridge::nd::nvrtc {

namespace {

struct ProgramTag;
using Program = ProgramTag*;
using Result = int;

// nvrtcResult, as nvrtc.h numbers it.
constexpr Result kSuccess = 0;
constexpr Result kInvalidInput = 3;
constexpr Result kInvalidOption = 5;
constexpr Result kCompilation = 6;
constexpr Result kNameExpressionNotValid = 10;

#define DLBRIDGE_NVRTC_FUNCTIONS(X)                                                    \
  X(version, "nvrtcVersion", (int*, int*))                                             \
  X(get_num_supported_archs, "nvrtcGetNumSupportedArchs", (int*))                      \
  X(get_supported_archs, "nvrtcGetSupportedArchs", (int*))                             \
  X(create_program, "nvrtcCreateProgram",                                              \
    (Program*, const char*, const char*, int, const char* const*, const char* const*)) \
  X(destroy_program, "nvrtcDestroyProgram", (Program*))                                \
  X(compile_program, "nvrtcCompileProgram", (Program, int, const char* const*))        \
  X(get_program_log_size, "nvrtcGetProgramLogSize", (Program, std::size_t*))           \
  X(get_program_log, "nvrtcGetProgramLog", (Program, char*))                           \
  X(get_cubin_size, "nvrtcGetCUBINSize", (Program, std::size_t*))                      \
  X(get_cubin, "nvrtcGetCUBIN", (Program, char*))                                      \
  X(get_ptx_size, "nvrtcGetPTXSize", (Program, std::size_t*))                          \
  X(get_ptx, "nvrtcGetPTX", (Program, char*))                                          \
  X(add_name_expression, "nvrtcAddNameExpression", (Program, const char*))             \
  X(get_lowered_name, "nvrtcGetLoweredName", (Program, const char*, const char**))

struct Functions {
#define DLBRIDGE_NVRTC_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
  DLBRIDGE_NVRTC_FUNCTIONS(DLBRIDGE_NVRTC_MEMBER)
#undef DLBRIDGE_NVRTC_MEMBER
  const char* (*get_error_string)(Result) = nullptr;
};

struct Library {
  Functions fn;
  Info info;
};

std::mutex open_mutex;
const Library* opened = nullptr;  // guarded by open_mutex until it is set; then constant

std::string resolve(void* handle, Functions& fn) {
#define DLBRIDGE_NVRTC_RESOLVE(member, symbol, parameters)                    \
  fn.member = reinterpret_cast<decltype(fn.member)>(::dlsym(handle, symbol)); \
  if (fn.member == nullptr) return "it has no " symbol ": NVRTC of CUDA 11.2 or newer is needed";
  DLBRIDGE_NVRTC_FUNCTIONS(DLBRIDGE_NVRTC_RESOLVE)
#undef DLBRIDGE_NVRTC_RESOLVE
  fn.get_error_string = reinterpret_cast<decltype(fn.get_error_string)>(::dlsym(handle, "nvrtcGetErrorString"));
  return {};
}

std::string describe(const Functions& fn, Result result) {
  const char* text = fn.get_error_string != nullptr ? fn.get_error_string(result) : nullptr;
  return text != nullptr ? text : "nvrtcResult " + std::to_string(result);
}

// What NVRTC opens by its name alone while it compiles. That of a wheel lies beside it, where no loader looks.
void open_builtins(const Info& info) {
  const std::size_t folder = info.path.rfind('/') + 1;
  if (folder == 0) return;  // the loader found NVRTC itself
  const std::string version = std::to_string(info.version.major) + "." + std::to_string(info.version.minor);
  ::dlopen((info.path.substr(0, folder) + "libnvrtc-builtins.so." + version).c_str(), RTLD_NOW | RTLD_LOCAL);
}

// Empty on success, else why the candidate cannot be used.
std::string load(const std::string& path, int newest_major, Library& library) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return why != nullptr ? why : "it cannot be opened";
  }
  if (std::string missing = resolve(handle, library.fn); !missing.empty()) return missing;
  Info& info = library.info;
  info.path = path;
  if (const Result result = library.fn.version(&info.version.major, &info.version.minor); result != kSuccess)
    return "nvrtcVersion failed with " + describe(library.fn, result);
  if (newest_major > 0 && info.version.major > newest_major)
    return "it is NVRTC " + std::to_string(info.version.major) + "." + std::to_string(info.version.minor) +
           ", and the driver runs code of CUDA " + std::to_string(newest_major) + " at most";
  int count = 0;
  if (const Result result = library.fn.get_num_supported_archs(&count); result != kSuccess || count <= 0)
    return "nvrtcGetNumSupportedArchs failed with " + describe(library.fn, result);
  info.architectures.resize(static_cast<std::size_t>(count));
  if (const Result result = library.fn.get_supported_archs(info.architectures.data()); result != kSuccess)
    return "nvrtcGetSupportedArchs failed with " + describe(library.fn, result);
  std::sort(info.architectures.begin(), info.architectures.end());
  open_builtins(info);
  return {};
}

Status failure(Result result, const char* what) {
  return {ErrorCode::kCuda, std::string(what) + " failed with " + describe(opened->fn, result)};
}
Status check(Result result, const char* what) { return result == kSuccess ? Status() : failure(result, what); }

// Owns a program.
class Compilation {
 public:
  Compilation() = default;
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;
  ~Compilation() {
    if (program_ != nullptr) static_cast<void>(opened->fn.destroy_program(&program_));
  }

  Status create(const Request& request) {
    std::vector<const char*> names, texts;
    for (const auto& [name, text] : request.headers) {
      names.push_back(name.c_str());
      texts.push_back(text.c_str());
    }
    DLBRIDGE_TRY(check(opened->fn.create_program(&program_, request.source.c_str(), request.name.c_str(),
                                                 static_cast<int>(names.size()), texts.data(), names.data()),
                       "nvrtcCreateProgram"));
    for (const std::string& expression : request.name_expressions)
      DLBRIDGE_TRY(check(opened->fn.add_name_expression(program_, expression.c_str()), "nvrtcAddNameExpression"));
    return {};
  }

  Status run(const Request& request, Output& out) {
    std::vector<const char*> options;
    for (const std::string& option : request.options) options.push_back(option.c_str());
    const Result result = opened->fn.compile_program(program_, static_cast<int>(options.size()), options.data());
    DLBRIDGE_TRY(read(opened->fn.get_program_log_size, opened->fn.get_program_log, "nvrtcGetProgramLog", out.log));
    while (!out.log.empty() && (out.log.back() == '\0' || out.log.back() == '\n')) out.log.pop_back();
    if (result == kInvalidOption || result == kInvalidInput)
      return malformed("NVRTC takes no such options: " + (out.log.empty() ? describe(opened->fn, result) : out.log));
    if (result != kSuccess && result != kCompilation && result != kNameExpressionNotValid)
      return failure(result, "nvrtcCompileProgram");
    out.succeeded = result == kSuccess;
    if (!out.succeeded && out.log.empty()) out.log = describe(opened->fn, result);
    return {};
  }

  Status take(const Request& request, Output& out) {
    for (const std::string& expression : request.name_expressions) {
      const char* lowered = nullptr;
      DLBRIDGE_TRY(check(opened->fn.get_lowered_name(program_, expression.c_str(), &lowered), "nvrtcGetLoweredName"));
      out.lowered_names.emplace_back(lowered);
    }
    return request.machine_code ? read(opened->fn.get_cubin_size, opened->fn.get_cubin, "nvrtcGetCUBIN", out.image)
                                : read(opened->fn.get_ptx_size, opened->fn.get_ptx, "nvrtcGetPTX", out.image);
  }

 private:
  Status read(Result (*size)(Program, std::size_t*), Result (*get)(Program, char*), const char* what,
              std::string& out) {
    std::size_t bytes = 0;
    DLBRIDGE_TRY(check(size(program_, &bytes), what));
    out.assign(bytes, '\0');
    return bytes == 0 ? Status() : check(get(program_, out.data()), what);
  }

  Program program_ = nullptr;
};

}  // namespace

Status open(const std::vector<std::string>& candidates, int newest_major, const Info*& out) {
  const std::lock_guard lock(open_mutex);
  std::string reasons;
  for (const std::string& path : candidates) {
    if (opened != nullptr) break;
    auto* library = new Library;
    const std::string reason = load(path, newest_major, *library);
    if (reason.empty()) {
      opened = library;  // never freed: compilations may run at the end of the process
      break;
    }
    delete library;
    reasons += "\n  " + path + ": " + reason;
  }
  if (opened != nullptr) {
    out = &opened->info;
    return {};
  }
  return {
      ErrorCode::kCuda,
      "no usable NVRTC (the CUDA C++ compiler as a library) was found. Install the wheel with `pip install "
      "nvidia-cuda-nvrtc` (of the driver's major CUDA version), or set DLBRIDGE_NVRTC to the path of a libnvrtc.so." +
          (reasons.empty() ? std::string() : " Tried:" + reasons)};
}

Status compile(const Request& request, Output& out) {
  {
    const std::lock_guard lock(open_mutex);
    if (opened == nullptr) return {ErrorCode::kCuda, "NVRTC has not been opened"};
  }
  Compilation compilation;
  DLBRIDGE_TRY(compilation.create(request));
  DLBRIDGE_TRY(compilation.run(request, out));
  return out.succeeded ? compilation.take(request, out) : Status();
}

}  // namespace dlbridge::nd::nvrtc
