"""Every function and method against NumPy's of the same name: expressions that both evaluate."""

import re

import composed_cases
import numpy as np
import pytest
from dlbridge import nd
from function_cases import EXPRESSIONS, FUNCTIONS
from method_cases import METHODS, STATEMENTS
from nd_support import both, check, inputs, on_device

ROWS = (FUNCTIONS | composed_cases.FUNCTIONS).items()
CALLS = [f"xp.{name}({arguments})" for name, rows in ROWS for arguments in rows]
EXPRESSIONS = EXPRESSIONS + composed_cases.EXPRESSIONS


@pytest.mark.parametrize("expression", CALLS + EXPRESSIONS)
def test_function_as_numpy(expression, device):
    both(expression, device)


@pytest.mark.parametrize("expression", METHODS)
def test_method_as_numpy(expression, device):
    both(expression, device)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statement_as_numpy(statement, device):
    theirs = {**inputs(), "np_eye": np.eye(4)}
    ours = on_device(theirs, device)
    theirs["r"] = theirs["r"][::-2, 1::2]
    with np.errstate(all="ignore"):
        exec(statement, {"xp": np, "np": np}, theirs)
        exec(statement, {"xp": nd, "np": np}, ours)
    for name, want in theirs.items():
        check(ours[name], want)


# Names whose tests are in the other files.
ELSEWHERE = """
AxisError CudaArray HostArray ndarray ufunc cuda fft linalg lib polynomial random dtype e euler_gamma inf nan newaxis pi
asnumpy empty
from_dlpack fromDlpack get_array_module finfo iinfo common_type min_scalar_type promote_types result_type astype
array_repr array_str array2string may_share_memory histogram_bin_edges RawKernel RawModule ElementwiseKernel
ReductionKernel fuse row_stack get_default_memory_pool get_default_pinned_memory_pool NpzFile flatiter poly1d fromfile
fromstring genfromtxt load loadtxt save savetxt savez savez_compressed __array_namespace_info__ byte_bounds
"""


def test_every_public_name_is_tested_here_or_is_a_ufunc():
    """A function that is added to the namespace needs a row above, or a test of its own that is named here."""
    tested = set(re.findall(r"xp\.(\w+)", " ".join(CALLS + EXPRESSIONS + METHODS + STATEMENTS)))
    missing = [
        name
        for name in nd.__all__
        if name not in ELSEWHERE.split()
        and not isinstance(getattr(nd, name), (nd.ufunc, nd.dtype))
        and name not in tested
    ]
    assert missing == []
