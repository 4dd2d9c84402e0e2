/* The table of version 1.0 of the C ABI, as extensions were compiled with it. Never to be changed: what is built here
   stands for the extension modules that are out there. */
#ifndef DLBRIDGE_TESTS_TABLE_1_0_H
#define DLBRIDGE_TESTS_TABLE_1_0_H

#include <Python.h>
#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  DLTensor dl;
  uint64_t flags;
  int64_t size;
  uintptr_t ready_handle;
  uint8_t ready_kind;
  uint8_t protocol;
  PyObject* holder;
} record_1_0;

typedef struct {
  DLDataType dtype;
  int32_t device_type;
  char order;
} wanted_1_0;

typedef struct {
  uint32_t size, major, minor, reserved;
  int (*read)(PyObject* object, record_1_0* out, int64_t* dims, int32_t capacity);
  PyObject* (*adapt)(PyObject* object, const wanted_1_0* wanted);
  PyObject* (*wrap)(DLManagedTensorVersioned* managed, uint8_t ready_kind, uintptr_t ready_handle);
  PyObject* (*convert)(PyObject* tensor, const char* name);
  void (*release)(PyObject* object);
  int (*parse_stream)(PyObject* argument, intptr_t* out);
  int (*order)(DLDevice device, uint8_t ready_kind, uintptr_t ready_handle, uintptr_t stream, char* message,
               size_t capacity);
  uintptr_t (*current_stream)(int32_t device_id);
  void (*raise)(uint8_t code, const char* message);
  void (*type_name)(PyObject* object, char* out, size_t capacity);
} table_1_0;

#endif
