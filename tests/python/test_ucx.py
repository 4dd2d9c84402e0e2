"""UCX: ucxx takes arrays as they are, by the buffer protocol or the CUDA Array Interface. Over its loopback."""

import asyncio
import os

import pytest
from child_process import HANG_S
from dlbridge import asdlpack, convert, nd

os.environ.setdefault("UCX_TLS", "tcp,self,sm")  # and no GPU
os.environ.setdefault("UCX_WARN_UNUSED_ENV_VARS", "n")
np = pytest.importorskip("numpy", reason="the oracle of the tests")
ucxx = pytest.importorskip("ucxx", reason="ucxx moves the memory", exc_type=ImportError)


async def echo(sent, received):
    """Sends an array to a server, which gives back what came; receives that."""
    served = asyncio.Event()

    async def serve(endpoint):
        came = bytearray(asdlpack(received).nbytes)
        await endpoint.recv(came)
        await endpoint.send(came)
        await endpoint.close()
        served.set()

    listener = ucxx.create_listener(serve, port=0)
    endpoint = await ucxx.create_endpoint("127.0.0.1", listener.port)
    await endpoint.send(sent)
    await endpoint.recv(received)
    await served.wait()
    await endpoint.close()
    listener.close()


def there_and_back(sent, received):
    asyncio.run(asyncio.wait_for(echo(sent, received), HANG_S))
    ucxx.reset()


MAKE = {
    "Tensor": lambda x: asdlpack(x, copy=True),
    "nd": lambda x: nd.array(x, device="cpu"),
    "torch": lambda x: asdlpack(convert(x.copy(), "torch")),
    "jax": lambda x: convert(x, "jax"),
    "bytearray": lambda x: bytearray(x.tobytes()),
}


@pytest.mark.parametrize("size", [6, 100_000])
@pytest.mark.parametrize("kind", MAKE)
def test_arrays_are_sent_as_they_are(kind, size):
    if kind in ("torch", "jax"):
        pytest.importorskip(kind, reason="it makes the array")
    x = np.arange(size, dtype="float32")
    received = np.zeros_like(x)
    there_and_back(MAKE[kind](x), received)
    np.testing.assert_array_equal(received, x)


@pytest.mark.parametrize("kind", ["Tensor", "nd", "torch"])
def test_arrays_are_received_into(kind):
    if kind == "torch":
        pytest.importorskip("torch", reason="it makes the array")
    x = np.arange(1000, dtype="int32")
    received = MAKE[kind](np.zeros_like(x))
    there_and_back(x, received)
    np.testing.assert_array_equal(np.asarray(received), x)


def test_bfloat16_is_sent_as_the_integers_of_its_width():
    x, y = nd.arange(8, dtype="bfloat16", device="cpu"), nd.zeros(8, dtype="bfloat16", device="cpu")
    there_and_back(x.view("uint16"), y.view("uint16"))
    assert y.tolist() == list(range(8))


def test_ucxx_asks_neither_how_an_array_lies_nor_who_may_write():
    memory = np.arange(8, dtype="float32")
    received = np.zeros(4, "float32")
    there_and_back(asdlpack(memory[::2]), received)
    assert received.tolist() == [0, 1, 2, 3]  # docs/ucx.md says to send a dense copy
    readonly = np.zeros(4, "float32")
    readonly.flags.writeable = False
    there_and_back(memory[:4].copy(), asdlpack(readonly))
    assert readonly.tolist() == [0, 1, 2, 3]
