/* The part of fake_libcuda.c, which includes this at its end, that only the ndarray's runtime calls: queries, pinned
 * and managed memory, memory pools, captured graphs, host functions, peers. Memory pools give out plain blocks. A
 * device has 1 GiB; fake_cuda_set_free() says what cuMemGetInfo reports. */

static size_t reported_free = (size_t)1 << 30;

EXPORT CUresult cuDeviceGetName(char* name, int length, int device) {
  if (device < 0 || device >= device_count()) return INVALID_DEVICE;
  snprintf(name, (size_t)length, "Fake Device %d", device);
  return OK;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = device_bytes;
  return device >= 0 && device < device_count() ? OK : INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  const char* visible = getenv("CUDA_VISIBLE_DEVICES"); /* numbers, or UUIDs as they are here: a byte, repeated */
  for (int i = 0; visible != NULL && i < device; ++i) visible = strchr(visible, ',') + 1;
  if (visible != NULL && strncmp(visible, "GPU-", 4) == 0) device = (int)(strtoul(visible + 4, NULL, 16) & 0xff);
  else if (visible != NULL) device = atoi(visible);
  memset(uuid, device, 16);
  return OK;
}

EXPORT CUresult cuDeviceGetPCIBusId(char* text, int length, int device) {
  snprintf(text, (size_t)length, "0000:%02X:00.0", device + 1);
  return OK;
}

EXPORT CUresult cuDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device != peer && getenv("FAKE_CUDA_NO_PEERS") == NULL;
  return OK;
}

EXPORT CUresult cuCtxEnablePeerAccess(struct context* peer, unsigned flags) {
  ENTER();
  (void)flags;
  LOG("enable_peer device=%d peer=%d", current()->device, peer->device);
  return leave(OK);
}

EXPORT CUresult cuCtxSetCurrent(struct context* context) {
  ENTER();
  if (depth == 0) depth = 1;
  stack[depth - 1] = context;
  return leave(OK);
}

EXPORT CUresult cuCtxSynchronize(void) {
  ENTER();
  LOG("ctx_synchronize");
  run_everything();
  return leave(OK);
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return OK;
}

EXPORT CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  ENTER();
  *free_bytes = reported_free;
  *total = device_bytes;
  return leave(OK);
}

EXPORT CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  ENTER();
  (void)flags;
  *out = take_block(bytes, 0, KIND_HOST);
  LOG("host_alloc bytes=%zu", bytes);
  return leave(*out != NULL ? OK : OUT_OF_MEMORY);
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* pointer, unsigned flags) {
  ENTER();
  (void)flags;
  *out = (CUdeviceptr)pointer;
  return leave(find_block(pointer) != NULL ? OK : INVALID_VALUE);
}

EXPORT CUresult cuStreamWaitValue32_v2(void* handle, CUdeviceptr word, uint32_t value, unsigned flags) {
  ENTER();
  struct stream* stream = resolve(handle);
  if (stream == NULL) return leave(INVALID_HANDLE);
  if (flags != 0 || find_block((void*)word) == NULL) return leave(INVALID_VALUE); /* 0: until it is so great */
  LOG("wait_value stream=%s", stream->name);
  return leave(enqueue(stream, (operation){.kind = OP_WAIT_WORD, .to = (char*)word, .value = (int)value}));
}

EXPORT CUresult cuMemFreeHost(void* pointer) {
  ENTER();
  LOG("host_free");
  return leave(drop_block(pointer) ? OK : INVALID_VALUE);
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned flags) {
  ENTER();
  (void)flags;
  void* block = take_block(bytes, current()->device, KIND_MANAGED);
  LOG("alloc_managed bytes=%zu device=%d", bytes, current()->device);
  *out = (CUdeviceptr)block;
  return leave(block != NULL ? OK : OUT_OF_MEMORY);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr pointer, unsigned char value, size_t bytes, void* handle) {
  ENTER();
  struct stream* stream = resolve(handle);
  if (stream == NULL) return leave(INVALID_HANDLE);
  if (find_block((void*)pointer) == NULL) return leave(INVALID_VALUE);
  LOG("memset bytes=%zu stream=%s", bytes, stream->name);
  return leave(enqueue(stream, (operation){.kind = OP_FILL, .to = (char*)pointer, .value = value, .bytes = bytes}));
}

/* ---- memory pools: one a device, and what is made; only their addresses differ */

struct pool {
  int device;
  uint64_t threshold;
};
static struct pool default_pools[MAX_DEVICES];

EXPORT CUresult cuDeviceGetDefaultMemPool(struct pool** out, int device) {
  if (device < 0 || device >= device_count()) return INVALID_DEVICE;
  default_pools[device].device = device;
  *out = &default_pools[device];
  return OK;
}

EXPORT CUresult cuMemPoolCreate(struct pool** out, const int* props) {
  ENTER();
  *out = calloc(1, sizeof **out);
  if (*out == NULL) return leave(OUT_OF_MEMORY);
  (*out)->device = props[3];
  LOG("pool_create device=%d", props[3]);
  return leave(OK);
}

EXPORT CUresult cuMemPoolTrimTo(struct pool* pool, size_t keep) {
  ENTER();
  LOG("pool_trim device=%d keep=%zu", pool->device, keep);
  return leave(OK);
}

EXPORT CUresult cuMemPoolSetAttribute(struct pool* pool, int attribute, void* value) {
  if (attribute == 4) pool->threshold = *(uint64_t*)value;
  return OK;
}

EXPORT CUresult cuMemPoolGetAttribute(struct pool* pool, int attribute, void* value) {
  ENTER();
  *(uint64_t*)value = attribute == 4 ? pool->threshold : live_bytes;
  return leave(OK);
}

EXPORT CUresult cuMemPoolSetAccess(struct pool* pool, const int* access, size_t count) {
  ENTER();
  (void)count;
  LOG("pool_access device=%d peer=%d", pool->device, access[1]);
  return leave(OK);
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, struct pool* pool, void* handle) {
  (void)pool;
  return cuMemAllocAsync(out, bytes, handle);
}

/* ---- streams, events, graphs */

EXPORT CUresult cuStreamCreateWithPriority(struct stream** out, unsigned flags, int priority) {
  CUresult result = cuStreamCreate(out, flags);
  if (result == OK) (*out)->priority = priority;
  return result;
}

EXPORT CUresult cuStreamGetPriority(void* handle, int* priority) {
  ENTER();
  struct stream* stream = resolve(handle);
  if (stream == NULL) return leave(INVALID_HANDLE);
  *priority = stream->priority;
  return leave(OK);
}

EXPORT CUresult cuStreamGetFlags(void* handle, unsigned* flags) {
  ENTER();
  struct stream* stream = resolve(handle);
  if (stream == NULL) return leave(INVALID_HANDLE);
  *flags = !stream->blocking;
  return leave(OK);
}

EXPORT CUresult cuStreamQuery(void* handle) {
  ENTER();
  struct stream* stream = resolve(handle);
  if (stream == NULL) return leave(INVALID_HANDLE);
  return leave(stream->done == stream->queued ? OK : 600);
}

EXPORT CUresult cuEventQuery(struct event* event) {
  ENTER();
  if (event->words != NULL && event->fd < 0)
    return leave(load_word(event->words) >= load_word(event->words + 1) ? OK : 600);
  return leave(event->stream == NULL || event->stream->done >= event->until ? OK : 600);
}

/* One millisecond an operation: what is between is what was queued between. */
EXPORT CUresult cuEventElapsedTime(float* out, struct event* start, struct event* end) {
  ENTER();
  if (start->stream == NULL || end->stream == NULL) return leave(INVALID_HANDLE);
  if (start->stream->done < start->until || end->stream->done < end->until) return leave(600);
  *out = (float)(end->until - start->until);
  return leave(OK);
}

EXPORT CUresult cuLaunchHostFunc(void* handle, void (*call)(void*), void* data) {
  ENTER();
  struct stream* stream = resolve(handle);
  if (stream == NULL) return leave(INVALID_HANDLE);
  return leave(enqueue(stream, (operation){.kind = OP_CALL, .to = data, .call = call}));
}

EXPORT CUresult cuStreamBeginCapture_v2(void* handle, int mode) {
  static uint64_t captures = 1000;
  ENTER();
  (void)mode;
  struct stream* stream = resolve(handle);
  if (stream == NULL || stream == stream->context->legacy || stream->capturing) return leave(INVALID_HANDLE);
  stream->graph = calloc(1, sizeof *stream->graph);
  if (stream->graph == NULL) return leave(OUT_OF_MEMORY);
  stream->capturing = 1;
  stream->capture_id = ++captures;
  LOG("begin_capture stream=%s", stream->name);
  return leave(OK);
}

EXPORT CUresult cuStreamEndCapture(void* handle, struct graph** out) {
  ENTER();
  struct stream* stream = resolve(handle);
  if (stream == NULL || stream->graph == NULL) return leave(401);
  *out = stream->graph;
  LOG("end_capture stream=%s operations=%d", stream->name, stream->graph->count);
  stream->graph = NULL;
  stream->capturing = 0;
  stream->capture_id = 0;
  return leave(OK);
}

EXPORT CUresult cuGraphInstantiateWithFlags(struct graph** out, struct graph* graph, unsigned long long flags) {
  (void)flags;
  *out = graph;
  return OK;
}

EXPORT CUresult cuGraphUpload(struct graph* graph, void* handle) {
  ENTER();
  (void)graph;
  return leave(resolve(handle) != NULL ? OK : INVALID_HANDLE);
}

EXPORT CUresult cuGraphLaunch(struct graph* graph, void* handle) {
  ENTER();
  struct stream* stream = resolve(handle);
  if (stream == NULL) return leave(INVALID_HANDLE);
  LOG("graph_launch stream=%s operations=%d", stream->name, graph->count);
  CUresult result = OK;
  for (const operation* op = graph->head; op != NULL && result == OK; op = op->next) {
    operation copy = *op;
    copy.next = NULL;
    copy.staged = NULL;
    result = enqueue(stream, copy);
  }
  return leave(result);
}

EXPORT CUresult cuGraphExecDestroy(struct graph* graph) {
  (void)graph;
  return OK;
}

EXPORT CUresult cuGraphDestroy(struct graph* graph) {
  ENTER();
  LOG("graph_destroy");
  while (graph->head != NULL) {
    operation* op = graph->head;
    graph->head = op->next;
    free(op->staged);
    free(op);
  }
  free(graph);
  return leave(OK);
}

/* What cuMemGetInfo reports as free. */
EXPORT void fake_cuda_set_free(size_t bytes) { reported_free = bytes; }
