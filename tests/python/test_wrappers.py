"""Objects that stand for arrays while something traces: the error says what they are, and what to do."""

import pytest
from dlbridge import ExchangeError, asdlpack, convert

CALLS = {"asdlpack": asdlpack, "convert": lambda x: convert(x, "buffer"), "tree": lambda x: convert({"x": x}, "buffer")}


@pytest.fixture(params=CALLS)
def refused(request):
    """Checks that an object is refused in the right words, and gives it back."""

    def check(x, what, remedy="outside|before or after"):
        with pytest.raises(ExchangeError, match=what) as caught:
            CALLS[request.param](x)
        message = str(caught.value)
        assert "damaged" not in message
        import re

        assert re.search(remedy, message), message
        if request.param == "tree":
            assert message.startswith('convert(): tree["x"]: ')
        return x

    return check


# --- PyTorch ---------------------------------------------------------------------------------------------------------


def test_fake_tensors(refused):
    fake_tensor = pytest.importorskip("torch._subclasses.fake_tensor")
    torch = pytest.importorskip("torch")
    with fake_tensor.FakeTensorMode():
        x = torch.zeros(3)
        refused(x, "is a FakeTensor, which has a shape and no data")
    refused(x, "is a FakeTensor", "torch.library.custom_op")


def test_vmap(refused):
    torch = pytest.importorskip("torch")
    torch.vmap(lambda x: refused(x, "wrapper of torch.vmap"))(torch.zeros(2, 3))


def test_grad(refused):
    torch = pytest.importorskip("torch")
    torch.func.grad(lambda x: refused(x, r"wrapper of torch.func \(grad").sum())(torch.ones(3))


def test_grad_after_detach(refused):
    torch = pytest.importorskip("torch")
    torch.func.grad(lambda x: (refused(x.detach(), "wrapper of torch.func"), x.sum())[1])(torch.ones(3))


def test_functionalize(refused):
    torch = pytest.importorskip("torch")
    torch.func.functionalize(lambda x: refused(x, "functional wrapper"))(torch.ones(3))


def test_functional_tensors(refused):
    functional = pytest.importorskip("torch._subclasses.functional_tensor")
    torch = pytest.importorskip("torch")
    with functional.FunctionalTensorMode():
        refused(functional.FunctionalTensor.to_functional(torch.ones(3)), "is a FunctionalTensor")


def test_fx_proxies(refused):
    torch = pytest.importorskip("torch")
    torch.fx.symbolic_trace(lambda x: refused(x, "is a torch.fx.Proxy"))


def test_tracing_with_fake_tensors(refused):
    proxy_tensor = pytest.importorskip("torch.fx.experimental.proxy_tensor")
    torch = pytest.importorskip("torch")
    proxy_tensor.make_fx(lambda x: refused(x, "is a FakeTensor"), tracing_mode="fake")(torch.ones(3))


def test_meta(refused):
    torch = pytest.importorskip("torch")
    refused(torch.zeros(2, device="meta"), "on the meta device", "to_empty")


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_sparse(refused, layout):
    torch = pytest.importorskip("torch")
    refused(getattr(torch.eye(2), layout)(), "is sparse", r"to_dense\(\)")


def test_nested(refused):
    torch = pytest.importorskip("torch")
    parts = [torch.ones(2), torch.ones(3)]
    refused(torch.nested.nested_tensor(parts), "is nested", "unbind")
    refused(torch.nested.nested_tensor(parts, layout=torch.jagged), "is nested", "unbind")


def test_quantised(refused):
    torch = pytest.importorskip("torch")
    refused(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "is quantised", "dequantize")


def test_compile_breaks_the_graph_and_runs():
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    f = torch.compile(lambda x: convert(x + 1, "numpy"), backend="eager")
    assert numpy.array_equal(f(torch.ones(3)), [2, 2, 2])


def test_compile_of_a_whole_graph_names_the_function():
    torch = pytest.importorskip("torch")
    f = torch.compile(lambda x: convert(x + 1, "numpy"), backend="eager", fullgraph=True)
    with pytest.raises(Exception, match=r"dlbridge\._core\.convert"):
        f(torch.ones(3))


def test_parameters_and_subclasses_are_read_as_before():
    torch = pytest.importorskip("torch")

    class Mine(torch.Tensor):
        pass

    assert asdlpack(torch.ones(2).as_subclass(Mine)).shape == (2,)
    assert asdlpack(torch.nn.Parameter(torch.ones(2), requires_grad=False)).shape == (2,)


# --- JAX -------------------------------------------------------------------------------------------------------------

TRANSFORMS = {
    "jit": lambda jax, f: jax.jit(f)(jax.numpy.ones(3)),
    "vmap": lambda jax, f: jax.vmap(f)(jax.numpy.ones((2, 3))),
    "grad": lambda jax, f: jax.grad(lambda x: f(x).sum())(jax.numpy.ones(3)),
    "jvp": lambda jax, f: jax.jvp(f, (jax.numpy.ones(3),), (jax.numpy.ones(3),)),
    "eval_shape": lambda jax, f: jax.eval_shape(f, jax.numpy.ones(3)),
    "scan": lambda jax, f: jax.lax.scan(lambda c, x: (f(c), x), jax.numpy.ones(3), jax.numpy.ones(2)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_tracers_of_jax(transform, refused):
    jax = pytest.importorskip("jax")
    TRANSFORMS[transform](jax, lambda x: refused(x, "is a tracer of jax", "jax.pure_callback"))


def test_arrays_that_a_traced_function_closes_over_are_read():
    jax = pytest.importorskip("jax")
    outside = jax.numpy.ones(3)
    assert jax.jit(lambda x: x + asdlpack(outside).shape[0])(1) == 4


def test_pure_callback_is_a_way_out():
    jax = pytest.importorskip("jax")
    shape = jax.ShapeDtypeStruct((3,), "float32")
    twice = jax.jit(lambda x: jax.pure_callback(lambda a: convert(a, "numpy") * 2, shape, x))
    assert twice(jax.numpy.ones(3, "float32")).tolist() == [2, 2, 2]


def test_a_class_that_is_called_tracer_is_no_tracer_of_jax():
    numpy = pytest.importorskip("numpy")

    class Tracer:
        __array_interface__ = numpy.ones(2).__array_interface__

    assert asdlpack(Tracer()).shape == (2,)
