"""dlbridge::Arg with real device memory: what tests/cuda/caster_cases.py shows on a driver of ours."""

import gpu_frameworks as gpu
import pytest
from dlbridge import asdlpack, nd
from dlbridge.tests._gate import Gate

pytestmark = gpu.needs_gpu


def test_device_pointers_and_streams_arrive(ext):
    torch = gpu.torch()
    tensor = torch.arange(6, dtype=torch.int32, device="cuda").reshape(2, 3)
    side = torch.cuda.Stream()
    assert ext.ints_on_gpu(tensor, stream=side.cuda_stream) == (tensor.data_ptr(), side.cuda_stream)
    assert ext.ints_anywhere(tensor) == tensor.data_ptr()
    array = nd.arange(6, dtype="int32", device="cuda").reshape(2, 3)
    assert ext.ints_on_gpu(array)[0] == array.data_ptr


@pytest.mark.parametrize("ordered", [True, False], ids=["stream named", "control"])
def test_the_named_stream_waits_for_the_producer(ext, ordered):
    torch = gpu.torch()
    producer, consumer = torch.cuda.Stream(), torch.cuda.Stream()
    options = {"stream": consumer.cuda_stream} if ordered else {}
    tensor, seen = (torch.zeros((2, 3), dtype=torch.int32, device="cuda") for _ in range(2))
    for warm_up in (True, False):  # kernels load at their first launch, and that waits for the GPU
        tensor.zero_()
        torch.cuda.synchronize()
        with Gate() as gate:
            if warm_up:
                gate.open()
            with torch.cuda.stream(producer):
                gate.hold(producer.cuda_stream)
                tensor += 7
                ext.ints_on_gpu(tensor, **options)
            with torch.cuda.stream(consumer):
                seen.copy_(tensor)
            assert warm_up or gate.is_closed(), "the call waited on the host"
            if ordered:
                gate.open()
            consumer.synchronize()
            assert warm_up or ordered or gate.is_closed()
            gate.open()
            torch.cuda.synchronize()
    assert seen.tolist() == [[7 if ordered else 0] * 3] * 2


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
        memory += 0  # the kernel is loaded
    side.synchronize()
    for take in (lambda made: memoryview(asdlpack(made, device="cpu")), nd.from_dlpack):
        memory.zero_()
        torch.cuda.synchronize()
        with Gate() as gate:
            with torch.cuda.stream(side):
                gate.hold(side.cuda_stream)
                memory += 3
            made = ext.made_on(memory.data_ptr(), side.cuda_stream)
            assert (str(made.device), made.data_ptr) == ("cuda:0", memory.data_ptr())
            assert made.shape == (2, 3)
            gate.open_within(0.1)  # the values are read on the host, which waits
            assert take(made).tolist() == [[3] * 3] * 2
