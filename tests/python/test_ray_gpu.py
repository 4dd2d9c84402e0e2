"""What dlbridge.ray's transport sends and reads of arrays on a GPU, between two processes; Ray itself is not needed."""

import gpu_frameworks as gpu
import pytest
from child_process import few_connections, run_python

pytestmark = gpu.needs_gpu

HEAD = """
import pickle

import ray_stand_in
import dlbridge
import ray_gpu_workers as workers
from dlbridge import nd
from dlbridge.ray._transport import SharedMemoryTransport
from test_share_gpu import Other

transport = SharedMemoryTransport()


def sent(arrays):
    return pickle.dumps(transport.extract_tensor_transport_metadata("1", arrays))

"""


def run(code, **environment):
    lines = "".join(f"    {line}\n" for line in code.strip().splitlines())
    with few_connections():
        return run_python(f'{HEAD}\nif __name__ == "__main__":\n{lines}', **environment).stdout


MAKERS = {
    "nd": "nd.arange(1000, dtype='float32', device='cuda')",
    "torch": "dlbridge.convert(nd.arange(1000, dtype='float32', device='cuda'), 'torch')",
    "cupy": "dlbridge.convert(nd.arange(1000, dtype='float32', device='cuda'), 'cupy')",
    "jax": "dlbridge.convert(nd.arange(1000, dtype='float32', device='cuda'), 'jax')",
}


@pytest.mark.parametrize("framework", MAKERS)
def test_an_array_goes_as_it_lies(framework):
    if framework != "nd":
        getattr(gpu, framework)()
    found = run(f"""
x = {MAKERS[framework]}
meta = sent([x])
assert pickle.loads(meta).tensor_device == "cuda"
assert not transport.handles["1"].copied
other = Other()
assert other.do(workers.read, meta) == (list(range(1000)), "{framework.replace("nd", "dlbridge")}")
other.close()
print("passed")
""")
    assert found == "passed\n"


def test_a_reader_waits_behind_the_maker_and_the_maker_keeps_it_for_readers():
    found = run("""
other = Other()
x = nd.zeros(1 << 26, "float32", device="cuda")
for _ in range(20):
    x += 1  # queued, and not done when the reader has it
meta = sent([x])
assert set(other.do(workers.read_ends, meta)) == {20.0}
del x
transport.garbage_collect("1", pickle.loads(meta), [])
y = nd.full(1 << 26, -1.0, "float32", device="cuda")  # finds other memory: the reader has that of x
assert set(other.do(workers.ends)) == {20.0}
other.do(workers.forget)
other.close()
print("passed")
""")
    assert found == "passed\n"


def test_a_reader_without_the_gpu_is_told_what_to_do():
    found = run("""
import os
meta = sent([nd.ones(3, device="cuda")])
os.environ["CUDA_VISIBLE_DEVICES"] = ""
other = Other()
kind, text = other.do(workers.read, meta)
assert kind == "CudaError" and "the array is on GPU-" in text and "num_gpus=" in text, text
other.close()
print("passed")
""")
    assert found == "passed\n"
