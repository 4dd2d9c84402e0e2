"""What the cases of user kernels share: arrays of the fake device, and what is expected of errors."""

from __future__ import annotations

import numpy as np
from dlbridge import asdlpack, nd
from fake_cuda import calls

CUDA = "cuda:0"
rng = np.random.default_rng(7)


def on_device(values, device=CUDA):
    return nd.asarray(np.asarray(values), device=device)


def host(x):
    return np.asarray(asdlpack(x, device="cpu"))


def raises(error, *texts):
    class Expectation:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, trace):
            assert kind is not None, f"no {error} was raised"
            assert issubclass(kind, error), f"{kind.__name__}: {value}"
            for text in texts:
                assert text in str(value), f"{text!r} is not in: {value}"
            self.message = str(value)
            return True

    return Expectation()


def launches_of(call):
    before = len(calls("launch_kernel"))
    result = call()
    return result, [line.split("name=")[1].split()[0] for line in calls("launch_kernel")[before:]]
