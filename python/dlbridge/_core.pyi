from types import ModuleType
from typing import Any, Final, Literal, SupportsIndex, TypeAlias, TypedDict, final, overload

from typing_extensions import disjoint_base

_Protocol: TypeAlias = Literal["dlpack", "array_interface", "cuda_array_interface", "buffer", "arrow"] | str
_Nulls: TypeAlias = Literal["refuse", "nan"]
_Device: TypeAlias = Device | str
_Stream: TypeAlias = int | object | None

__version__: Final[str]

class ProtocolError(TypeError): ...
class ExchangeError(BufferError): ...
class CopyError(ExchangeError, ValueError): ...
class DataError(ValueError): ...
class CudaError(RuntimeError): ...

@final
class DType:
    """An element type. Equal to its name, to NumPy's dtype of that name, and to whatever else names it."""

    def __new__(cls, dtype: Any = None) -> DType: ...
    @property
    def name(self) -> str: ...
    @property
    def code(self) -> int:
        """DLDataTypeCode."""
    @property
    def bits(self) -> int:
        """Bits of one lane."""
    @property
    def lanes(self) -> int: ...
    @property
    def itemsize(self) -> int:
        """Bytes of an element; 1 for a sub-byte type."""
    @property
    def kind(self) -> str: ...
    @property
    def char(self) -> str: ...
    @property
    def str(self) -> str:
        """NumPy's typestr."""
    @property
    def descr(self) -> list[Any]:
        """NumPy's description of the type, one unnamed field."""
    @property
    def type(self) -> Any:
        """NumPy's scalar type."""
    @property
    def dtype(self) -> Any:
        """numpy.dtype, where NumPy is older than 2.4."""
    @property
    def __numpy_dtype__(self) -> Any: ...
    def __call__(self, *value: Any) -> Any:
        """A NumPy scalar of this dtype."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Device:
    """A device. Equal to its name, "cpu" or "cuda:0"."""

    @property
    def type(self) -> str:
        """ "cpu", "cuda", "cuda_host", "cuda_managed", "rocm", ..."""
    @property
    def id(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@disjoint_base
class Tensor:
    """A light handle on memory of any producer; offers every protocol that its device and dtype allow."""

    __dlpack_c_exchange_api__: object
    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, in elements."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Strides, in bytes; always a tuple."""
    @property
    def dtype(self) -> DType: ...
    @property
    def __numpy_dtype__(self) -> Any: ...
    @property
    def device(self) -> Device: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
    @property
    def nbytes(self) -> int:
        """Bytes of the elements stored densely."""
    @property
    def data_ptr(self) -> int:
        """Address of the first element; 0 for an empty tensor."""
    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are dense in C order."""
    @property
    def readonly(self) -> bool: ...
    @property
    def padded(self) -> bool:
        """Whether each element of a sub-byte dtype has a byte of its own."""
    @property
    def protocol(self) -> str:
        """The protocol it was read through."""
    @property
    def owner(self) -> Any:
        """The object that was passed in; None for a copy or a bare capsule."""
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule (array API 2023.12); versioned where max_version is (1, 0) or newer, else legacy."""
    def __dlpack_device__(self) -> tuple[int, int]:
        """(DLDeviceType, device id)."""
    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> Any:
        """A NumPy array; TypeError where the host cannot read the memory."""
    def record_stream(self, stream: int | object, /) -> None:
        """Says that work on a CUDA stream uses the memory until the tensor dies."""
    def __reduce_ex__(self, protocol: SupportsIndex, /) -> Any: ...

class HostTensor(Tensor):
    """A tensor that the host can read."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def __array_struct__(self) -> Any: ...
    def __arrow_c_schema__(self) -> Any:
        """A capsule with the type of the Arrow array."""
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """Capsules of an Arrow schema and array that shares the memory: dense tensors of numbers."""
    def __arrow_c_device_array__(self, requested_schema: Any = None, **kwargs: Any) -> tuple[Any, Any]:
        """The same with the device."""
    # C slots; CPython shows them under these names from 3.12 on.
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, view: memoryview, /) -> None: ...

class CudaTensor(Tensor):
    """A tensor in CUDA memory."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __arrow_c_schema__(self) -> Any:
        """A capsule with the type of the Arrow array."""
    def __arrow_c_device_array__(self, requested_schema: Any = None, **kwargs: Any) -> tuple[Any, Any]:
        """Capsules of an Arrow schema and device array that shares the memory, with an event where one is needed."""

@overload
def asdlpack(
    obj: Any,
    /,
    *,
    protocol: _Protocol | None = None,
    stream: _Stream = None,
    device: _Device | None = None,
    copy: bool | None = None,
    nulls: _Nulls = "refuse",
) -> Tensor:
    """Any producer as a Tensor, without a copy unless `device`, `copy` or `nulls` asks for one."""

@overload
def asdlpack(
    obj: Any,
    /,
    *,
    protocol: _Protocol | None = None,
    stream: _Stream = None,
    device: _Device | None = None,
    copy: bool | None = None,
    nulls: Literal["mask"],
) -> tuple[Tensor, Tensor]: ...
@overload
def columns(table: Any, /, *, nulls: _Nulls = "refuse", copy: bool | None = None) -> dict[str, Tensor]:
    """The columns of a table that speaks Arrow, by name."""

@overload
def columns(table: Any, /, *, nulls: Literal["mask"], copy: bool | None = None) -> dict[str, tuple[Tensor, Tensor]]: ...
def convert(
    tree: Any,
    to: str | ModuleType | None = None,
    *,
    like: Any = None,
    dtype: Any = None,
    device: _Device | None = None,
    copy: bool | None = None,
    layout: str | None = None,
    stream: _Stream = None,
) -> Any:
    """Any producer, or all of them in a container, as objects of the framework `to`, or that of `like`."""

@final
class Plan:
    """What convert() does with a tensor; `reason` and `remedy` are empty where it is shared."""

    @property
    def outcome(self) -> Literal["shared", "copied", "refused"]: ...
    @property
    def rule(self) -> Literal["", "dtype", "rank", "device", "read-only", "strides", "overlap", "alignment"]:
        """What of the tensor does not fit; empty where all does."""
    @property
    def reason(self) -> str: ...
    @property
    def remedy(self) -> str: ...

class _Consumer(TypedDict):
    module: str
    aliases: list[str]
    dtypes: list[str]
    writes: bool
    immutable: bool

def plan(tensor: Tensor, to: str | ModuleType, /) -> Plan: ...
def consumers() -> dict[str, _Consumer]: ...

class _DTypeRow(TypedDict):
    name: str
    code: int
    bits: int
    lanes: int
    itemsize: int
    typestr: str | None
    pep3118: str | None

def peek_capsule(capsule: Any, /) -> dict[str, Any]: ...
def end_use(source: Any, stream: Any) -> None: ...
def synchronize(tensor: Tensor, /) -> None: ...
def live_counts() -> dict[str, int]: ...
def parse_format(format: str | None, itemsize: int, /) -> str: ...
def parse_typestr(typestr: str, /) -> str: ...
def dtypes() -> list[_DTypeRow]: ...
def _dtype(code: int, bits: int, lanes: int) -> DType: ...
def reinterpret(
    tensor: Tensor,
    *,
    dtype: str | None = None,
    shape: tuple[int, ...] | None = None,
    readonly: bool | None = None,
    padded: bool | None = None,
    offset: int | None = None,
) -> Tensor: ...
def arrow_type(obj: Any, /) -> str | None: ...
def cuda_info() -> dict[str, Any]: ...
def target_name(to: str | ModuleType, /) -> str: ...
def framework_name(obj: Any, /) -> str | None: ...
def survey(
    to: str | ModuleType | None, args: tuple[Any, ...], kwargs: dict[str, Any], first: int, /
) -> list[tuple[int | str, Any]] | None: ...
def convert_part(
    tree: Any, to: str | ModuleType | None, like: Any, device: _Device | None, operation: str, root: str, /
) -> Any: ...
def to_exchange(tensor: Tensor, type_: type, /) -> Any: ...
def load_nd() -> ModuleType: ...
def to_numpy(tensor: Tensor, /) -> Any: ...
