"""What nd.linalg refuses: by NumPy's exceptions, with what was got and what to do; arrays on a device; no NumPy."""

import subprocess
import sys

import numpy as np
import pytest
from dlbridge import nd

pytestmark = pytest.mark.usefixtures("arrays_there")

SQUARE = ["cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet"]
ANY = ["qr", "svd", "svdvals", "pinv"]
LINALG = np.linalg.LinAlgError
REFUSED = [
    *((f"{name}(nd.ones((2, 3)))", LINALG, "square") for name in SQUARE),
    *((f"{name}(nd.ones(3))", LINALG, "1 dimension;") for name in SQUARE + ANY),
    *((f"{name}(nd.asarray(3.0))", LINALG, "0 dimensions") for name in SQUARE + ANY),
    *((f"{name}(np.eye(2))", TypeError, "numpy.ndarray") for name in SQUARE + ANY),
    *(
        (f"{name}(nd.full((2, 2), nd.nan))", LINALG, "nan or inf")
        for name in ("eig", "eigvals", "svd", "svdvals", "pinv")
    ),
    ("inv(nd.ones((2, 2)))", LINALG, "singular"),
    ("inv(nd.stack([nd.eye(2), nd.zeros((2, 2))]))", LINALG, "singular"),
    ("cholesky(-nd.eye(2))", LINALG, "positive definite"),
    ("cholesky(nd.ones((2, 3)), upper=True)", LINALG, "square"),
    ("eigh(m, 'X')", ValueError, "'L'"),
    ("eigvalsh(m, UPLO=1)", ValueError, "'L'"),
    ("qr(m, 'full')", ValueError, "'reduced'"),
    ("svd(nd.ones((2, 3)), hermitian=True)", LINALG, "square"),
    ("pinv(nd.ones((2, 3)), hermitian=True)", LINALG, "square"),
    ("pinv(m, 0.1, rtol=0.1)", ValueError, "both"),
    ("matrix_rank(m, 0.1, rtol=0.1)", ValueError, "both"),
    ("matrix_rank(nd.full((2, 2), nd.nan))", LINALG, "matrix_rank()"),
    ("solve(m, nd.ones(3))", ValueError, "does not fit"),
    ("solve(m, nd.asarray(1.0))", ValueError, "does not fit"),
    ("solve(nd.ones((3, 2, 2)), nd.ones((4, 2, 1)))", ValueError, "broadcast"),
    ("solve(nd.ones((2, 3)), nd.ones(2))", LINALG, "square"),
    ("solve(nd.zeros((2, 2)), nd.ones(2))", LINALG, "solve()"),
    ("lstsq(nd.ones((2, 2, 2)), nd.ones(2))", LINALG, "one at a time"),
    ("lstsq(nd.ones(2), nd.ones(2))", LINALG, "a matrix has two"),
    ("lstsq(m, nd.ones(3))", LINALG, "as many rows"),
    ("lstsq(m, nd.ones((2, 2, 2)))", LINALG, "one or two dimensions"),
    ("lstsq(nd.full((2, 2), nd.nan), nd.ones(2))", LINALG, "nan or inf"),
    ("matrix_power(nd.ones((2, 3)), 2)", LINALG, "square"),
    ("matrix_power(nd.zeros((2, 2)), -1)", LINALG, "matrix_power()"),
    ("matrix_power(m, 1.5)", TypeError, ""),
    ("tensorinv(nd.ones((2, 3, 6)), 0)", ValueError, "ind is 0"),
    ("tensorinv(nd.ones((2, 3, 5)))", LINALG, "tensorinv()"),
    ("tensorsolve(nd.ones((2, 3, 5)), nd.ones((2, 3)))", LINALG, "tensorsolve()"),
    ("tensorsolve(nd.ones((2, 3, 6)), nd.ones((2, 2)))", LINALG, "as many elements"),
    ("tensorsolve(nd.ones((2, 3, 6)), nd.ones((2, 3)), axes=(5,))", IndexError, "axis 5"),
    ("cond(nd.ones(2))", LINALG, "a matrix has two"),
    ("cond(nd.ones((2, 3)), 1)", LINALG, "square"),
    ("cond(nd.zeros((0, 0)))", LINALG, "cond is not defined on empty arrays"),
    ("cond(m, 3)", ValueError, "p 3"),
    ("norm(nd.full((2, 2), nd.nan), 2)", LINALG, "norm()"),
    ("matrix_norm(nd.zeros((0, 2)), ord=-2)", ValueError, ""),
    ("matrix_norm(nd.ones(3), ord=2)", ValueError, "a matrix has two"),
    ("multi_dot([m, nd.ones((2, 2, 2)), m])", LINALG, "matrices"),
]


@pytest.mark.parametrize(("call", "exception", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_is_refused(call, exception, message):
    with pytest.raises(exception) as caught:
        eval(f"nd.linalg.{call}", {"nd": nd, "np": np, "m": nd.eye(2)})
    assert message in str(caught.value) and str(caught.value).count("\n") == 0
    if exception is LINALG:
        assert isinstance(caught.value, nd.linalg.LinAlgError) and isinstance(caught.value, ValueError)


def run(code):
    subprocess.run([sys.executable, "-c", f"import sys\n{code}"], check=True)


def test_without_numpy_the_error_says_so():
    run(
        "sys.modules['numpy'] = None\n"
        "from dlbridge import nd\n"
        "x = nd.ones((2, 2), device='cpu')\n"
        "assert nd.linalg.matrix_power(x, 2).tolist() == [[2, 2], [2, 2]]\n"
        "try: nd.linalg.inv(x)\n"
        "except ImportError as error: assert 'inv(): NumPy' in str(error) and 'pip install numpy' in str(error)\n"
        "else: raise AssertionError\n"
        "try: nd.linalg.inv(x[:1])\n"
        "except nd.linalg.LinAlgError as error: assert type(error) is nd.linalg.LinAlgError\n"
        "else: raise AssertionError"
    )


def test_the_namespace_opens_no_library():
    run(
        "from dlbridge import nd\n"
        "assert nd.linalg.norm(nd.ones(4, device='cpu')).item() == 2 and nd.linalg.svd.__doc__\n"
        "assert not {'numpy', 'scipy'} & set(sys.modules)"
    )
