"""Functions of matrices, by NumPy's LAPACK on the host and by _device_linalg.py on a device: what each takes, what it
gives, and what its failure means. What is called often goes to that LAPACK without NumPy between."""

from __future__ import annotations

from functools import cache

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_arrays, one_device, with_numpys
from dlbridge.nd._host import by_library, numpys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple

    from dlbridge.nd._arguments import ArrayLike
else:
    from collections import namedtuple

ndarray = _native.ndarray


def _tuple(*found: ndarray) -> tuple[ndarray, ...]:
    return found


class LinAlgError(ValueError):
    """A matrix that an operation cannot work with. Where NumPy is loaded, those raised are of NumPy's class, too."""


LinAlgError.__module__ = "dlbridge.nd.linalg"


def linalg_error(message: str) -> LinAlgError:
    return with_numpys(LinAlgError, "linalg")(message)


# --- results ---------------------------------------------------------------------------------------------------------

if TYPE_CHECKING:

    class EigResult(NamedTuple):
        eigenvalues: ndarray
        eigenvectors: ndarray

    class EighResult(NamedTuple):
        eigenvalues: ndarray
        eigenvectors: ndarray

    class QRResult(NamedTuple):
        Q: ndarray
        R: ndarray

    class SlogdetResult(NamedTuple):
        sign: ndarray
        logabsdet: ndarray

    class SVDResult(NamedTuple):
        U: ndarray
        S: ndarray
        Vh: ndarray

    class Row(NamedTuple):
        """How a function of numpy.linalg is called: see call()."""

        failure: str = ""  # what its LinAlgError says of a matrix, and what to do
        square: bool = True
        result: Any = _tuple  # of several arrays
        function: str = ""  # NumPy's name, where it is another
        keywords: dict[str, Any] = {}  # noqa: RUF012
        stacks: bool = True  # whether matrices may be stacked
        to_complex: bool = False  # also of real matrices
        natively: bool = False  # by LAPACK itself, where the process has loaded it

else:
    EigResult = namedtuple("EigResult", "eigenvalues eigenvectors")
    EighResult = namedtuple("EighResult", "eigenvalues eigenvectors")
    QRResult = namedtuple("QRResult", "Q R")
    SlogdetResult = namedtuple("SlogdetResult", "sign logabsdet")
    SVDResult = namedtuple("SVDResult", "U S Vh")
    Row = namedtuple(
        "Row",
        "failure square result function keywords stacks to_complex natively",
        defaults=("", True, _tuple, "", {}, True, False, False),
    )

_DIVERGED = "a matrix has nan or inf in it, or its iterations did not converge. Look at isfinite(x).all()"
_SINGULAR = "a matrix is singular. Use pinv() or lstsq(), or add to its diagonal"

ROWS: dict[str, Row] = {
    "cholesky": Row("a matrix is not positive definite. Add to its diagonal, or use eigh()", natively=True),
    "cond": Row(_DIVERGED, square=False),
    "det": Row(natively=True),
    "eig": Row(_DIVERGED, result=EigResult, to_complex=True, natively=True),
    "eigh": Row(_DIVERGED, result=EighResult, natively=True),
    "eigvals": Row(_DIVERGED, to_complex=True, natively=True),
    "eigvalsh": Row(_DIVERGED, natively=True),
    "inv": Row(_SINGULAR, natively=True),
    "lstsq": Row(_DIVERGED, square=False, stacks=False, natively=True),
    "pinv": Row(_DIVERGED, square=False),
    "qr": Row(_DIVERGED, square=False, result=QRResult, natively=True),
    "slogdet": Row(result=SlogdetResult, natively=True),
    "solve": Row(_SINGULAR, natively=True),
    "svd": Row(_DIVERGED, square=False, result=SVDResult, natively=True),
    "svdvals": Row(_DIVERGED, square=False, function="svd", keywords={"compute_uv": False}, natively=True),
}


def check_matrices(operation: str, x: ndarray, square: bool = True) -> None:
    """LinAlgError unless the last two axes of an array are those of matrices, of square ones where they have to be."""
    if x.ndim < 2:
        raise linalg_error(f"{operation}(): the array has {x.ndim} dimension{'s' * (x.ndim != 1)}; a matrix has two")
    if square and x.shape[-1] != x.shape[-2]:
        raise linalg_error(
            f"{operation}(): shape {x.shape} is not that of square matrices: its last two extents must be equal"
        )


@cache  # an import statement takes half a microsecond also where the module is there
def _on_device() -> tuple[dict[str, Any], type[Exception]]:
    from dlbridge.nd._cusolver import Failed
    from dlbridge.nd._device_linalg import FUNCTIONS

    return FUNCTIONS, Failed


def call(name: str, *operands: ArrayLike, operation: str = "", **keywords: Any) -> Any:
    """What the function of that row gives for operands, of which the first are the matrices.

    operation: what errors name, `name` by default. LinAlgError where the operand is no matrix or the library
    gives up, ValueError for operands on several devices.
    """
    row = ROWS[name]
    if row.natively and isinstance(operands[0], _native.HostArray):
        found = _native.lapack(name, *operands, **keywords)
        if found is not None:
            return row.result(*found) if isinstance(found, tuple) else found
    arrays, operation = as_arrays(*operands), operation or name
    shape = arrays[0].shape
    check_matrices(operation, arrays[0], row.square)
    if not row.stacks and len(shape) != 2:
        raise linalg_error(f"{operation}(): shape {shape} is that of several matrices; give one at a time")
    device = one_device(arrays, operation)
    moved = any(x.size == 0 for x in arrays)
    if moved:  # nothing to compute, and nothing to move
        arrays = [x.to_device("cpu") for x in arrays]
    if isinstance(arrays[0], _native.HostArray):
        linalg = numpys("numpy.linalg", operation)
        function, refused = getattr(linalg, row.function or name), linalg.LinAlgError
    else:
        functions, refused = _on_device()
        function = functions[row.function or name]
    try:
        found = by_library(function, arrays, not row.to_complex, **row.keywords, **keywords)
    except refused as error:
        raise linalg_error(f"{operation}(): shape {shape}: {row.failure or error}") from error
    several = isinstance(found, tuple)
    if moved:
        found = tuple(x.to_device(device) for x in found) if several else found.to_device(device)
    if row.to_complex:  # NumPy's are real where all eigenvalues are
        found = _to_complex(found)
    return row.result(*found) if several else found


def _to_complex(found: Any) -> Any:
    if isinstance(found, tuple):
        return tuple(map(_to_complex, found))
    return found.astype(_native.result_type(found.dtype, 1j), copy=False)
