"""op(): one function in PyTorch's and JAX's eager, compiled and differentiated code, and what is refused."""

import functools
import itertools

import dlbridge
import pytest
from child_process import run_python
from dlbridge import nd, op

np = pytest.importorskip("numpy")

_numbers = itertools.count()


def fresh():
    """A name that no operation has."""
    return f"dlbridge_tests::op{next(_numbers)}"


def sine(a, b):
    return nd.sin(a) * b


def sine_backward(grad, out, a, b):
    return grad * nd.cos(a) * b, grad * nd.sin(a)


@functools.cache
def sine_op():
    for name in ("torch", "jax"):  # both are bound when op() is called
        try:
            __import__(name)
        except ImportError:
            continue
    return op(fresh(), sine, out="like:0", backward=sine_backward)


@functools.cache
def split_op():
    """Two results of other shapes and dtypes: the largest of each row, and where; its index weighs nothing."""

    def largest(x):
        return x.max(axis=1), x.argmax(axis=1)

    def backward(grads, outs, x):
        at = nd.arange(x.shape[1], device=str(x.device))[None, :] == outs[1][:, None]
        return at * grads[0][:, None]

    def rows(x):
        return x.shape[:1], x.dtype

    return op(fresh(), largest, out=[rows, lambda x: (x.shape[:1], "int64")], backward=backward)


A = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)
B = np.linspace(2, 3, 12, dtype="float32").reshape(3, 4)


# --- PyTorch --------------------------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def leaves(torch, *arrays):
    return [torch.tensor(array, requires_grad=True) for array in arrays]


def test_torch_eager_and_its_gradient(torch):
    a, b = leaves(torch, A, B)
    y = sine_op()(a, b)
    torch.testing.assert_close(y, torch.sin(a) * b)
    y.sum().backward()  # of an expanded gradient
    torch.testing.assert_close(a.grad, torch.cos(a) * b)
    torch.testing.assert_close(b.grad, torch.sin(a).detach())


@pytest.mark.parametrize("dynamic", [False, True])
def test_torch_compiles_it_in_one_graph(torch, dynamic):
    sin_times = sine_op()
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, dynamic=dynamic, backend="aot_eager")
    def compiled(a, b):
        return (sin_times(a, b) * 2).sum()

    for rows in (3, 2):
        a, b = leaves(torch, A[:rows], B[:rows])
        compiled(a, b).backward()
        torch.testing.assert_close(a.grad, 2 * torch.cos(a) * b)


def test_torch_compiles_several_results_of_symbolic_shapes(torch):
    split = split_op()
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: split(x), fullgraph=True, dynamic=True, backend="aot_eager")
    for array in (A, A[:2]):
        values, places = compiled(torch.tensor(array))
        assert values.tolist() == array.max(1).tolist() and places.tolist() == array.argmax(1).tolist()


def test_torch_s_own_check_of_operations(torch):
    for made, arrays in ((sine_op(), (A, B)), (split_op(), (A,))):
        namespace, _, name = made.name.partition("::")
        torch.library.opcheck(getattr(getattr(torch.ops, namespace), name).default, tuple(leaves(torch, *arrays)))


def test_torch_s_gradcheck(torch):
    x, y = leaves(torch, A.astype("float64"), B.astype("float64"))
    assert torch.autograd.gradcheck(sine_op(), (x, y))
    assert torch.autograd.gradcheck(lambda x: split_op()(x)[0], (x,))


def test_torch_strides_conjugates_and_no_elements(torch):
    double = op(fresh(), lambda x: x * 2, out="like:0")
    t = torch.tensor(A).T
    assert double(t).is_contiguous() and torch.equal(double(t), t * 2)
    z = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert torch.equal(double(z), z * 2)
    assert double(torch.empty(0, 3)).shape == (0, 3)


def test_torch_without_backward_has_no_gradient(torch):
    double = op(fresh(), lambda x: x * 2, out="like:0")
    with pytest.raises(RuntimeError, match="no autograd formula"):
        double(leaves(torch, A)[0]).sum().backward()


def test_torch_integers_have_no_gradient(torch):
    take = op(fresh(), lambda x, i: x[i], out=lambda x, i: (i.shape, x.dtype), backward=lambda g, out, x, i: (None, 7))
    x = leaves(torch, A[0])[0]
    take(x, torch.tensor([2, 0])).sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 0]  # None stands for zero


# --- JAX ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def jax():
    module = pytest.importorskip("jax")
    with module.default_device(module.devices("cpu")[0]):
        yield module


def test_jax_eager_jit_and_vmap(jax):
    a, b = jax.numpy.asarray(A), jax.numpy.asarray(B)
    for f in (sine_op(), jax.jit(sine_op()), jax.vmap(sine_op()), jax.jit(jax.vmap(sine_op()))):
        y = f(a, b)
        assert isinstance(y, jax.Array)
        np.testing.assert_allclose(y, np.sin(A) * B, rtol=1e-6)


def test_jax_gradients(jax):
    a, b = jax.numpy.asarray(A), jax.numpy.asarray(B)
    grad = jax.grad(lambda a, b: sine_op()(a, b).sum(), (0, 1))
    for f in (grad, jax.jit(grad)):
        da, db = f(a, b)
        np.testing.assert_allclose(da, np.cos(A) * B, rtol=1e-6)
        np.testing.assert_allclose(db, np.sin(A), rtol=1e-6)


def test_jax_gradients_of_complex_numbers_are_its_own(jax):
    z = jax.numpy.asarray((A + 1j * B).astype("complex64"))
    square = op(fresh(), lambda z: z * z, out="like:0", backward=lambda g, out, z: g * 2 * nd.conj(z))
    found = jax.grad(lambda z: square(z).real.sum())(z)
    np.testing.assert_allclose(found, jax.grad(lambda z: (z * z).real.sum())(z), rtol=1e-6)
    if torch := pytest.importorskip("torch"):
        t = torch.tensor(np.asarray(z), requires_grad=True)
        square(t).real.sum().backward()
        expected = t.grad.clone()
        t.grad = None
        (t * t).real.sum().backward()
        torch.testing.assert_close(expected, t.grad)


def test_jax_several_results_and_integers(jax):
    made = op(fresh(), lambda x, i: (x[i], i + 1), out=[lambda x, i: (i.shape, x.dtype), "like:1"],
              backward=lambda grads, outs, x, i: ((x * 0 + 1) * grads[0].sum(), None))  # fmt: skip
    x, i = jax.numpy.asarray(A[0]), jax.numpy.asarray([2, 0])
    grad = jax.grad(lambda x: made(x, i)[0].sum())
    for f, g in ((made, grad), (jax.jit(made), jax.jit(grad))):
        values, places = f(x, i)
        assert values.tolist() == [A[0, 2], A[0, 0]] and places.tolist() == [3, 1]
        assert g(x).tolist() == [2, 2, 2, 2]


def test_jax_large_arrays_in_a_compiled_program(jax):
    double = op(fresh(), lambda x: x * 2, out="like:0")
    f = jax.jit(lambda x: double(double(x)).sum())
    x = jax.numpy.ones(1 << 21)
    for _ in range(5):
        assert float(f(x)) == 4 * (1 << 21)


def test_jax_refuses_64_bits_that_are_off(jax):
    wide = op(fresh(), lambda x: x.argmax(), out=lambda x: ((), "int64"))
    if jax.config.jax_enable_x64:
        pytest.skip("64-bit types are on")
    for f in (wide, jax.jit(wide)):
        with pytest.raises(ValueError, match="out says int64, which JAX has with 64-bit types only"):
            f(jax.numpy.asarray(A))


def test_jax_without_backward_has_no_gradient(jax):
    double = op(fresh(), lambda x: x * 2, out="like:0")
    with pytest.raises(TypeError, match="has no gradient. Give op\\(\\) backward="):
        jax.grad(lambda x: double(x).sum())(jax.numpy.asarray(A))


def test_jax_beside_arrays_of_another_library(jax, torch):
    assert np.allclose(sine_op()(jax.numpy.asarray(A), B), np.sin(A) * B)
    with pytest.raises(TypeError, match="got arrays of JAX and Tensor"):
        sine_op()(jax.numpy.asarray(A), torch.tensor(B))


# --- both, and neither ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [np.asarray, lambda x: nd.asarray(x, device="cpu"), dlbridge.asdlpack], ids=["numpy", "nd", "Tensor"]
)
def test_arrays_of_other_libraries_give_their_own_kind(make):
    x = make(A)
    y = sine_op()(x, make(B))
    assert isinstance(y, type(x))
    np.testing.assert_allclose(np.asarray(y), np.sin(A) * B, rtol=1e-6)


def test_the_function_cannot_write_to_its_arguments():
    def write(x):
        x[0] = 1
        return x.copy()

    with pytest.raises((ValueError, BufferError), match="read-only"):
        op(fresh(), write, out="like:0")(A.copy())


def test_functions_that_python_knows_nothing_of_need_their_number_of_arguments():
    with pytest.raises(TypeError, match=r"Python does not know the function's parameters. Give inputs="):
        op(fresh(), max, out="like:0")
    with pytest.raises(TypeError, match=r"has \*, \*\* or keyword-only parameters"):
        op(fresh(), lambda *x: x, out="like:0")
    assert np.asarray(op(fresh(), lambda *x: x[0] + x[1], out="like:0", inputs=2)(A, B)).shape == (3, 4)


def test_a_library_that_is_imported_later_is_found_by_the_first_call():
    pytest.importorskip("torch")
    run_python(
        "import dlbridge; from dlbridge import op; f = op('later::double', lambda x: x * 2, out='like:0', "
        "backward=lambda g, out, x: g * 2); import sys; assert 'torch' not in sys.modules; import torch; "
        "x = torch.ones(3, requires_grad=True); f(x).sum().backward(); assert x.grad.tolist() == [2, 2, 2]; "
        "assert torch.ops.later.double(x).tolist() == [2, 2, 2]"
    )


@pytest.mark.parametrize("name", ["noname", "a:b", "a::", "::b", "a::b::c", "1::b", "a::b c", "\xe4::b", 3], ids=str)
def test_wrong_names_are_refused(name):
    with pytest.raises(ValueError, match="it must be 'namespace::name'"):
        op(name, sine, out="like:0")


def test_names_that_are_taken_are_refused(torch):
    made = sine_op()
    with pytest.raises(ValueError, match="is there already, as <dlbridge.op"):
        op(made.name, sine, out="like:0")
    with pytest.raises(ValueError, match=r"torch\.ops has 'aten::sin' already"):
        op("aten::sin", sine, out="like:0")


@pytest.mark.parametrize("out", ["like:2", "like:", "same", 3, None, ["like:0", "float32"]], ids=str)
def test_wrong_specifications_are_refused(out):
    with pytest.raises(ValueError, match="which is neither 'like:0' to 'like:1' nor a function"):
        op(fresh(), sine, out=out)


def test_what_else_op_refuses():
    with pytest.raises(ValueError, match="out is empty"):
        op(fresh(), sine, out=[])
    with pytest.raises(ValueError, match="takes at least one array"):
        op(fresh(), lambda: 1, out="like:0")
    with pytest.raises(TypeError, match="is not callable"):
        op(fresh(), 3, out="like:0")
    with pytest.raises(TypeError, match="got 1 arrays and takes 2"):
        sine_op()(A)


WRONG = {
    "shape": (
        lambda x: x[0] * 1,
        "like:0",
        dlbridge.DataError,
        r"result 0 has shape \(4,\) and dtype float32, and must",
    ),
    "dtype": (lambda x: x.astype("float64"), "like:0", dlbridge.DataError, "has shape .* and dtype float64, and must"),
    "count": (lambda x: (x * 1, x * 1), ["like:0"], dlbridge.DataError, "the function gave 2 results, and out says 1"),
    "no tuple": (
        lambda x: x * 1,
        ["like:0"],
        dlbridge.DataError,
        "the function gave one (Host|Cuda)Array, and out says 1",
    ),
    "no array": (lambda x: 3, "like:0", dlbridge.ProtocolError, "int"),
    "argument": (lambda x: x, "like:0", dlbridge.DataError, "lies in the memory of an argument. Give a copy"),
    "view": (lambda x: x[::-1], "like:0", dlbridge.DataError, "lies in the memory of an argument. Give a copy"),
    "spec": (lambda x: x * 1, lambda x: x.shape, TypeError, r"out gave \(3, 4\), which is not \(shape, dtype\)"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_results_that_are_not_what_out_says_are_refused(case, library):
    module = pytest.importorskip(library)
    function, out, error, message = WRONG[case]
    array = {"numpy": lambda: A, "torch": lambda: module.tensor(A), "jax": lambda: module.numpy.asarray(A)}[library]()
    with pytest.raises(error, match=message):
        op(fresh(), function, out=out)(array)


def test_gradients_that_are_not_like_the_arguments_are_refused(torch):
    few = op(fresh(), sine, out="like:0", backward=lambda g, out, a, b: (g * 1,))
    with pytest.raises(dlbridge.DataError, match="backward gave 1 results, and the operation has 2 arguments"):
        few(*leaves(torch, A, B)).sum().backward()
    other = op(fresh(), lambda x: x * 2, out="like:0", backward=lambda g, out, x: g[0] * 1)
    with pytest.raises(dlbridge.DataError, match=r"the gradient of argument 0 has shape \(4,\)"):
        other(*leaves(torch, A)).sum().backward()


def test_functions_of_cpp_extensions(ext, torch, jax):
    pair = op(fresh(), ext.like_anything, out=lambda a: ((1, 2), "float32"), inputs=1)
    expected = np.asarray(ext.like_anything(A))
    assert torch.equal(pair(torch.tensor(A)), torch.tensor(expected))
    assert jax.jit(pair)(jax.numpy.asarray(A)).tolist() == expected.tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["nd", "torch"])
def test_on_a_gpu(library):
    if library == "torch":
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("torch has no CUDA here")
        a, b = (torch.tensor(array, device="cuda", requires_grad=True) for array in (A, B))
        y = sine_op()(a, b)
        y.sum().backward()
        torch.testing.assert_close(a.grad, torch.cos(a) * b)
    else:
        y = sine_op()(nd.asarray(A, device="cuda"), nd.asarray(B, device="cuda"))
    assert dlbridge.asdlpack(y.detach() if library == "torch" else y).device.type == "cuda"
    found = dlbridge.convert(y.detach() if library == "torch" else y, "numpy", device="cpu")
    np.testing.assert_allclose(found, np.sin(A) * B, rtol=1e-5)
