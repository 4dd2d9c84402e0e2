"""The rows of the latency table: for each call of ours, who else does the same thing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from _peers import Environment
from _timing import Call

OURS = "dlbridge"
PYDLPACK = "pydlpack"

# A peer does what we do: it makes a tensor of its own out of the object. A context figure does less
# (np.asarray of an ndarray returns it as it is) or more; it is shown, and the goal does not look at it.
PEER = "peer"
CONTEXT = "context"

FASTEST = "fastest peer"


@dataclass(frozen=True)
class Contender:
    """One way to make the call; `build` runs only where everything in `needs` is there."""

    name: str
    needs: tuple[str, ...]
    build: Callable[[], Call]
    role: str = PEER


@dataclass(frozen=True)
class Row:
    """A call of ours; the goal is ours <= goal x reference, None where there is none."""

    key: str
    title: str
    needs: tuple[str, ...]
    contenders: Callable[[Environment], Iterator[Contender]]
    goal: float | None = None
    reference: str = FASTEST


ROWS: list[Row] = []


def row(
    key: str,
    title: str,
    *needs: str,
    goal: float | None = None,
    reference: str = FASTEST,
) -> Callable[..., Any]:
    """Adds a row; the function under it yields the contenders."""

    def add(function: Callable[[Environment], Iterator[Contender]]) -> Any:
        ROWS.append(Row(key, title, needs, function, goal, reference))
        return function

    return add


def bind(function: Callable[..., object], *args: object) -> Call:
    """`lambda: function(*args)` without the star, so that everybody pays for the same bytecode."""
    if len(args) == 1:
        (a,) = args
        return lambda: function(a)
    a, b = args
    return lambda: function(a, b)


def chain(outer: Callable[..., object], inner: Callable[..., object], x: object) -> Call:
    return lambda: outer(inner(x))


def ours(build: Callable[[], Call]) -> Contender:
    return Contender(OURS, (OURS,), build, role=OURS)


def readers(e: Environment, x: object) -> Iterator[Contender]:
    """What takes any provider, ours first."""
    yield ours(lambda: bind(e.dlbridge.asdlpack, x))
    yield Contender("nanobind cast", ("nanobind_peer",), lambda: bind(e.nanobind_peer.cast, x))
    yield Contender("tvm_ffi.from_dlpack", ("tvm_ffi",), lambda: bind(e.tvm_ffi.from_dlpack, x))
    yield Contender(PYDLPACK, ("pydlpack",), lambda: bind(e.pydlpack.asdlpack, x))


def strided_memory_view(e: Environment, x: object) -> Iterator[Contender]:
    # -1: no stream order, the cheapest that cuda.core offers.
    def build() -> Call:
        view = e.cuda_core.StridedMemoryView
        return bind(getattr(view, "from_any_interface", view), x, -1)

    yield Contender("cuda.core StridedMemoryView", ("cuda_core",), build)


def small_numpy(e: Environment) -> Any:
    return e.numpy.arange(12, dtype="float32").reshape(3, 4)


@row("numpy", "asdlpack(numpy array)", "numpy", goal=0.5)
def _numpy(e: Environment) -> Iterator[Contender]:
    x = small_numpy(e)
    yield from readers(e, x)
    yield from strided_memory_view(e, x)
    yield Contender("numpy.from_dlpack", ("numpy",), lambda: bind(e.numpy.from_dlpack, x))
    yield Contender("torch.from_numpy", ("torch",), lambda: bind(e.torch.from_numpy, x))
    yield Contender("torch.as_tensor", ("torch",), lambda: bind(e.torch.as_tensor, x))
    yield Contender("numpy.asarray", ("numpy",), lambda: bind(e.numpy.asarray, x), CONTEXT)
    yield Contender("memoryview", (), lambda: bind(memoryview, x), CONTEXT)


@row("torch", "asdlpack(torch CPU tensor)", "torch", goal=0.5)
def _torch(e: Environment) -> Iterator[Contender]:
    x = e.torch.ones(3, 4)
    yield from readers(e, x)
    yield from strided_memory_view(e, x)
    yield Contender("numpy.from_dlpack", ("numpy",), lambda: bind(e.numpy.from_dlpack, x))
    yield Contender("Tensor.numpy()", ("numpy",), lambda: bind(e.torch.Tensor.numpy, x))


@row("torch-cuda", "asdlpack(torch CUDA tensor)", "torch_cuda", goal=0.5)
def _torch_cuda(e: Environment) -> Iterator[Contender]:
    x = e.torch_cuda.ones(3, 4, device="cuda")
    yield from readers(e, x)
    yield from strided_memory_view(e, x)
    yield Contender("cupy.asarray", ("cupy",), lambda: bind(e.cupy.asarray, x))
    yield Contender("cupy.from_dlpack", ("cupy",), lambda: bind(e.cupy.from_dlpack, x))


@row("cupy", "asdlpack(cupy array)", "cupy", goal=0.5)
def _cupy(e: Environment) -> Iterator[Contender]:
    x = e.cupy.ones((3, 4), dtype="float32")
    yield from readers(e, x)
    yield from strided_memory_view(e, x)
    yield Contender("torch.from_dlpack", ("torch_cuda",), lambda: bind(e.torch_cuda.from_dlpack, x))


@row("bytearray", "asdlpack(bytearray)", goal=0.7)
def _bytearray(e: Environment) -> Iterator[Contender]:
    x = bytearray(b"Hello, bytes!")
    yield from readers(e, x)
    yield Contender("numpy.frombuffer", ("numpy",), lambda: bind(e.numpy.frombuffer, x, "u1"))
    yield Contender("memoryview", (), lambda: bind(memoryview, x), CONTEXT)


@row("bytes", "asdlpack(bytes)")
def _bytes(e: Environment) -> Iterator[Contender]:
    x = b"Hello, bytes!"
    yield from readers(e, x)
    yield Contender("numpy.frombuffer", ("numpy",), lambda: bind(e.numpy.frombuffer, x, "u1"))
    yield Contender("memoryview", (), lambda: bind(memoryview, x), CONTEXT)


@row("jax", "asdlpack(jax CPU array)", "jax")
def _jax(e: Environment) -> Iterator[Contender]:
    x = e.jax.numpy.ones((3, 4), dtype="float32")
    x.block_until_ready()
    yield from readers(e, x)
    yield Contender("numpy.from_dlpack", ("numpy",), lambda: bind(e.numpy.from_dlpack, x))
    yield Contender("torch.from_dlpack", ("torch",), lambda: bind(e.torch.from_dlpack, x))


@row("polars", "asdlpack(Polars column of 10^8 float64)", "polars", "numpy")
def _polars(e: Environment) -> Iterator[Contender]:
    x = e.polars.Series(e.numpy.zeros(10**8))
    yield ours(lambda: bind(e.dlbridge.asdlpack, x))
    yield Contender("Series.to_numpy", (), lambda: bind(e.polars.Series.to_numpy, x))
    yield Contender("Series.to_torch", ("torch",), lambda: bind(e.polars.Series.to_torch, x))
    yield Contender("Series.to_arrow", (), lambda: bind(e.polars.Series.to_arrow, x))
    yield Contender("torch.from_dlpack", ("torch",), lambda: bind(e.torch.from_dlpack, x))
    yield Contender("from_dlpack(to_numpy)", (), lambda: chain(e.numpy.from_dlpack, e.polars.Series.to_numpy, x))


@row("numba", "asdlpack(numba device array)", "numba_cuda")
def _numba(e: Environment) -> Iterator[Contender]:
    x = e.numba_cuda.to_device(small_numpy(e))
    yield from readers(e, x)
    yield from strided_memory_view(e, x)
    yield Contender("cupy.asarray", ("cupy",), lambda: bind(e.cupy.asarray, x))


@row(
    "convert-torch",
    'convert(numpy array, "torch")',
    "numpy",
    "torch",
    goal=0.5,
    reference="torch.from_dlpack",
)
def _convert_torch(e: Environment) -> Iterator[Contender]:
    x = small_numpy(e)
    yield ours(lambda: bind(e.dlbridge.convert, x, "torch"))
    yield Contender("torch.from_dlpack", (), lambda: bind(e.torch.from_dlpack, x))
    yield Contender("torch.from_numpy", (), lambda: bind(e.torch.from_numpy, x))
    yield Contender("torch.as_tensor", (), lambda: bind(e.torch.as_tensor, x))
    yield Contender(PYDLPACK, ("pydlpack",), lambda: chain(e.torch.from_dlpack, e.pydlpack.asdlpack, x))


@row("convert-numpy", 'convert(torch CPU tensor, "numpy")', "numpy", "torch")
def _convert_numpy(e: Environment) -> Iterator[Contender]:
    x = e.torch.ones(3, 4)
    yield ours(lambda: bind(e.dlbridge.convert, x, "numpy"))
    yield Contender("numpy.from_dlpack", (), lambda: bind(e.numpy.from_dlpack, x))
    yield Contender("numpy.asarray", (), lambda: bind(e.numpy.asarray, x))
    yield Contender("Tensor.numpy()", (), lambda: bind(e.torch.Tensor.numpy, x))


def through(e: Environment, consumer: Callable[..., object], label: str, x: object) -> Iterator[Contender]:
    """`consumer(asdlpack(x))` against `consumer(x)`."""
    yield ours(lambda: chain(consumer, e.dlbridge.asdlpack, x))
    yield Contender(label, (), lambda: bind(consumer, x))
    yield Contender(PYDLPACK, ("pydlpack",), lambda: chain(consumer, e.pydlpack.asdlpack, x))


@row(
    "torch-of-numpy",
    "torch.from_dlpack(asdlpack(numpy array))",
    "numpy",
    "torch",
    goal=1.0,
    reference="torch.from_dlpack(x)",
)
def _torch_of_numpy(e: Environment) -> Iterator[Contender]:
    yield from through(e, e.torch.from_dlpack, "torch.from_dlpack(x)", small_numpy(e))


@row(
    "torch-of-torch",
    "torch.from_dlpack(asdlpack(torch CPU tensor))",
    "torch",
    goal=1.0,
    reference="torch.from_dlpack(x)",
)
def _torch_of_torch(e: Environment) -> Iterator[Contender]:
    yield from through(e, e.torch.from_dlpack, "torch.from_dlpack(x)", e.torch.ones(3, 4))


@row(
    "torch-of-torch-cuda",
    "torch.from_dlpack(asdlpack(torch CUDA tensor))",
    "torch_cuda",
    goal=1.0,
    reference="torch.from_dlpack(x)",
)
def _torch_of_torch_cuda(e: Environment) -> Iterator[Contender]:
    x = e.torch_cuda.ones(3, 4, device="cuda")
    yield from through(e, e.torch_cuda.from_dlpack, "torch.from_dlpack(x)", x)


@row("numpy-of-numpy", "numpy.from_dlpack(asdlpack(numpy array))", "numpy")
def _numpy_of_numpy(e: Environment) -> Iterator[Contender]:
    yield from through(e, e.numpy.from_dlpack, "numpy.from_dlpack(x)", small_numpy(e))


@row("jax-of-numpy", "jax.dlpack.from_dlpack(asdlpack(numpy array))", "jax", "numpy")
def _jax_of_numpy(e: Environment) -> Iterator[Contender]:
    import jax.dlpack

    yield from through(e, jax.dlpack.from_dlpack, "jax.dlpack.from_dlpack(x)", small_numpy(e))


@row(
    "cupy-cai",
    "cupy.asarray(t) over CAI",
    "cupy",
    "torch_cuda",
    goal=0.8,
    reference="with torch as producer",
)
def _cupy_cai(e: Environment) -> Iterator[Contender]:
    consumer = e.cupy.asarray
    x = e.torch_cuda.ones(3, 4, device="cuda")
    yield ours(lambda: bind(consumer, e.dlbridge.asdlpack(x)))
    yield Contender("with torch as producer", (), lambda: bind(consumer, x))
    yield Contender("with numba as producer", ("numba_cuda",), lambda: bind(consumer, numba_array(e)))


@row(
    "torch-cai",
    't = asdlpack(cupy array); torch.as_tensor(t, device="cuda") over CAI',
    "cupy",
    "torch_cuda",
    goal=0.8,
    reference="with cupy as producer",
)
def _torch_cai(e: Environment) -> Iterator[Contender]:
    as_tensor = e.torch_cuda.as_tensor
    x = e.cupy.ones((3, 4), dtype="float32")

    def bound(producer: object) -> Call:
        return lambda: as_tensor(producer, device="cuda")

    yield ours(lambda: bound(e.dlbridge.asdlpack(x)))
    yield Contender("with cupy as producer", (), lambda: bound(x))
    yield Contender("with numba as producer", ("numba_cuda",), lambda: bound(numba_array(e)))


@row("numba-cai", "numba.cuda.as_cuda_array(t) over CAI", "cupy", "numba_cuda", "torch_cuda")
def _numba_cai(e: Environment) -> Iterator[Contender]:
    consumer = e.numba_cuda.as_cuda_array
    x = e.cupy.ones((3, 4), dtype="float32")
    yield ours(lambda: bind(consumer, e.dlbridge.asdlpack(x)))
    yield Contender("with cupy as producer", (), lambda: bind(consumer, x))
    tensor = e.torch_cuda.ones(3, 4, device="cuda")
    yield Contender("with torch as producer", (), lambda: bind(consumer, tensor))


def numba_array(e: Environment) -> Any:
    return e.numba_cuda.to_device(small_numpy(e))
