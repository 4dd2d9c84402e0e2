/* fake_libcuda.c with modules and launches, for the tests of user kernels on machines with no GPU.
 *
 * A "cubin" is the text "HOST:" and the path of a shared library that a host compiler made of the kernel's source (see
 * fake_device.h); a launch runs every thread of it on the host when its stream gets to it. Everything else is refused
 * as an image for another architecture. Build: cc -shared -fPIC -o libcuda.so.1 fake_user_kernels.c -lpthread -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#define cuDeviceGetAttribute base_device_get_attribute
#include "fake_libcuda.c"
#undef cuDeviceGetAttribute

enum { NO_BINARY_FOR_GPU = 209, INVALID_PTX = 218, NOT_FOUND = 500, OUT_OF_RESOURCES = 701 };
enum { MAX_PARAMETERS = 128 };

typedef void (*host_kernel)(void** parameters, const unsigned* grid, const unsigned* block);

struct module {
  void* library;
};
struct function {
  host_kernel run;
  const unsigned* bytes; /* of each parameter, after their number */
  char name[64];
  int dynamic_shared;
};
struct launch {
  host_kernel run;
  unsigned grid[3], block[3], count;
  void* parameters[MAX_PARAMETERS];
};

/* Limits of an H200. */
EXPORT CUresult cuDeviceGetAttribute(int* value, int attribute, int device) {
  static const int known[][2] = {{1, 1024},  {2, 1024},  {3, 1024},    {4, 64}, {5, 2147483647}, {6, 65535},
                                 {7, 65535}, {8, 49152}, {97, 232448}, {16, 4}, {76, 0}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (known[i][0] == attribute && device >= 0 && device < device_count()) {
      *value = known[i][1];
      return OK;
    }
  return base_device_get_attribute(value, attribute, device);
}

EXPORT CUresult cuModuleLoadDataEx(struct module** out, const char* image, unsigned count, int* options,
                                   void** values) {
  ENTER();
  LOG("module_load");
  if (strncmp(image, "HOST:", 5) != 0) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == 5) strcpy(values[i], "fatal: not an image of this device");
    return leave(image[0] == '.' ? INVALID_PTX : NO_BINARY_FOR_GPU);
  }
  void* library = dlopen(image + 5, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return leave(NO_BINARY_FOR_GPU);
  }
  *out = malloc(sizeof **out);
  (*out)->library = library;
  return leave(OK);
}

static void* find_symbol(struct module* module, const char* name, const char* suffix) {
  char symbol[160];
  snprintf(symbol, sizeof symbol, "%s%s", name, suffix);
  return dlsym(module->library, symbol);
}

EXPORT CUresult cuModuleGetFunction(struct function** out, struct module* module, const char* name) {
  ENTER();
  void* run = find_symbol(module, name, "__run");
  if (run == NULL) return leave(NOT_FOUND);
  struct function* function = calloc(1, sizeof *function);
  memcpy(&function->run, &run, sizeof run);
  function->bytes = find_symbol(module, name, "__parameters");
  function->dynamic_shared = 49152;
  snprintf(function->name, sizeof function->name, "%s", name);
  *out = function;
  return leave(OK);
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* out, size_t* bytes, struct module* module, const char* name) {
  ENTER();
  void* address = dlsym(module->library, name);
  const unsigned long* size = find_symbol(module, name, "__bytes");
  if (address == NULL || size == NULL) return leave(NOT_FOUND);
  *out = (CUdeviceptr)address;
  *bytes = *size;
  return leave(OK);
}

EXPORT CUresult cuFuncGetParamInfo(struct function* function, size_t index, size_t* offset, size_t* bytes) {
  if (index >= function->bytes[0]) return INVALID_VALUE;
  *offset = 8 * index;
  *bytes = function->bytes[1 + index];
  return OK;
}

EXPORT CUresult cuFuncGetAttribute(int* value, int attribute, struct function* function) {
  static const int values[] = {1024, 16, 0, 0, 32, 90, 90, 0, 0, -1};
  *value = attribute == 8 ? function->dynamic_shared : values[attribute];
  return OK;
}

EXPORT CUresult cuFuncSetAttribute(struct function* function, int attribute, int value) {
  if (attribute == 8) function->dynamic_shared = value;
  LOG("func_set_attribute attribute=%d value=%d", attribute, value);
  return OK;
}

static void run_launch(void* data) {
  struct launch* launch = data;
  launch->run(launch->parameters, launch->grid, launch->block);
  for (unsigned i = 0; i < launch->count; ++i) free(launch->parameters[i]);
  free(launch);
}

EXPORT CUresult cuLaunchKernel(struct function* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, void* handle, void** parameters,
                               void** extra) {
  ENTER();
  (void)extra;
  struct stream* stream = resolve(handle);
  LOG("launch_kernel name=%s grid=%u,%u,%u block=%u,%u,%u shared=%u stream=%s", function->name, gx, gy, gz, bx, by, bz,
      shared, stream != NULL ? stream->name : "invalid");
  if (stream == NULL) return leave(INVALID_HANDLE);
  if ((uint64_t)bx * by * bz > 1024) return leave(OUT_OF_RESOURCES);
  struct launch* launch = calloc(1, sizeof *launch);
  *launch = (struct launch){function->run, {gx, gy, gz}, {bx, by, bz}, function->bytes[0], {NULL}};
  for (unsigned i = 0; i < launch->count; ++i) { /* the values are taken at the call */
    launch->parameters[i] = malloc(function->bytes[1 + i]);
    memcpy(launch->parameters[i], parameters[i], function->bytes[1 + i]);
  }
  operation call = {.kind = OP_CALL, .to = (char*)launch, .call = run_launch};
  return leave(enqueue(stream, call));
}

EXPORT CUresult cuLaunchCooperativeKernel(struct function* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                          unsigned by, unsigned bz, unsigned shared, void* handle, void** parameters) {
  LOG("cooperative");
  return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, handle, parameters, NULL);
}
