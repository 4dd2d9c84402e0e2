"""What Ray's workers do in the tests; a module, for they import it."""

from importlib.util import find_spec

import dlbridge
import dlbridge.ray
import ray
from dlbridge import nd

HAS_TORCH = find_spec("torch") is not None

dlbridge.ray.register_transport()  # before the classes that name it
dlbridge.ray.register_transport("nd", "dlbridge_numpy", to="numpy")
if HAS_TORCH:
    dlbridge.ray.register_transport("torch", "dlbridge_torch")


@ray.remote
def described(x):
    """What arrived."""
    return type(x).__name__, str(x.dtype), getattr(x, "readonly", None)


@ray.remote
def made(framework, dtype, size):
    """An array of a framework, in the worker's own memory."""
    return dlbridge.convert(nd.arange(size, dtype=dtype, device="cpu"), framework)


@ray.remote(num_cpus=0, enable_tensor_transport=True)
class Holder:
    """An actor that keeps an array, and sends it by the transports."""

    def __init__(self):
        self.x = None

    @ray.method(tensor_transport="dlbridge")
    def numbers(self, size, device="cpu"):
        """An nd array of the worker's own memory."""
        self.x = nd.arange(size, dtype="float64", device=device)
        return self.x

    @ray.method(tensor_transport="dlbridge")
    def shared(self, size):
        """The same of memory that is shared, in a container."""
        self.x = dlbridge.empty_shared(size)
        self.x[:] = 1
        return {"x": self.x, "name": "shared"}

    @ray.method(tensor_transport="dlbridge_torch" if HAS_TORCH else "dlbridge")
    def tensor(self, size, device="cpu"):
        """A torch.Tensor."""
        return dlbridge.convert(nd.arange(size, dtype="float32", device=device), "torch")

    @ray.method(tensor_transport="dlbridge")
    def queued(self, size, rounds):
        """Arrays of the host and of a GPU, whose work need not be done: each element is `rounds`."""
        x = nd.zeros(size, device="cuda")
        for _ in range(rounds):
            x += 1
        return {"host": nd.full(3, rounds, device="cpu"), "gpu": x}

    @ray.method(tensor_transport="dlbridge_numpy")
    def for_numpy(self, size):
        """An nd array in a dict, which readers get as one of NumPy's."""
        return {"x": nd.arange(size, dtype="float64", device="cpu")}

    def add(self, x, value):
        """Writes to what came, and gives the sum of it."""
        x += value
        return float(x.sum())

    def described(self, tree):
        """The types in a dict."""
        return [f"{key} {type(value).__name__}" for key, value in tree.items()]

    def totals(self, tree):
        """The sums of the arrays in a dict."""
        return {key: float(value.sum()) for key, value in tree.items()}

    def total(self):
        """Of what was sent."""
        return float(self.x.sum())

    def waiting(self):
        """How many objects the transport keeps."""
        from ray.experimental.rdt.util import transport_managers

        return len(transport_managers["DLBRIDGE"].handles) if "DLBRIDGE" in transport_managers else 0
