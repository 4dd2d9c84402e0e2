/* The part of fake_libcuda.c, which includes this, that gives memory and events to other processes. A handle names a
 * descriptor of the process that made it; the kernel keeps who is no longer there from being found. */

typedef struct {
  uint32_t kind; /* of what; 0 is no handle */
  int pid, fd, device;
  size_t bytes;
  char padding[40];
} ipc_handle;
_Static_assert(sizeof(ipc_handle) == 64, "as CUipcMemHandle");
enum { IPC_MEMORY = 0x6d656d31, IPC_EVENT = 0x65766e31 };

/* The memory behind a handle, mapped; NULL where it is gone, or this process's own. */
static void* map_handle(const ipc_handle* handle, uint32_t kind, size_t bytes) {
  char path[64];
  if (handle->kind != kind || handle->pid == getpid()) return NULL;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", handle->pid, handle->fd);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  void* start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return start != MAP_FAILED ? start : NULL;
}

EXPORT CUresult cuIpcGetMemHandle(ipc_handle* out, CUdeviceptr pointer) {
  ENTER();
  const struct block* block = find_block((const void*)pointer);
  if (block == NULL || block->kind != KIND_SHARED) return leave(INVALID_VALUE);
  *out = (ipc_handle){
      .kind = IPC_MEMORY, .pid = getpid(), .fd = block->fd, .device = block->device, .bytes = block->bytes};
  LOG("ipc_get bytes=%zu", block->bytes);
  return leave(OK);
}

EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, ipc_handle handle, unsigned flags) {
  ENTER();
  if (current() == NULL || flags != 1) return leave(INVALID_VALUE);
  void* start = map_handle(&handle, IPC_MEMORY, handle.bytes);
  LOG("ipc_open bytes=%zu device=%d%s", handle.bytes, current()->device, start == NULL ? " failed" : "");
  if (start == NULL || block_count == MAX_BLOCKS) return leave(INVALID_VALUE);
  blocks[block_count++] = (struct block){start, handle.bytes, current()->device, KIND_IMPORTED, -1, ++last_block_id};
  live_bytes += handle.bytes;
  *out = (CUdeviceptr)start;
  return leave(OK);
}

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  ENTER();
  LOG("ipc_close");
  return leave(drop_block((void*)pointer) ? OK : INVALID_VALUE);
}

EXPORT CUresult cuIpcGetEventHandle(ipc_handle* out, struct event* event) {
  ENTER();
  if (event->words == NULL || event->fd < 0) return leave(INVALID_VALUE);
  *out = (ipc_handle){.kind = IPC_EVENT, .pid = getpid(), .fd = event->fd};
  LOG("ipc_get_event event=%d", event->id);
  return leave(OK);
}

EXPORT CUresult cuIpcOpenEventHandle(struct event** out, ipc_handle handle) {
  ENTER();
  uint32_t* words = map_handle(&handle, IPC_EVENT, 2 * sizeof *words);
  *out = calloc(1, sizeof **out);
  if (words == NULL || *out == NULL || current() == NULL) return leave(INVALID_VALUE);
  **out = (struct event){current(), ++event_count, 1, NULL, 0, words, -1};
  LOG("ipc_open_event event=%d", event_count);
  return leave(OK);
}
