// The extension module dlbridge._core: hot functions in plain C, cold ones through pybind11.
#include <pybind11/pybind11.h>

#include <atomic>
#include <cstddef>

#include "dlbridge/device_copy.h"
#include "dlbridge/version.h"
#include "ndarray/runtime/staging.h"
#include "ndarray/runtime/transfer.h"
#include "protocols/common/errors.h"
#include "protocols/common/streams.h"
#include "python/src/bridge.h"
#include "python/src/convert.h"
#include "python/src/kit/pybind.h"
#include "python/src/kit/tables.h"
#include "python/src/nd/module.h"

namespace dlbridge::py {

namespace {

constexpr char kAsdlpack[] =
    "asdlpack($module, obj, /, *, protocol=None, stream=None, device=None, copy=None, nulls='refuse')\n--\n\n"
    "A Tensor that shares the memory of any array.\n\n"
    "obj: an object with __dlpack__ (or the DLPack C exchange API), __cuda_array_interface__,\n"
    "__array_struct__, __array_interface__, a buffer, or Arrow's __arrow_c_array__, __arrow_c_stream__,\n"
    "__arrow_c_device_array__ or __arrow_c_device_stream__ (one column); or a DLPack capsule, which is consumed. The\n"
    "best protocol that it has is taken, and the next where one refuses.\n"
    "protocol: 'dlpack', 'array_interface', 'cuda_array_interface', 'buffer' or 'arrow' takes that one only.\n"
    "stream: the CUDA stream the data will be used on, as int or object with __cuda_stream__; it is made to wait\n"
    "for the producer. None: the tensor carries the ordering on. On the CPU only None and -1.\n"
    "device: 'cpu', 'cuda', 'cuda:1', …: the data is copied there if it is elsewhere.\n"
    "copy: True always makes a dense writable copy, False never copies, None only for device.\n"
    "nulls: what becomes of the nulls of an Arrow column: 'refuse'; 'nan' (floats: a copy with NaN in their place);\n"
    "'mask' (a pair of the values and a bool tensor that is True where a null is). The last two read Arrow only.\n\n"
    "Raises TypeError (ProtocolError) where obj speaks no protocol, BufferError (ExchangeError) where the exchange\n"
    "must be refused, ValueError (DataError) for malformed data, OverflowError for shapes beyond 63 bits.";
constexpr char kColumns[] =
    "columns($module, table, /, *, nulls='refuse', copy=None)\n--\n\n"
    "The columns of a table as a dict of tensors, by name; each shares the memory of its column and holds that\n"
    "alone.\n\n"
    "table: a data frame, a record batch, a query: an object with __arrow_c_stream__, __arrow_c_array__,\n"
    "__arrow_c_device_array__ or __arrow_c_device_stream__. A reader that can be read once is read to its end.\n"
    "nulls: as of asdlpack(); with 'mask' the values of the dict are pairs of tensors.\n"
    "copy: None copies nothing but what nulls='nan' asks for, and refuses columns in several chunks and bools, which\n"
    "Arrow packs to bits; True copies all columns, False none.\n\n"
    "Raises TypeError for an object without Arrow and for columns that are no numbers (strings, lists, dictionaries),\n"
    "BufferError for nulls and for what needs a copy (also a ValueError), ValueError for damaged data and for two\n"
    "columns of one name. Source: Arrow's C stream interface.";
constexpr char kToExchange[] =
    "to_exchange($module, tensor, type, /)\n--\n\nGives the tensor to the type's DLPack C exchange table.";
constexpr char kToNumpy[] =
    "to_numpy($module, tensor, /)\n--\n\nA NumPy array that shares the memory of a host tensor.";
constexpr char kLoadNd[] = "load_nd($module, /)\n--\n\nThe native half of dlbridge.nd, a module object.";

// dlbridge keeps its state in the process: a second interpreter would share freelists without the lock of the first.
bool refuse_subinterpreter() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return false;
  PyErr_SetString(PyExc_ImportError,
                  "dlbridge cannot be imported in a subinterpreter: its object caches belong to the main one. Import "
                  "it in the main interpreter");
  return true;
}

// asdlpack(device=) and convert(device=) bring large host memory to a device as dlbridge.nd does.
constexpr cuda::detail::LargeUpload kLargeUpload{
    [](void* to, const void* from, std::size_t bytes, int device, StreamHandle stream) {
      return dlbridge::nd::copy_to_device(to, from, bytes, device, stream, true);
    },
    dlbridge::nd::kStagedBytes};

void init(PyObject* module) {
  cuda::detail::large_upload.store(&kLargeUpload, std::memory_order_release);
  translate_python_errors();
  checked(init_names() && init_exceptions(module));
  init_tensor_types(module);
  add_functions(module,
                {method<kAsdlpack, asdlpack>(), method<kColumns, columns>(), method<kConvertDoc, convert>(),
                 method<kToExchange, to_exchange>(), method<kToNumpy, to_numpy>(), method<kLoadNd, nd::load_nd>()});
  init_adapt(module);
  init_c_api(module);
  read_switches();
  init_dtype_device(module);
  init_diagnosis(module);
}

}  // namespace

}  // namespace dlbridge::py

PYBIND11_MODULE(_core_pybind11, m, pybind11::mod_gil_not_used(), pybind11::multiple_interpreters::not_supported()) {
  m.attr("__version__") = DLBRIDGE_VERSION;
  try {
    dlbridge::py::init(m.ptr());
  } catch (const dlbridge::py::PythonError&) {
    throw pybind11::error_already_set();
  }
}

// pybind11's own entry takes the GIL through PyGILState, which waits forever in a subinterpreter before Python 3.12:
// the refusal comes first. From 3.13 on this runs in the main interpreter, and CPython refuses by the slot above.
extern "C" PYBIND11_EXPORT PyObject* PyInit__core() {
  return dlbridge::py::refuse_subinterpreter() ? nullptr : PyInit__core_pybind11();
}
