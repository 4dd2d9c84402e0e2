"""The namespace itself: names, signatures, documentation, what the Array API asks, what the import costs."""

import ast
import inspect
import pathlib
import subprocess
import sys
import types

import dlbridge.nd as nd
import pytest
from dlbridge.nd import _array_methods

# Array API 2024.12: the names, with the parameters that callers may give by keyword.
STANDARD = """
arange(stop step dtype device) asarray(dtype device copy) empty(shape dtype device) empty_like(dtype device) eye(k
dtype device) from_dlpack(device copy) full(shape fill_value dtype device) full_like(fill_value dtype device)
linspace(dtype device endpoint) meshgrid(indexing) ones(shape dtype device) ones_like(dtype device) tril(k) triu(k)
zeros(shape dtype device) zeros_like(dtype device) astype(copy device) can_cast() finfo() iinfo() isdtype()
result_type() abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
bitwise_or bitwise_right_shift bitwise_xor ceil clip(min max) conj copysign cos cosh divide equal exp expm1 floor
floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp
logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow
real reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc take(axis)
take_along_axis(axis) matmul matrix_transpose tensordot(axes) vecdot(axis) broadcast_arrays broadcast_to
concat(axis) expand_dims(axis) flip(axis) moveaxis permute_dims(axes) repeat(axis) reshape(shape copy) roll(axis)
squeeze(axis) stack(axis) tile unstack(axis) argmax(axis keepdims) argmin(axis keepdims) count_nonzero(axis
keepdims) nonzero searchsorted(side sorter) where unique_all unique_counts unique_inverse unique_values argsort(axis
descending stable) sort(axis descending stable) cumulative_sum(axis dtype include_initial) cumulative_prod(axis
dtype include_initial) max(axis keepdims) mean(axis keepdims) min(axis keepdims) prod(axis dtype keepdims) std(axis
correction keepdims) sum(axis dtype keepdims) var(axis correction keepdims) all(axis keepdims) any(axis keepdims)
diff(axis n prepend append) linalg.cross(axis) linalg.diagonal(offset) linalg.matmul linalg.matrix_norm(keepdims
ord) linalg.matrix_power linalg.matrix_transpose linalg.outer linalg.tensordot(axes) linalg.trace(offset dtype)
linalg.vecdot(axis) linalg.vector_norm(axis keepdims ord) linalg.cholesky(upper) linalg.det
linalg.eigh linalg.eigvalsh linalg.inv linalg.matrix_rank(rtol) linalg.pinv(rtol) linalg.qr(mode) linalg.slogdet
linalg.solve linalg.svd(full_matrices) linalg.svdvals linalg.eig linalg.eigvals
fft.fft(n axis norm) fft.ifft(n axis norm)
fft.fftn(s axes norm) fft.ifftn(s axes norm) fft.rfft(n axis norm) fft.irfft(n axis norm) fft.rfftn(s axes norm)
fft.irfftn(s axes norm) fft.hfft(n axis norm) fft.ihfft(n axis norm) fft.fftfreq(d dtype device)
fft.rfftfreq(d dtype device) fft.fftshift(axes) fft.ifftshift(axes)
"""

OBJECT = """
__abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__ __float__
__floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__
__mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ __iadd__ __radd__
__isub__ __rsub__ __imul__ __rmul__ __itruediv__ __rtruediv__ __ifloordiv__ __rfloordiv__ __ipow__ __rpow__ __imod__
__rmod__ __imatmul__ __rmatmul__ __iand__ __rand__ __ior__ __ror__ __ixor__ __rxor__ __ilshift__ __rlshift__
__irshift__ __rrshift__ to_device dtype device mT ndim shape size T
"""


def standard_functions():
    text = " ".join(STANDARD.split())
    while text:
        head, _, rest = text.partition(" ")
        if "(" in head:
            head, _, rest = text.partition(")")
            rest = rest.lstrip()
        name, _, keywords = head.partition("(")
        yield name, keywords.split()
        text = rest


@pytest.mark.parametrize(
    ("name", "keywords"), list(standard_functions()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_array_api_functions(name, keywords):
    target = nd
    for part in name.split("."):
        target = getattr(target, part)
    assert callable(target)
    if not inspect.isclass(target):
        parameters = inspect.signature(target).parameters
        for keyword in keywords:
            assert parameters[keyword].kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def test_array_api_objects():
    assert (
        nd.e < nd.pi
        and nd.inf > 0
        and nd.nan != nd.nan
        and nd.newaxis is None
        and nd.__array_api_version__ == "2024.12"
    )
    info = nd.__array_namespace_info__()
    assert {"boolean indexing", "data-dependent shapes", "max dimensions"} <= set(info.capabilities())
    assert info.default_device() in info.devices() and "cpu" in info.devices()
    assert info.default_dtypes()["real floating"] == nd.float64 and info.default_dtypes()["indexing"] == nd.int64
    unsigned = {"uint8", "uint16", "uint32", "uint64"}
    names = {"bool", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128"} | unsigned
    assert set(info.dtypes()) == names and set(info.dtypes(kind="unsigned integer")) == unsigned
    x = nd.ones(2, device="cpu")
    for name in OBJECT.split():
        assert name == "mT" or hasattr(x, name), name  # a vector has no mT: ValueError


def public_functions():
    for module, prefix in ((nd, ""), (nd.fft, "fft."), (nd.linalg, "linalg."), (nd.random, "random.")):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not isinstance(value, nd.dtype):
                yield prefix + name, value


def test_every_function_has_documentation_and_a_signature():
    found = dict(public_functions())
    assert len(found) > 350
    for name, value in found.items():
        if value is nd.ufunc:
            continue  # its __doc__ is that of each ufunc
        assert len(inspect.getdoc(value) or "") > 10, name
        if not inspect.isclass(value) or name in ("finfo", "iinfo", "random.Generator"):
            assert inspect.signature(value) is not None, name
    for name, value in vars(nd.ndarray).items():
        if callable(value) and not name.startswith("__"):
            assert value.__doc__, name


def test_names():
    for name in nd.__all__:
        assert hasattr(nd, name), name
    assert sorted(nd.__all__) == nd.__all__ == dir(nd)
    assert nd.acos is nd.arccos and nd.concat is nd.concatenate and nd.pow is nd.power and nd.bool_ is nd.bool
    assert nd.add.__name__ == "add" and nd.add.nin == 2 and nd.add.nout == 1 and "float32" in nd.add.types
    assert repr(nd.finfo("f4")).startswith("finfo(") and nd.iinfo("i1").min == -128 and nd.finfo("bfloat16").bits == 16


def test_limits_as_numpys():
    import numpy as np

    for name in ("float16", "float32", "float64", "complex64"):
        ours, theirs = nd.finfo(name), np.finfo(name)
        for attribute in (
            "bits",
            "eps",
            "epsneg",
            "max",
            "min",
            "tiny",
            "smallest_normal",
            "smallest_subnormal",
            "precision",
        ):
            assert getattr(ours, attribute) == getattr(theirs, attribute), (name, attribute)
    for name in ("int8", "uint8", "int64", "uint64"):
        assert (nd.iinfo(name).min, nd.iinfo(name).max) == (np.iinfo(name).min, np.iinfo(name).max)
    for kind in (
        np.float32,
        np.dtype("float32"),
        "f4",
        nd.float32,
        np.zeros(1, "f4"),
        nd.zeros(1, "f4"),
        np.float32(1),
    ):
        assert nd.finfo(kind).bits == 32 and nd.finfo(kind).dtype == "float32"
    assert nd.iinfo(np.int8).max == nd.iinfo(np.int8(3)).max == 127 and nd.finfo(float).bits == 64
    assert nd.common_type(nd.ones(1, "i4"), nd.ones(1, "f4")) == "float64"


@pytest.mark.parametrize("name", ["c_contiguous", "f_contiguous", "owndata", "writeable", "contiguous", "other"])
def test_flags_are_not_assigned(name):
    x = nd.ones((2, 3))
    with pytest.raises(AttributeError, match="broadcast_to"):
        setattr(x.flags, name, False)
    assert x.flags.writeable and x.flags.c_contiguous


def test_the_stub_names_what_there_is():
    """Editors and type checkers read __init__.pyi: it must list the names of __all__, each from its own module."""
    path = pathlib.Path(nd.__file__).with_suffix(".pyi")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            named |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.AnnAssign):
            named.add(node.target.id)
    assert set(nd.__all__) <= named
    assert {name for name in named if not name.startswith("_")} <= set(nd.__all__) | {"Any", "Final"}


def test_import_is_light():
    """No NumPy, no typing, none of the lazy modules: they are most of what an import would cost."""
    code = (
        "import dlbridge, sys; before = set(sys.modules); import dlbridge.nd; "
        "print(sorted(m for m in set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, env=_environment(), check=True
    )
    loaded = ast.literal_eval(done.stdout)
    assert not {"numpy", "typing", "re", "enum", "collections", "functools", "inspect", "dataclasses"} & set(loaded)
    ours = {m for m in loaded if m.startswith("dlbridge")}
    assert ours == {f"dlbridge.nd{m}" for m in ("", "._native", "._array_methods", "._ufunc_methods")}


def _environment():
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(str(p) for p in sys.path if p)}


@pytest.mark.parametrize("kind", [nd.HostArray, nd.CudaArray])
def test_methods_and_attributes_are_of_an_arrays_own_type_and_those_of_its_bases(kind):
    of_bases = {}
    for base in reversed(kind.__mro__[1:-1]):
        of_bases.update(base.__dict__)
    for name in (*_array_methods.MEMBERS, *of_bases):
        own, member = kind.__dict__.get(name), of_bases[name]
        if isinstance(own or member, (types.MethodDescriptorType, types.GetSetDescriptorType)):
            assert own.__objclass__ is kind and own.__doc__, name
        elif name in _array_methods.MEMBERS:
            assert own is member, name
