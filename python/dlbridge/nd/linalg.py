"""Products, norms, decompositions and solvers.

Products and most norms are the ndarray's own on every device. The others are NumPy's LAPACK on the host, on the arrays'
own memory, and cuSOLVER and cuBLAS on CUDA devices: those of PyTorch, of wheels (nvidia-cusolver) or of a toolkit. For
matrices of up to 55 rows at least, cholesky, det, inv, slogdet and solve there are a kernel of the ndarray's instead.
Matrices are the last two axes, those before them are stacked. 16-bit floats are computed in float32, integers in
float64.
"""

from __future__ import annotations

from dlbridge.nd._decompositions import cholesky as cholesky
from dlbridge.nd._decompositions import det as det
from dlbridge.nd._decompositions import eig as eig
from dlbridge.nd._decompositions import eigh as eigh
from dlbridge.nd._decompositions import eigvals as eigvals
from dlbridge.nd._decompositions import eigvalsh as eigvalsh
from dlbridge.nd._decompositions import matrix_rank as matrix_rank
from dlbridge.nd._decompositions import qr as qr
from dlbridge.nd._decompositions import slogdet as slogdet
from dlbridge.nd._decompositions import svd as svd
from dlbridge.nd._decompositions import svdvals as svdvals
from dlbridge.nd._lapack import LinAlgError as LinAlgError
from dlbridge.nd._manipulation import matrix_transpose as matrix_transpose
from dlbridge.nd._norms import cond as cond
from dlbridge.nd._norms import matrix_norm as matrix_norm
from dlbridge.nd._norms import norm as norm
from dlbridge.nd._norms import vector_norm as vector_norm
from dlbridge.nd._products import cross as cross
from dlbridge.nd._products import diagonal as diagonal
from dlbridge.nd._products import matmul as matmul
from dlbridge.nd._products import multi_dot as multi_dot
from dlbridge.nd._products import outer as outer
from dlbridge.nd._products import tensordot as tensordot
from dlbridge.nd._products import trace as trace
from dlbridge.nd._products import vecdot as vecdot
from dlbridge.nd._solvers import inv as inv
from dlbridge.nd._solvers import lstsq as lstsq
from dlbridge.nd._solvers import matrix_power as matrix_power
from dlbridge.nd._solvers import pinv as pinv
from dlbridge.nd._solvers import solve as solve
from dlbridge.nd._solvers import tensorinv as tensorinv
from dlbridge.nd._solvers import tensorsolve as tensorsolve

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]
