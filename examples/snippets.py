"""How the scripts here run: each snippet is a function, and those that lack something are skipped by name."""

from __future__ import annotations

import ctypes
import importlib
import traceback
from collections.abc import Callable
from typing import Any

import dlbridge.nd as nd


class Skip(Exception):
    """Raised by a snippet that cannot run here."""


class Script:
    """The snippets of one document, in its order."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.snippets: list[tuple[str, int, tuple[str, ...], Callable[..., Any]]] = []

    def snippet(self, name: str, *needs: str, gpus: int = 0) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Registers a snippet; `needs` are modules, which it is given, `gpus` how many CUDA devices it uses."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self.snippets.append((name, gpus, needs, function))
            return function

        return register

    def run(self) -> dict[str, str]:
        """Runs all snippets; for each "ok", "skipped: …" or "FAILED: …"."""
        print(f"== {self.title}")
        outcomes = {}
        for name, gpus, needs, function in self.snippets:
            outcomes[name] = outcome = _outcome(gpus, needs, function)
            print(f"  {name}: {outcome}")
        return outcomes

    def main(self) -> int:
        """The exit status: 1 where a snippet failed."""
        return int(any(outcome.startswith("FAILED") for outcome in self.run().values()))


def _outcome(gpus: int, needs: tuple[str, ...], function: Callable[..., Any]) -> str:
    if nd.cuda.device_count() < gpus:
        return f"skipped: it needs {gpus} CUDA device(s), and there are {nd.cuda.device_count()}"
    modules = []
    for name in needs:
        try:
            modules.append(importlib.import_module(name))
        except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py without an MPI library
            return f"skipped: {name} cannot be imported: {str(error).splitlines()[0]}"
    try:
        function(*modules)
    except Skip as reason:
        return f"skipped: {reason}"
    except Exception:
        traceback.print_exc()
        return "FAILED"
    return "ok"


def torch_device() -> str:
    """Where the snippets put PyTorch's tensors: the documents say .cuda()."""
    return "cuda" if nd.cuda.is_available() else "cpu"


def torch_with_cuda(torch: Any) -> None:
    """Skips without a CUDA build of PyTorch."""
    if not torch.cuda.is_available():
        raise Skip("this PyTorch has no CUDA")


def tensorflow_on(tf: Any) -> str:
    """The TensorFlow device that shares memory with our arrays; skips where TensorFlow sees no GPU that we use."""
    if not nd.cuda.is_available():
        return "/CPU:0"
    if not tf.config.list_physical_devices("GPU"):
        raise Skip("TensorFlow sees no GPU")
    return "/GPU:0"


def needs_mpi_for_devices(MPI: Any) -> None:
    """Skips where the MPI library does not take device memory, or does not say so: it would read the address itself."""
    try:
        query = ctypes.CDLL(MPI.__file__).MPIX_Query_cuda_support
    except (AttributeError, OSError):
        raise Skip("this MPI library does not say that it takes device memory") from None
    if not query():
        raise Skip("this MPI library is not built with CUDA")
