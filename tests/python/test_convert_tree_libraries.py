"""convert() of containers that libraries make, and of what they put into containers: optree, frameworks, Arrow."""

from typing import NamedTuple

import dlbridge
import pytest
from child_process import run_python
from dlbridge import ExchangeError, convert

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Meta(NamedTuple):
    x: object


# --- optree ----------------------------------------------------------------------------------------------------------


def test_what_optree_has_registered_is_taken_apart():
    optree = pytest.importorskip("optree")

    class Box:
        def __init__(self, inside):
            self.inside = inside

    def register(namespace):
        optree.register_pytree_node(
            Box, lambda b: ((b.inside,), None, ("inside",)), lambda _, c: Box(*c), namespace=namespace
        )

    box = Box(X)
    assert convert([box], "dlbridge")[0] is box
    register("mine")
    assert convert([box], "dlbridge")[0] is box  # of another namespace
    everywhere = vars(optree.registry)["__GLOBAL_NAMESPACE"]
    optree.register_pytree_node(
        Box, lambda b: ((b.inside,), None, ("inside",)), lambda _, c: Box(*c), namespace=everywhere
    )
    try:
        made = convert([box], "dlbridge")[0]
        assert type(made) is Box and made.inside.data_ptr == X.ctypes.data and box.inside is X
        with pytest.raises(ExchangeError, match=r"tree\[0\]\['inside'\]|tree\[0\]\[\"inside\"\]"):
            convert([Box(np.array([1], ">i4"))], "numpy")
    finally:
        optree.unregister_pytree_node(Box, namespace=everywhere)


def test_deques_are_taken_apart_where_optree_is_imported():
    code = (
        "import collections, numpy as np, dlbridge\n"
        "d = collections.deque([np.ones(2), 1], maxlen=3)\n"
        "assert dlbridge.convert([d], 'dlbridge')[0] is d\n"
        "import sys; assert 'optree' not in sys.modules\n"
        "import optree\n"
        "made = dlbridge.convert([d], 'dlbridge')[0]\n"
        "assert type(made) is collections.deque and made.maxlen == 3\n"
        "assert isinstance(made[0], dlbridge.Tensor) and made[1] == 1\n"
    )
    pytest.importorskip("optree")
    run_python(code)


def test_import_of_dlbridge_brings_no_optree():
    run_python("import sys, dlbridge\ndlbridge.convert([b'a'], 'buffer')\nassert 'optree' not in sys.modules")


# --- frameworks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow", "nd"])
def test_a_batch_goes_there_and_back(name):
    module = dlbridge.nd if name == "nd" else pytest.importorskip(name)
    batch = {"image": X, "labels": [np.arange(3), ("a", 1)], "meta": Meta(np.zeros(2, np.int8))}
    there = convert(batch, module)
    back = convert(there, "numpy")
    np.testing.assert_array_equal(back["image"], X)
    np.testing.assert_array_equal(back["labels"][0], np.arange(3))
    assert back["labels"][1] == ("a", 1) and back["meta"].x.dtype == np.int8


def test_results_of_torch_max_are_rebuilt():
    torch = pytest.importorskip("torch")
    result = convert(torch.max(torch.tensor([[1.0, 2.0]]), 1), "numpy")
    assert type(result).__name__ == "max" and isinstance(result.values, np.ndarray)
    assert isinstance(convert([torch.Size([2, 3])], "numpy")[0], torch.Size)


# --- Arrow -----------------------------------------------------------------------------------------------------------

COLUMNS = {
    "polars Series": ("polars", lambda m: m.Series([1.0, 2.0])),
    "pandas Series": ("pandas", lambda m: m.Series([1.0, 2.0])),
    "pyarrow Array": ("pyarrow", lambda m: m.array([1.0, 2.0])),
    "pyarrow ChunkedArray": ("pyarrow", lambda m: m.chunked_array([[1.0, 2.0]])),
    "nanoarrow Array": ("nanoarrow", lambda m: m.Array([1.0, 2.0], m.float64())),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_an_array(name):
    module, make = COLUMNS[name]
    column = make(pytest.importorskip(module))
    assert convert({"c": column}, "numpy")["c"].tolist() == [1.0, 2.0]


TABLES = {
    "polars DataFrame": ("polars", lambda m: m.DataFrame({"a": [1.0]})),
    "pandas DataFrame": ("pandas", lambda m: m.DataFrame({"a": [1.0]})),
    "pyarrow Table": ("pyarrow", lambda m: m.table({"a": [1.0]})),
    "pyarrow RecordBatch": ("pyarrow", lambda m: m.record_batch({"a": [1.0]})),
    "pyarrow reader": ("pyarrow", lambda m: m.table({"a": [1.0]}).to_reader()),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_stays_as_it_is(name):
    module, make = TABLES[name]
    table = make(pytest.importorskip(module))
    assert convert({"t": table}, "numpy")["t"] is table


def test_a_column_with_nulls_is_named():
    polars = pytest.importorskip("polars")
    with pytest.raises(ExchangeError, match=r'tree\["c"\]: .*null'):
        convert({"c": polars.Series([1.0, None])}, "numpy")
