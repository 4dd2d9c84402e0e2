"""dlbridge::Arg with real device memory: what tests/cuda/caster_cases.py shows on a driver of ours."""

import caster_support
import gpu_frameworks as gpu
import pytest
from dlbridge import asdlpack, nd

pytestmark = gpu.needs_gpu


@pytest.fixture(scope="module")
def ext():
    return caster_support.load()


def test_device_pointers_and_streams_arrive(ext):
    torch = gpu.torch()
    tensor = torch.arange(6, dtype=torch.int32, device="cuda").reshape(2, 3)
    side = torch.cuda.Stream()
    assert ext.ints_on_gpu(tensor, stream=side.cuda_stream) == (tensor.data_ptr(), side.cuda_stream)
    assert ext.ints_anywhere(tensor) == tensor.data_ptr()
    array = nd.arange(6, dtype="int32", device="cuda").reshape(2, 3)
    assert ext.ints_on_gpu(array)[0] == array.data_ptr


def test_the_named_stream_waits_for_the_producer(ext):
    torch = gpu.torch()
    consumer = torch.cuda.Stream()
    seen = torch.empty((2, 3), dtype=torch.int32, device="cuda")
    for _ in range(5):
        tensor = torch.zeros((2, 3), dtype=torch.int32, device="cuda")
        producer = torch.cuda.Stream()
        producer.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(producer):
            torch.cuda._sleep(20_000_000)
            tensor += 7
            ext.ints_on_gpu(tensor, stream=consumer.cuda_stream)
        with torch.cuda.stream(consumer):
            seen.copy_(tensor)
        consumer.synchronize()
        assert seen.tolist() == [[7] * 3] * 2


def test_device_arrays_move_where_conversion_is_allowed_and_are_refused_elsewhere(ext):
    torch = gpu.torch()
    tensor = torch.arange(6, dtype=torch.int32, device="cuda").reshape(2, 3)
    assert ext.ints_to_host(tensor) == 15
    assert ext.ints_to_gpu(torch.arange(6, dtype=torch.int32).reshape(2, 3)) == "cuda:0"
    with pytest.raises(TypeError, match="expected device cpu"):
        ext.matrix(tensor.float())
    with pytest.raises(TypeError, match=r"expected shape \(\*, \*, 3\)"):
        ext.on_gpu(tensor.float())


def test_results_carry_their_stream_to_the_next_consumer(ext):
    torch = gpu.torch()
    memory = torch.zeros((2, 3), dtype=torch.int32, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        memory += 3
    made = ext.made_on(memory.data_ptr(), side.cuda_stream)
    assert (str(made.device), made.data_ptr) == ("cuda:0", memory.data_ptr())
    assert made.shape == (2, 3)
    assert memoryview(asdlpack(made, device="cpu")).tolist() == nd.from_dlpack(made).tolist() == [[3] * 3] * 2
