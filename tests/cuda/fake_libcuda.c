/* A libcuda.so.1 without a GPU, for tests: the driver functions that dlbridge calls, over host memory.
 *
 * Streams are queues that run only when somebody synchronises, so that a missing wait gives wrong values rather than
 * luck: an operation sees what was ordered before it and nothing else. Streams do not order themselves against the
 * legacy default stream, which is stricter than CUDA. Devices are FAKE_CUDA_DEVICES (default 2). Everything that
 * matters is written to a log. Build: cc -shared -fPIC -o libcuda.so.1 fake_libcuda.c -lpthread
 */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int CUresult;
typedef uintptr_t CUdeviceptr;

enum {
  OK = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  ILLEGAL_ADDRESS = 700,
  CAPTURE_ISOLATION = 905,
  CAPTURE_IMPLICIT = 906
};
enum { MAX_DEVICES = 64, MAX_STREAMS = 1024, MAX_BLOCKS = 8192, MAX_DEPTH = 32 };
/* KIND_SHARED: what cuMemAlloc gives where FAKE_CUDA_IPC is set; KIND_IMPORTED: the same of another process. */
enum { KIND_DEVICE, KIND_MANAGED, KIND_HOST, KIND_SHARED, KIND_IMPORTED };
static const size_t device_bytes = (size_t)1 << 30;

struct stream;
struct context {
  int device, primary;
  struct stream* legacy;
  struct stream* per_thread;
};

typedef struct operation {
  enum { OP_COPY, OP_COPY_2D, OP_FILL, OP_WAIT, OP_WAIT_WORD, OP_SET_WORD, OP_FREE, OP_CALL } kind;
  char* to;
  const char* from;
  void* staged; /* pageable source, taken at the call */
  size_t bytes, to_pitch, from_pitch, rows;
  int value;
  struct stream* other; /* OP_WAIT: until `other` has done `until` operations */
  uint64_t until;
  void (*call)(void*); /* OP_CALL: with `to` */
  struct operation* next;
} operation;

struct graph {
  operation* head;
  int count;
};

struct stream {
  struct context* context;
  char name[24];
  int alive, blocking, capturing;
  int priority;
  struct graph* graph; /* of a capture begun through the driver: takes the operations */
  uint64_t capture_id, queued, done;
  operation *head, *tail;
};
struct event {
  struct context* context;
  int id, alive;
  struct stream* stream;
  uint64_t until;
  uint32_t* words; /* of one that other processes see: how many of its records have happened, and how many there are */
  int fd;          /* of the words; -1 for one that was opened */
};
struct block {
  char* start;
  size_t bytes;
  int device, kind, fd;
  uint64_t id;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context primaries[MAX_DEVICES];
static struct stream* streams[MAX_STREAMS]; /* never freed, so that a destroyed handle can be recognised */
static struct block blocks[MAX_BLOCKS];
static int stream_count, event_count, block_count;
static size_t live_bytes;
static uint64_t last_block_id;
static int64_t fail_alloc_after = -1;
static int fail_for_good;
static CUresult sticky = OK;
static pid_t owner_pid;
static char* log_text;
static size_t log_length, log_capacity;
static _Thread_local struct context* stack[MAX_DEPTH];
static _Thread_local int depth;

#define EXPORT __attribute__((visibility("default")))
#define LOG(...)                                \
  do {                                          \
    char line_[256];                            \
    snprintf(line_, sizeof line_, __VA_ARGS__); \
    log_line(line_);                            \
  } while (0)
/* Every driver function but cuInit: the checks that the driver makes first. */
#define ENTER()                                                          \
  do {                                                                   \
    if (owner_pid == 0 || owner_pid != getpid()) return NOT_INITIALIZED; \
    pthread_mutex_lock(&lock);                                           \
    if (sticky != OK) return leave(sticky);                              \
  } while (0)

static CUresult leave(CUresult result) {
  pthread_mutex_unlock(&lock);
  return result;
}

static void log_line(const char* line) {
  size_t length = strlen(line);
  if (log_length + length + 2 > log_capacity) {
    log_capacity = 2 * (log_capacity + length + 2);
    log_text = realloc(log_text, log_capacity);
    if (log_text == NULL) abort();
  }
  memcpy(log_text + log_length, line, length);
  log_length += length;
  log_text[log_length++] = '\n';
  log_text[log_length] = 0;
}

static int device_count(void) {
  const char* text = getenv("FAKE_CUDA_DEVICES");
  int count = text != NULL ? atoi(text) : 2;
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  if (visible != NULL) {
    int entries = *visible != 0;
    for (; *visible != 0; ++visible) entries += *visible == ',';
    if (entries < count) count = entries;
  }
  return count < 0 ? 0 : count > MAX_DEVICES ? MAX_DEVICES : count;
}

static struct context* current(void) { return depth > 0 ? stack[depth - 1] : NULL; }

static struct stream* new_stream(struct context* context, int blocking, const char* name) {
  if (stream_count == MAX_STREAMS) return NULL;
  struct stream* stream = calloc(1, sizeof *stream);
  if (stream == NULL) return NULL;
  stream->context = context;
  stream->alive = 1;
  stream->blocking = blocking;
  if (name != NULL) snprintf(stream->name, sizeof stream->name, "%s%d", name, context->device);
  else snprintf(stream->name, sizeof stream->name, "s%d", stream_count);
  streams[stream_count++] = stream;
  return stream;
}

static void init_context(struct context* context, int device, int primary) {
  context->device = device;
  context->primary = primary;
  context->legacy = new_stream(context, 1, "legacy");
  context->per_thread = new_stream(context, 1, "per_thread");
}

/* The stream behind a handle, NULL for one that is not alive. 1 and 2 mean the current context's. */
static struct stream* resolve(void* handle) {
  struct context* context = current();
  if ((uintptr_t)handle <= 1) return context != NULL ? context->legacy : NULL;
  if ((uintptr_t)handle == 2) return context != NULL ? context->per_thread : NULL;
  for (int i = 0; i < stream_count; ++i)
    if (streams[i] == handle) return streams[i]->alive ? streams[i] : NULL;
  return NULL;
}

static struct block* find_block(const void* pointer) {
  const char* p = pointer;
  for (int i = 0; i < block_count; ++i)
    if (blocks[i].start != NULL && p >= blocks[i].start && p < blocks[i].start + blocks[i].bytes) return &blocks[i];
  return NULL;
}

/* New memory that another process can map by its descriptor. */
static void* shared_memory(size_t bytes, int* fd) {
  *fd = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (*fd < 0 || ftruncate(*fd, (off_t)bytes) != 0) return NULL;
  void* start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
  return start != MAP_FAILED ? start : NULL;
}

/* Whether this is the allocation that was told to fail. */
static int is_to_fail(void) {
  const int fails = fail_alloc_after == 0;
  if (fails ? !fail_for_good : fail_alloc_after > 0) --fail_alloc_after;
  return fails;
}

static void* take_block(size_t bytes, int device, int kind) {
  if (is_to_fail()) return NULL;
  struct block* slot = NULL;
  for (int i = 0; i < block_count && slot == NULL; ++i)
    if (blocks[i].start == NULL) slot = &blocks[i];
  if (slot == NULL && block_count < MAX_BLOCKS) slot = &blocks[block_count++];
  const int on_device = kind == KIND_DEVICE || kind == KIND_SHARED;
  if (slot == NULL || bytes == 0 || bytes > (on_device ? device_bytes : (size_t)1 << 40)) return NULL;
  size_t rounded = (bytes + 511) & ~(size_t)511;
  int fd = -1;
  char* start = kind == KIND_SHARED ? shared_memory(bytes, &fd) : aligned_alloc(512, rounded);
  if (start == NULL) return NULL;
  memset(start, 0xcd, kind == KIND_SHARED ? bytes : rounded);
  *slot = (struct block){start, bytes, device, kind, fd, ++last_block_id};
  live_bytes += bytes;
  return start;
}

static int drop_block(const void* pointer) {
  struct block* block = find_block(pointer);
  if (block == NULL || block->start != pointer) return 0;
  live_bytes -= block->bytes;
  if (block->kind != KIND_IMPORTED) memset(block->start, 0xdd, block->bytes);
  if (block->kind == KIND_SHARED || block->kind == KIND_IMPORTED) munmap(block->start, block->bytes);
  else free(block->start);
  if (block->fd >= 0) close(block->fd);
  block->start = NULL;
  return 1;
}

/* ---- the queues */

static void run_until(struct stream* stream, uint64_t until);

static void run_operation(operation* op) {
  switch (op->kind) {
    case OP_COPY: memmove(op->to, op->staged != NULL ? op->staged : op->from, op->bytes); break;
    case OP_COPY_2D:
      for (size_t row = 0; row < op->rows; ++row)
        memmove(op->to + row * op->to_pitch, op->from + row * op->from_pitch, op->bytes);
      break;
    case OP_FILL: memset(op->to, op->value, op->bytes); break;
    case OP_WAIT: run_until(op->other, op->until); break;
    case OP_WAIT_WORD: break; /* run_until() has waited */
    case OP_SET_WORD: __atomic_store_n((uint32_t*)op->to, (uint32_t)op->value, __ATOMIC_RELEASE); break;
    case OP_FREE: drop_block(op->to); break;
    case OP_CALL: /* a host function may want a lock that a caller of ours holds */
      pthread_mutex_unlock(&lock);
      op->call(op->to);
      pthread_mutex_lock(&lock);
      break;
  }
}

static uint32_t load_word(const uint32_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

static int waits_for_word(const operation* op) {
  return op->kind == OP_WAIT_WORD && load_word((uint32_t*)op->to) < (uint32_t)op->value;
}

static void run_until(struct stream* stream, uint64_t until) {
  while (stream->head != NULL && stream->done < until) {
    operation* op = stream->head;
    if (waits_for_word(op)) { /* others go on meanwhile, and may run this queue when the word is there */
      pthread_mutex_unlock(&lock);
      usleep(100);
      pthread_mutex_lock(&lock);
      continue;
    }
    stream->head = op->next;
    if (stream->head == NULL) stream->tail = NULL;
    ++stream->done;
    run_operation(op);
    free(op->staged);
    free(op);
  }
}

static void run_everything(void) {
  for (int i = 0; i < stream_count; ++i) run_until(streams[i], streams[i]->queued);
}

static CUresult enqueue(struct stream* stream, operation op) {
  operation* kept = malloc(sizeof *kept);
  if (kept == NULL) return OUT_OF_MEMORY;
  *kept = op;
  if (stream->graph != NULL) {
    operation** end = &stream->graph->head;
    while (*end != NULL) end = &(*end)->next;
    *end = kept;
    ++stream->graph->count;
    return OK;
  }
  if (stream->tail != NULL) stream->tail->next = kept;
  else stream->head = kept;
  stream->tail = kept;
  ++stream->queued;
  return OK;
}

static CUresult queue_copy(const char* what, void* to, const void* from, size_t bytes, void* handle, int stage) {
  struct stream* stream = resolve(handle);
  LOG("%s bytes=%zu stream=%s", what, bytes, stream != NULL ? stream->name : "invalid");
  if (stream == NULL) return INVALID_HANDLE;
  operation op = {.kind = OP_COPY, .to = to, .from = from, .bytes = bytes};
  if (stage) { /* pageable memory is read before the call returns */
    op.staged = malloc(bytes > 0 ? bytes : 1);
    if (op.staged == NULL) return OUT_OF_MEMORY;
    memcpy(op.staged, from, bytes);
  }
  return enqueue(stream, op);
}

/* ---- the driver API */

EXPORT CUresult cuInit(unsigned flags) {
  (void)flags;
  pthread_mutex_lock(&lock);
  if (device_count() == 0) return leave(NO_DEVICE);
  if (owner_pid == 0) owner_pid = getpid();
  return leave(owner_pid == getpid() ? OK : NOT_INITIALIZED);
}

EXPORT CUresult cuDriverGetVersion(int* version) {
  *version = 12080;
  return OK;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char** out) {
  switch (error) {
    case OK: *out = "CUDA_SUCCESS"; break;
    case INVALID_VALUE: *out = "CUDA_ERROR_INVALID_VALUE"; break;
    case OUT_OF_MEMORY: *out = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case NOT_INITIALIZED: *out = "CUDA_ERROR_NOT_INITIALIZED"; break;
    case NO_DEVICE: *out = "CUDA_ERROR_NO_DEVICE"; break;
    case INVALID_DEVICE: *out = "CUDA_ERROR_INVALID_DEVICE"; break;
    case INVALID_CONTEXT: *out = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case INVALID_HANDLE: *out = "CUDA_ERROR_INVALID_HANDLE"; break;
    case ILLEGAL_ADDRESS: *out = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case CAPTURE_ISOLATION: *out = "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"; break;
    case CAPTURE_IMPLICIT: *out = "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"; break;
    default: *out = NULL; return INVALID_VALUE;
  }
  return OK;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char** out) {
  *out = error == OK ? "no error" : "an error of the fake driver";
  return OK;
}

EXPORT CUresult cuDeviceGetCount(int* count) {
  *count = device_count();
  return OK;
}

EXPORT CUresult cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device < 0 || device >= device_count()) return INVALID_DEVICE;
  switch (attribute) {
    case 115: *value = getenv("FAKE_CUDA_NO_POOLS") == NULL; break; /* MEMORY_POOLS_SUPPORTED */
    case 75: *value = 9; break;                                     /* COMPUTE_CAPABILITY_MAJOR */
    case 83: *value = 1; break;                                     /* MANAGED_MEMORY */
    default: *value = 0;
  }
  return OK;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(struct context** out, int device) {
  ENTER();
  if (device < 0 || device >= device_count()) return leave(INVALID_DEVICE);
  if (primaries[device].legacy == NULL) { /* a context takes memory of the device */
    if (is_to_fail()) return leave(OUT_OF_MEMORY);
    init_context(&primaries[device], device, 1);
  }
  LOG("ctx_retain device=%d", device);
  *out = &primaries[device];
  return leave(OK);
}

EXPORT CUresult cuCtxGetCurrent(struct context** out) {
  ENTER();
  *out = current();
  return leave(OK);
}

EXPORT CUresult cuCtxGetDevice(int* out) {
  ENTER();
  if (current() == NULL) return leave(INVALID_CONTEXT);
  *out = current()->device;
  return leave(OK);
}

EXPORT CUresult cuCtxPushCurrent_v2(struct context* context) {
  ENTER();
  if (context == NULL || depth == MAX_DEPTH) return leave(INVALID_CONTEXT);
  LOG("ctx_push device=%d", context->device);
  stack[depth++] = context;
  return leave(OK);
}

EXPORT CUresult cuCtxPopCurrent_v2(struct context** out) {
  ENTER();
  if (depth == 0) return leave(INVALID_CONTEXT);
  *out = stack[--depth];
  LOG("ctx_pop device=%d", (*out)->device);
  return leave(OK);
}

EXPORT CUresult cuPointerGetAttributes(unsigned count, const int* attributes, void** values, CUdeviceptr pointer) {
  ENTER();
  const struct block* block = find_block((const void*)pointer);
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case 2: *(unsigned*)values[i] = block == NULL ? 0 : block->kind == KIND_HOST ? 1 : 2; break;
      case 7: *(uint64_t*)values[i] = block == NULL ? 0 : block->id; break; /* BUFFER_ID */
      case 8: *(unsigned*)values[i] = block != NULL && block->kind == KIND_MANAGED; break;
      case 9: *(int*)values[i] = block == NULL ? -2 : block->device; break;
      case 11: *(char**)values[i] = block == NULL ? NULL : block->start; break;            /* RANGE_START_ADDR */
      case 12: *(size_t*)values[i] = block == NULL ? 0 : block->bytes; break;              /* RANGE_SIZE */
      case 13: *(unsigned*)values[i] = block != NULL && block->kind == KIND_SHARED; break; /* LEGACY_CUDA_IPC_CAPABLE */
      default: return leave(INVALID_VALUE);
    }
  }
  return leave(OK);
}

EXPORT CUresult cuStreamCreate(struct stream** out, unsigned flags) {
  ENTER();
  if (current() == NULL) return leave(INVALID_CONTEXT);
  *out = new_stream(current(), (flags & 1) == 0, NULL);
  if (*out == NULL) return leave(OUT_OF_MEMORY);
  LOG("stream_create stream=%s device=%d", (*out)->name, current()->device);
  return leave(OK);
}

EXPORT CUresult cuStreamDestroy_v2(struct stream* handle) {
  ENTER();
  struct stream* stream = resolve(handle);
  if (stream == NULL) return leave(INVALID_HANDLE);
  run_until(stream, stream->queued);
  stream->alive = 0;
  return leave(OK);
}

EXPORT CUresult cuStreamSynchronize(void* handle) {
  ENTER();
  struct stream* stream = resolve(handle);
  LOG("stream_synchronize stream=%s", stream != NULL ? stream->name : "invalid");
  if (stream == NULL) return leave(INVALID_HANDLE);
  run_until(stream, stream->queued);
  return leave(OK);
}

EXPORT CUresult cuStreamWaitEvent(void* handle, struct event* event, unsigned flags) {
  ENTER();
  (void)flags;
  struct stream* stream = resolve(handle);
  LOG("stream_wait stream=%s event=%d", stream != NULL ? stream->name : "invalid", event->id);
  if (stream == NULL || !event->alive) return leave(INVALID_HANDLE);
  if (event->words != NULL && event->fd < 0)
    return leave(enqueue(
        stream,
        (operation){.kind = OP_WAIT_WORD, .to = (char*)event->words, .value = (int)load_word(event->words + 1)}));
  if (event->stream == NULL) return leave(OK);
  if (stream->capturing && !event->stream->capturing) {
    LOG("capture_invalidated stream=%s", stream->name);
    return leave(CAPTURE_ISOLATION);
  }
  return leave(enqueue(stream, (operation){.kind = OP_WAIT, .other = event->stream, .until = event->until}));
}

static int blocking_capture(const struct context* context) {
  for (int i = 0; i < stream_count; ++i)
    if (streams[i]->context == context && streams[i]->capturing && streams[i]->blocking) return 1;
  return 0;
}

static CUresult capture_status(void* handle, int* status, uint64_t* id) {
  struct stream* stream = resolve(handle);
  if (stream == NULL) return INVALID_HANDLE;
  if (stream == stream->context->legacy && blocking_capture(stream->context)) return CAPTURE_IMPLICIT;
  *status = stream->capturing;
  if (id != NULL) *id = stream->capture_id;
  return OK;
}

EXPORT CUresult cuStreamIsCapturing(void* handle, int* status) {
  ENTER();
  return leave(capture_status(handle, status, NULL));
}

EXPORT CUresult cuStreamGetCaptureInfo_v2(void* handle, int* status, uint64_t* id, void** graph, const void** deps,
                                          size_t* count) {
  ENTER();
  (void)graph, (void)deps, (void)count;
  return leave(capture_status(handle, status, id));
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
  static _Thread_local int thread_mode;
  int previous = thread_mode;
  thread_mode = *mode;
  *mode = previous;
  return OK;
}

EXPORT CUresult cuStreamGetCtx(void* handle, struct context** out) {
  ENTER();
  struct stream* stream = resolve(handle);
  if (stream == NULL) return leave(INVALID_HANDLE);
  *out = stream->context;
  return leave(OK);
}

EXPORT CUresult cuEventCreate(struct event** out, unsigned flags) {
  ENTER();
  if (current() == NULL) return leave(INVALID_CONTEXT);
  *out = calloc(1, sizeof **out);
  if (*out == NULL) return leave(OUT_OF_MEMORY);
  **out = (struct event){current(), ++event_count, 1, NULL, 0, NULL, -1};
  if ((flags & 4) != 0) { /* INTERPROCESS, which wants DISABLE_TIMING */
    if ((flags & 2) == 0) return leave(INVALID_VALUE);
    (*out)->words = shared_memory(2 * sizeof(uint32_t), &(*out)->fd);
    if ((*out)->words == NULL) return leave(OUT_OF_MEMORY);
  }
  LOG("event_create event=%d flags=%u device=%d", event_count, flags, current()->device);
  return leave(OK);
}

EXPORT CUresult cuEventDestroy_v2(struct event* event) {
  ENTER();
  LOG("event_destroy event=%d", event->id);
  if (event->fd >= 0) close(event->fd); /* a queue may wait for a word, or set it, later */
  free(event);
  return leave(OK);
}

EXPORT CUresult cuEventRecord(struct event* event, void* handle) {
  ENTER();
  struct stream* stream = resolve(handle);
  LOG("event_record event=%d stream=%s", event->id, stream != NULL ? stream->name : "invalid");
  if (stream == NULL || stream->context != event->context) return leave(INVALID_HANDLE);
  if (event->words != NULL) {
    const uint32_t number = __atomic_add_fetch(event->words + 1, 1, __ATOMIC_ACQ_REL);
    enqueue(stream, (operation){.kind = OP_SET_WORD, .to = (char*)event->words, .value = (int)number});
  }
  event->stream = stream;
  event->until = stream->queued;
  return leave(OK);
}

EXPORT CUresult cuEventSynchronize(struct event* event) {
  ENTER();
  LOG("event_synchronize event=%d", event->id);
  if (event->stream != NULL) run_until(event->stream, event->until);
  return leave(OK);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  ENTER();
  if (current() == NULL) return leave(INVALID_CONTEXT);
  void* block = take_block(bytes, current()->device, getenv("FAKE_CUDA_IPC") != NULL ? KIND_SHARED : KIND_DEVICE);
  LOG("alloc bytes=%zu device=%d%s", bytes, current()->device, block == NULL ? " failed" : "");
  *out = (CUdeviceptr)block;
  return leave(block != NULL ? OK : OUT_OF_MEMORY);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  ENTER();
  run_everything();
  LOG("free");
  return leave(drop_block((void*)pointer) ? OK : INVALID_VALUE);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, void* handle) {
  ENTER();
  struct stream* stream = resolve(handle);
  if (stream == NULL) return leave(INVALID_HANDLE);
  void* block = take_block(bytes, stream->context->device, KIND_DEVICE);
  LOG("alloc_async bytes=%zu stream=%s%s", bytes, stream->name, block == NULL ? " failed" : "");
  *out = (CUdeviceptr)block;
  return leave(block != NULL ? OK : OUT_OF_MEMORY);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, void* handle) {
  ENTER();
  struct stream* stream = resolve(handle);
  LOG("free_async stream=%s", stream != NULL ? stream->name : "invalid");
  if (stream == NULL) return leave(INVALID_HANDLE);
  return leave(enqueue(stream, (operation){.kind = OP_FREE, .to = (char*)pointer}));
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, void* stream) {
  ENTER();
  if (find_block((void*)to) == NULL) return leave(INVALID_VALUE);
  return leave(queue_copy("memcpy_htod", (void*)to, from, bytes, stream, find_block(from) == NULL));
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, void* stream) {
  ENTER();
  if (find_block((void*)from) == NULL) return leave(INVALID_VALUE);
  return leave(queue_copy("memcpy_dtoh", to, (void*)from, bytes, stream, 0));
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, void* stream) {
  ENTER();
  if (find_block((void*)to) == NULL || find_block((void*)from) == NULL) return leave(INVALID_VALUE);
  return leave(queue_copy("memcpy_dtod", (void*)to, (void*)from, bytes, stream, 0));
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, struct context* to_context, CUdeviceptr from,
                                  struct context* from_context, size_t bytes, void* stream) {
  ENTER();
  const struct block* target = find_block((void*)to);
  const struct block* source = find_block((void*)from);
  if (target == NULL || source == NULL || target->device != to_context->device ||
      source->device != from_context->device)
    return leave(INVALID_VALUE);
  return leave(queue_copy("memcpy_peer", (void*)to, (void*)from, bytes, stream, 0));
}

typedef struct {
  size_t src_x, src_y;
  unsigned src_type;
  const void* src_host;
  CUdeviceptr src_device;
  void* src_array;
  size_t src_pitch, dst_x, dst_y;
  unsigned dst_type;
  void* dst_host;
  CUdeviceptr dst_device;
  void* dst_array;
  size_t dst_pitch, width, height;
} memcpy_2d;

EXPORT CUresult cuMemcpy2DAsync_v2(const memcpy_2d* copy, void* handle) {
  ENTER();
  struct stream* stream = resolve(handle);
  if (stream == NULL) return leave(INVALID_HANDLE);
  if (copy->src_pitch < copy->width || copy->dst_pitch < copy->width || copy->src_pitch > INT32_MAX)
    return leave(INVALID_VALUE);
  LOG("memcpy_2d width=%zu height=%zu pitch=%zu stream=%s", copy->width, copy->height, copy->src_pitch, stream->name);
  return leave(enqueue(stream, (operation){.kind = OP_COPY_2D,
                                           .to = copy->dst_type == 1 ? copy->dst_host : (void*)copy->dst_device,
                                           .from = copy->src_type == 1 ? copy->src_host : (const void*)copy->src_device,
                                           .bytes = copy->width,
                                           .to_pitch = copy->dst_pitch,
                                           .from_pitch = copy->src_pitch,
                                           .rows = copy->height}));
}

/* ---- what tests call */

/* Copies the log, NUL-terminated, into `out`; returns its full length. */
EXPORT size_t fake_cuda_log(char* out, size_t size) {
  pthread_mutex_lock(&lock);
  if (size > 0) {
    size_t count = log_length < size - 1 ? log_length : size - 1;
    if (count > 0) memcpy(out, log_text, count);
    out[count] = 0;
  }
  size_t length = log_length;
  pthread_mutex_unlock(&lock);
  return length;
}

/* Runs all queues, empties the log and forgets injected failures. Contexts, streams and memory stay. */
EXPORT void fake_cuda_reset(void) {
  pthread_mutex_lock(&lock);
  run_everything();
  log_length = 0;
  if (log_text != NULL) log_text[0] = 0;
  fail_alloc_after = -1;
  sticky = OK;
  pthread_mutex_unlock(&lock);
}

static void* allocate(size_t bytes, int device, int kind) {
  pthread_mutex_lock(&lock);
  void* block = take_block(bytes, device, kind);
  pthread_mutex_unlock(&lock);
  return block;
}
EXPORT void* fake_cuda_alloc(size_t bytes, int device) { return allocate(bytes, device, KIND_DEVICE); }
EXPORT void* fake_cuda_alloc_managed(size_t bytes, int device) { return allocate(bytes, device, KIND_MANAGED); }
EXPORT void* fake_cuda_alloc_host(size_t bytes) { return allocate(bytes, 0, KIND_HOST); }

/* 1 when `pointer` was live. The producer's own free: does not wait for anything. */
EXPORT int fake_cuda_free(void* pointer) {
  pthread_mutex_lock(&lock);
  int freed = drop_block(pointer);
  pthread_mutex_unlock(&lock);
  return freed;
}

EXPORT size_t fake_cuda_live_bytes(void) {
  pthread_mutex_lock(&lock);
  size_t bytes = live_bytes;
  pthread_mutex_unlock(&lock);
  return bytes;
}

/* The n-th allocation from now (0: the next) fails, those after it succeed; -1: none. */
EXPORT void fake_cuda_fail_alloc_after(int64_t n) { fail_alloc_after = n, fail_for_good = 0; }
/* So do all after it, until this or the one above is called again. */
EXPORT void fake_cuda_fail_allocs_from(int64_t n) { fail_alloc_after = n, fail_for_good = 1; }
/* Every call fails with `error` until fake_cuda_reset(): what a crashed kernel does. */
EXPORT void fake_cuda_set_sticky(CUresult error) { sticky = error; }

static struct context* primary(int device) {
  if (primaries[device].legacy == NULL) init_context(&primaries[device], device, 1);
  return &primaries[device];
}

/* A stream of a producer on the device's primary context; with own_context in a context of its own. */
EXPORT void* fake_cuda_stream_create(int device, int blocking, int own_context) {
  pthread_mutex_lock(&lock);
  struct context* context = primary(device);
  if (own_context) {
    context = calloc(1, sizeof *context);
    if (context != NULL) init_context(context, device, 0);
  }
  struct stream* stream = context != NULL ? new_stream(context, blocking, NULL) : NULL;
  pthread_mutex_unlock(&lock);
  return stream;
}

/* cuStreamDestroy as the driver does it: what is queued goes on, and the handle is no stream's any more. */
EXPORT void fake_cuda_stream_forget(void* handle) {
  pthread_mutex_lock(&lock);
  struct stream* stream = handle;
  stream->alive = 0;
  pthread_mutex_unlock(&lock);
}

/* A slow kernel: writes `bytes` times `value` when its stream gets to it. Stream 1 and 2: of the device's primary
 * context. */
EXPORT int fake_cuda_fill(void* pointer, int value, size_t bytes, int device, void* handle) {
  pthread_mutex_lock(&lock);
  struct stream* stream = (uintptr_t)handle <= 1   ? primary(device)->legacy
                          : (uintptr_t)handle == 2 ? primary(device)->per_thread
                                                   : resolve(handle);
  operation fill = {.kind = OP_FILL, .to = pointer, .value = value, .bytes = bytes};
  CUresult result = stream == NULL ? INVALID_HANDLE : enqueue(stream, fill);
  pthread_mutex_unlock(&lock);
  return result;
}

/* All streams of all devices run empty, as cuCtxSynchronize would do. */
EXPORT void fake_cuda_synchronize(void) {
  pthread_mutex_lock(&lock);
  run_everything();
  pthread_mutex_unlock(&lock);
}

/* Streams that are given the same id belong to one capture; 0 ends it. */
EXPORT void fake_cuda_set_capture(void* handle, uint64_t id) {
  pthread_mutex_lock(&lock);
  struct stream* stream = handle;
  stream->capturing = id != 0;
  stream->capture_id = id;
  pthread_mutex_unlock(&lock);
}

EXPORT int fake_cuda_context_depth(void) { return depth; }
EXPORT int fake_cuda_select_device(int device) { /* as cudaSetDevice: replaces the top of the stack */
  pthread_mutex_lock(&lock);
  if (depth == 0) depth = 1;
  stack[depth - 1] = primary(device);
  pthread_mutex_unlock(&lock);
  return 0;
}

#include "fake_libcuda_ipc.h"
#include "fake_libcuda_runtime.h"
