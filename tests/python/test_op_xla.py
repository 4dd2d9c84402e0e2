"""op() inside of JAX's compiled programs, on the host and on a GPU: over XLA's own buffers; errors."""

import itertools
import threading

import pytest
from dlbridge import nd, op

np = pytest.importorskip("numpy")
jax = pytest.importorskip("jax")
ffi = pytest.importorskip("jax.ffi")

_numbers = itertools.count()
A = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


def made(function, out="like:0", **keywords):
    return op(f"dlbridge_tests::xla{next(_numbers)}", function, out=out, **keywords)


@pytest.fixture(autouse=True, params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    try:
        found = jax.devices(request.param)[0]
    except RuntimeError as error:
        pytest.skip(f"this JAX has no {request.param}: {error}")
    with jax.default_device(found):
        yield request.param


def test_the_function_sees_the_arguments_own_memory():
    seen = []

    def double(x):
        seen.append(x.data_ptr)
        return x * 2

    a = jax.numpy.asarray(A)
    y = jax.jit(made(double))(a)
    np.testing.assert_array_equal(y, A * 2)
    assert seen == [a.unsafe_buffer_pointer()]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0, 3), (2, 3)])
def test_every_dtype_and_shape_comes_through(dtype, shape):
    x = (jax.numpy.arange(np.prod(shape, dtype=int)) % 2).astype(dtype).reshape(shape)
    y = jax.jit(made(lambda x: x.copy()))(x)
    assert y.dtype == x.dtype and y.shape == shape
    np.testing.assert_array_equal(
        np.asarray(y).view("uint8" if shape else y.dtype), np.asarray(x).view("uint8" if shape else x.dtype)
    )


def test_a_result_of_any_strides_is_laid_out_for_xla():
    y = jax.jit(made(lambda x: (x * 2).T, out=lambda x: (x.shape[::-1], x.dtype)))(jax.numpy.asarray(A))
    np.testing.assert_array_equal(y, A.T * 2)


def test_an_error_of_the_function_reaches_the_caller_with_its_type_and_the_program_goes_on():
    fail = True

    def sometimes(x):
        if fail:
            raise KeyError("no such weight")
        return x * 2

    f = jax.jit(made(sometimes))
    with pytest.raises(Exception, match="KeyError: 'no such weight'"):
        jax.block_until_ready(f(jax.numpy.asarray(A)))
    fail = False
    np.testing.assert_array_equal(f(jax.numpy.asarray(A)), A * 2)


def test_a_result_that_is_not_what_out_says_is_an_error():
    f = jax.jit(made(lambda x: x.sum()))
    with pytest.raises(Exception, match=r"DataError: .* result 0 has shape \(\) and dtype float32"):
        jax.block_until_ready(f(jax.numpy.asarray(A)))


def test_an_argument_that_is_kept_is_an_error():
    kept = []

    def keep(x):
        kept.append(x)
        return x * 2

    with pytest.raises(Exception, match=r"the function kept argument 0, .* Keep a copy: x.copy\(\)"):
        jax.block_until_ready(jax.jit(made(keep))(jax.numpy.asarray(A)))
    kept.clear()


def test_an_argument_that_only_a_cycle_holds_is_none_that_is_kept():
    def cyclic(x):
        ring = [x]
        ring.append(ring)
        return x * 2

    np.testing.assert_array_equal(jax.jit(made(cyclic))(jax.numpy.asarray(A)), A * 2)


def test_arguments_of_several_arrays_and_results_keep_their_order():
    both = made(lambda a, b: (a - b, b[0] * 1), out=["like:0", lambda a, b: (b.shape[1:], b.dtype)])
    difference, row = jax.jit(both)(jax.numpy.asarray(A), jax.numpy.asarray(A * 3))
    np.testing.assert_allclose(difference, A * -2, rtol=1e-6)
    np.testing.assert_allclose(row, A[0] * 3, rtol=1e-6)


def test_gradients_and_batches_of_compiled_programs_go_the_same_way(device):
    seen = []

    def backward(grad, out, x):
        seen.append(type(x))
        return grad * 2 * x

    square = made(lambda x: x * x, backward=backward)
    gradient = jax.jit(jax.grad(lambda x: jax.vmap(square)(x).sum()))
    np.testing.assert_allclose(gradient(jax.numpy.asarray(A)), A * 2, rtol=1e-6)
    assert len(seen) == len(A) and set(seen) == {nd.HostArray if device == "cpu" else nd.CudaArray}


@pytest.mark.gpu
def test_the_function_runs_on_the_programs_stream(device):
    if device == "cpu":
        pytest.skip("the host has no streams")
    seen = []

    def double(x):
        seen.append((nd.cuda.get_current_stream().ptr, x.device))
        return x * 2

    f = jax.jit(lambda x: made_once(x + 1).sum(axis=0) * 3)
    made_once = made(double)
    np.testing.assert_allclose(f(jax.numpy.asarray(A)), ((A + 1) * 2).sum(0) * 3, rtol=1e-5)
    assert seen[0][0] > 2 and str(seen[0][1]) == "cuda:0"
    assert nd.cuda.get_current_stream().ptr == 0


@pytest.mark.gpu
def test_torch_may_compute_in_the_function(device):
    torch = pytest.importorskip("torch")
    if device == "cpu" or not torch.cuda.is_available():
        pytest.skip("this is about streams of a GPU")
    f = jax.jit(made(lambda x: torch.from_dlpack(x.copy()) * 2))
    x = jax.numpy.arange(1 << 20, dtype="float32")
    for _ in range(20):
        x = f(x) / 2
    np.testing.assert_array_equal(x, np.arange(1 << 20, dtype="float32"))


def test_programs_in_several_threads_call_it():
    f = jax.jit(made(lambda x: x * 2))
    wrong = []

    def work():
        for _ in range(20):
            if not np.array_equal(f(jax.numpy.asarray(A)), A * 2):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_jax_without_foreign_functions_calls_back(monkeypatch):
    monkeypatch.delattr(jax, "ffi")
    seen = []

    def double(x):
        seen.append(x.data_ptr)
        return x * 2

    a = jax.numpy.asarray(A)
    np.testing.assert_array_equal(jax.jit(made(double))(a), A * 2)
    assert seen and seen != [a.unsafe_buffer_pointer()]


def test_a_dtype_that_has_no_bytes_of_its_own_goes_by_the_callback():
    from dlbridge import DType, _op_xla

    assert _op_xla.takes([DType("float32"), DType("float8_e5m2")])
    assert not _op_xla.takes([DType("float32"), DType("float4_e2m1fn")])
