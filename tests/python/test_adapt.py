"""adapt(): functions of one framework called with the arrays of any."""

import inspect
import sys
import types

import dlbridge
import pytest
from dlbridge import ExchangeError, adapt, asdlpack

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def make(name, values=X):
    if name == "numpy":
        return values.copy()
    if name == "dlbridge":
        return asdlpack(values)
    if name == "nd":
        return dlbridge.nd.asarray(values, device="cpu")
    if name == "jax":
        jax = pytest.importorskip("jax")
        return jax.device_put(values, jax.devices("cpu")[0])
    return getattr(pytest.importorskip(name), {"torch": "asarray", "tensorflow": "constant"}[name])(values)


NAMES = ["numpy", "torch", "jax", "tensorflow", "nd", "dlbridge"]


def twice(x):
    assert type(x) is np.ndarray
    return x * 2


@pytest.mark.parametrize("name", NAMES)
def test_the_callers_framework_comes_back(name):
    x = make(name)
    result = adapt("numpy")(twice)(x)
    assert type(result).__module__ == type(x).__module__
    np.testing.assert_array_equal(np.asarray(result), 2 * X)


@pytest.mark.parametrize("name", ["torch", "jax", "numpy"])
def test_a_function_of_torch_takes_them_all(name):
    torch = pytest.importorskip("torch")

    @adapt("torch")
    def flip(x):
        assert isinstance(x, torch.Tensor)
        return x.flip(0)

    x = make(name)
    assert type(flip(x)) is type(x)
    np.testing.assert_array_equal(np.asarray(flip(x)), X[::-1])


def test_arrays_that_match_are_passed_on_untouched():
    seen = []
    f = adapt("numpy")(lambda *args, **kwargs: seen.append((args, kwargs)))
    batch = {"a": [X]}
    f(X, batch, 3, b=X)
    ((args, kwargs),) = seen
    assert args[0] is X and args[1] is batch and kwargs["b"] is X


def test_subclasses_match():
    masked = np.ma.array([1, 2], mask=[True, False])
    assert adapt("numpy")(lambda x: x)(masked) is masked


def test_what_holds_no_array_is_passed_on_untouched():
    torch = pytest.importorskip("torch")
    options = {"mode": ["reflect"]}
    seen = []

    @adapt
    def f(x, options, *, names):
        seen.extend([options, names])
        return x

    names = ["a"]
    f(torch.ones(2), options, names=names)
    assert seen[0] is options and seen[1] is names


def test_without_arrays_the_result_is_as_it_is():
    assert adapt("numpy")(lambda x: np.ones(2))(3).tolist() == [1, 1]


def test_nested_arguments_and_results():
    torch = pytest.importorskip("torch")

    @adapt("numpy")
    def f(batch, *, scale):
        assert isinstance(batch["x"][0], np.ndarray) and isinstance(scale, np.ndarray)
        return {"y": (batch["x"][0] * scale, "text", 1.5)}

    result = f({"x": [torch.ones(2)]}, scale=torch.full((2,), 3.0))
    assert isinstance(result["y"][0], torch.Tensor) and result["y"][0].tolist() == [3.0, 3.0]
    assert result["y"][1:] == ("text", 1.5)


def test_memory_is_shared_both_ways():
    torch = pytest.importorskip("torch")
    x = torch.zeros(3)
    same = adapt("numpy")(lambda a: a[1:])(x)
    same[0] = 7
    assert x.tolist() == [0, 7, 0]


# --- out, device, like -----------------------------------------------------------------------------------------------


def test_out_none_gives_the_result_as_it_is():
    torch = pytest.importorskip("torch")
    assert type(adapt("numpy", out=None)(twice)(torch.asarray(X))) is np.ndarray


def test_out_names_a_framework():
    torch = pytest.importorskip("torch")
    for given in (X, torch.asarray(X), asdlpack(X)):
        assert isinstance(adapt("numpy", "torch")(twice)(given), torch.Tensor)
    assert isinstance(adapt(np, out=torch)(lambda: X)(), torch.Tensor)


def test_out_that_names_a_framework_takes_mixed_arrays():
    torch = pytest.importorskip("torch")
    add = adapt("numpy", out="dlbridge")(np.add)
    assert isinstance(add(X, torch.asarray(X)), dlbridge.Tensor)


def test_device_is_where_the_function_works():
    assert adapt("numpy", device="cpu")(twice)(X).tolist() == (2 * X).tolist()


def test_mixed_arrays_are_an_error_that_names_frameworks_and_arguments():
    torch = pytest.importorskip("torch")

    @adapt("numpy")
    def blend(image, *more, weights=None):
        return image

    with pytest.raises(TypeError, match=r"^blend\(\): .*\(image of numpy, weights of torch\).*like='...'"):
        blend(X, weights={"w": torch.ones(2)})
    with pytest.raises(TypeError, match=r"image of torch, more\[1\] of numpy"):
        blend(torch.ones(2), 1, X)


def test_like_names_the_argument_that_wins():
    torch = pytest.importorskip("torch")

    @adapt("numpy", like="weights")
    def blend(image, weights=None):
        return image * 1

    assert isinstance(blend(X, torch.ones(3)), torch.Tensor)
    assert isinstance(blend(torch.asarray(X), weights=X[0]), np.ndarray)
    with pytest.raises(TypeError, match=r"blend\(\): no array is in 'weights'"):
        blend(torch.asarray(X), 3)


def test_like_must_be_a_parameter():
    with pytest.raises(TypeError, match=r"like names 'y', which is no parameter of twice\(\); it has x"):
        adapt("numpy", like="y")(twice)


def test_an_array_of_an_unknown_library_needs_out():
    class Foreign:
        __array_interface__ = X.__array_interface__

    with pytest.raises(TypeError, match=r"twice\(\): x is .*Foreign, of no framework that dlbridge knows"):
        adapt("numpy")(twice)(Foreign())
    assert adapt("numpy", out="numpy")(twice)(Foreign()).tolist() == (2 * X).tolist()


# --- errors ----------------------------------------------------------------------------------------------------------


def test_an_argument_that_cannot_be_converted_is_named():
    torch = pytest.importorskip("torch")
    with pytest.raises(ExchangeError, match=r"^twice\(\): x: the torch.Tensor requires grad"):
        adapt("numpy")(twice)(torch.ones(2, requires_grad=True))
    with pytest.raises(ExchangeError, match=r'^f\(\): batch\["a"\]\[0\]: the torch.Tensor requires grad'):

        @adapt("numpy")
        def f(batch):
            return batch

        f(batch={"a": [torch.ones(2, requires_grad=True)]})


def test_a_result_that_cannot_be_converted_is_named():
    torch = pytest.importorskip("torch")
    with pytest.raises(ExchangeError, match=r"^f\(\): the result\[1\]: NumPy dtype '<U1'"):

        @adapt("numpy")
        def f(x):
            return x, np.array("a")

        f(torch.ones(2))


def test_the_functions_own_errors_pass_through():
    torch = pytest.importorskip("torch")

    @adapt("numpy")
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f(torch.ones(2))
    with pytest.raises(TypeError, match="positional argument"):
        f(torch.ones(2), 2)


@pytest.mark.parametrize("to", ["no_such", "json", 3, None])
def test_a_framework_that_is_none_is_refused_when_the_function_is_made(to):
    with pytest.raises((TypeError, ValueError)):
        adapt(to)(twice)


@pytest.mark.parametrize("out", [3, ["numpy"]])
def test_out_that_is_none_is_refused(out):
    with pytest.raises(TypeError, match="out is"):
        adapt("numpy", out=out)


def test_a_classmethod_object_is_refused_with_the_remedy():
    with pytest.raises(TypeError, match="put @adapt below @classmethod"):
        adapt("numpy")(classmethod(twice))


# --- what wraps() promises -------------------------------------------------------------------------------------------


def test_name_signature_docstring_and_annotations_stay():
    @adapt("numpy")
    def blur(image: "np.ndarray", sigma: float = 1.0, *, mode: str = "reflect") -> "np.ndarray":
        """Blurs."""
        return image

    assert blur.__name__ == "blur" and blur.__doc__ == "Blurs." and blur.__module__ == __name__
    assert str(inspect.signature(blur)).startswith("(image: 'np.ndarray', sigma: float = 1.0, *, mode: str")
    assert blur.__annotations__["sigma"] is float
    assert isinstance(blur, types.FunctionType)


@pytest.mark.parametrize("decorate", [adapt, adapt(), adapt("numpy")], ids=["@adapt", "@adapt()", "@adapt('numpy')"])
def test_with_and_without_parentheses(decorate):
    torch = pytest.importorskip("torch")
    assert isinstance(decorate(twice)(torch.asarray(X)), torch.Tensor)


class Model(dict):
    """self is a container here, and an array: neither is looked at."""

    __array_interface__ = X.__array_interface__

    @adapt("numpy")
    def run(self, x):
        assert type(self) is Model
        self["ran"] = True
        return x * 2

    @classmethod
    @adapt("numpy")
    def make(cls, x):
        assert cls is Model
        return x

    @staticmethod
    @adapt("numpy")
    def scale(x):
        return x * 3


def test_methods():
    torch = pytest.importorskip("torch")
    model = Model()
    assert isinstance(model.run(torch.asarray(X)), torch.Tensor) and model["ran"]
    assert isinstance(Model.run(model, x=torch.asarray(X)), torch.Tensor)
    assert isinstance(Model.make(torch.asarray(X)), torch.Tensor)
    assert isinstance(Model.scale(torch.asarray(X)), torch.Tensor)


def test_builtins_and_ufuncs():
    torch = pytest.importorskip("torch")
    assert adapt("numpy")(np.add)(torch.ones(2), torch.ones(2)).tolist() == [2, 2]
    assert adapt("numpy")(np.concatenate)([torch.ones(1), torch.zeros(1)]).tolist() == [1, 0]


def test_read_only_input_stays_read_only():
    @adapt("numpy")
    def write(x):
        x[0] = 1

    with pytest.raises(ValueError, match="read-only"):
        write(make("jax"))


def test_nothing_leaks():
    torch = pytest.importorskip("torch")
    x, f = torch.asarray(X), adapt("numpy")(lambda x, y: x)
    f(x, [x])
    before = sys.getrefcount(x)
    for _ in range(20):
        f(x, [x])
    assert sys.getrefcount(x) == before


def test_containers_that_hold_themselves_are_an_error():
    loop = []
    loop.append(loop)
    torch = pytest.importorskip("torch")
    adapt("numpy")(lambda x: None)(loop)  # it holds no array
    loop.append(torch.ones(2))
    with pytest.raises(ValueError, match="a container holds itself"):
        adapt("numpy")(lambda x: None)(loop)


# --- libraries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_scipy_ndimage(name):
    ndimage = pytest.importorskip("scipy.ndimage")
    x = make(name)
    result = adapt("numpy")(ndimage.gaussian_filter)(x, sigma=1.0)
    assert type(result).__module__ == type(x).__module__
    np.testing.assert_array_equal(np.asarray(result), ndimage.gaussian_filter(X, sigma=1.0))


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_scipy_signal(name):
    signal = pytest.importorskip("scipy.signal")
    x, kernel = make(name, X[0]), make(name, X[1])
    result = adapt("numpy")(signal.fftconvolve)(x, in2=kernel, mode="same")
    assert type(result) is type(x)
    np.testing.assert_array_equal(np.asarray(result), signal.fftconvolve(X[0], X[1], mode="same"))


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_scikit_learn(name):
    sklearn = pytest.importorskip("sklearn.preprocessing")
    result = adapt("numpy")(sklearn.scale)(make(name), with_std=False)
    np.testing.assert_allclose(np.asarray(result), X - X.mean(0))


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_an_estimator_of_ones_own(name):
    linear = pytest.importorskip("sklearn.linear_model")

    class Regression(linear.LinearRegression):
        fit = adapt("numpy", out=None)(linear.LinearRegression.fit)
        predict = adapt("numpy")(linear.LinearRegression.predict)

    x, y = make(name, np.arange(8.0).reshape(4, 2)), make(name, np.arange(4.0))
    model = Regression().fit(x, y)
    predicted = model.predict(x)
    assert type(predicted) is type(x)
    np.testing.assert_allclose(np.asarray(predicted), np.arange(4.0), atol=1e-9)
