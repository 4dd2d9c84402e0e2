"""cuFFT and cuSOLVER of the fake driver, by NumPy: for tests of the ndarray where there is no GPU. See conftest.py.

Pointers are memory of the host, as the fake driver's always are. What a call may leave broken is broken here.
"""

import ctypes
import functools
import itertools
import traceback

import numpy as np

DTYPES = {0: np.float32, 1: np.float64, 4: np.complex64, 5: np.complex128}


def memory(address, shape, dtype):
    """The array that lies at an address."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype).reshape(shape)


def finish(stream):
    """What the stream was given before has to be done: what a kernel reads is there."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuStreamSynchronize.argtypes = [ctypes.c_void_p]
    assert driver.cuStreamSynchronize(stream) == 0


def put(address, value, dtype=np.int32):
    """A result at an address of the host."""
    memory(address, (), dtype)[...] = value
    return 0


class Cufft:
    def __init__(self):
        self.plans, self.numbers = {}, itertools.count(1)
        for name in ("Create", "SetAutoAllocation", "XtMakePlanMany", "SetStream", "SetWorkArea", "XtExec", "Destroy"):
            setattr(self, f"cufft{name}", functools.partial(getattr(self, name)))

    def Create(self, out):
        number = next(self.numbers)
        self.plans[number] = {}
        return put(out, number)

    def SetAutoAllocation(self, plan, automatic):
        assert automatic == 0 and not self.plans[plan]
        return 0

    def XtMakePlanMany(self, plan, rank, n, *rest):
        *sides, batch, work, execution = rest
        given, wanted = sides[3], sides[7]
        assert rank <= 3 and batch > 0
        assert DTYPES[execution] is np.result_type(DTYPES[given], DTYPES[wanted]).type and execution >= 4
        layouts = [
            (DTYPES[kind], list(memory(embedding, (rank,), np.int64)), stride, distance)
            for embedding, stride, distance, kind in (sides[:4], sides[4:])
        ]
        self.plans[plan] = {"n": list(memory(n, (rank,), np.int64)), "layouts": layouts, "batch": batch}
        return put(work, 64, np.uint64)

    def SetStream(self, plan, stream):
        self.plans[plan]["stream"] = stream
        return 0

    def SetWorkArea(self, plan, work):
        memory(work, (64,), np.uint8)[...] = 7
        return 0

    @staticmethod
    def _elements(address, extents, batch, layout):
        """The array (batch, *extents) that a layout describes."""
        dtype, embedding, stride, distance = layout
        item = np.dtype(dtype).itemsize
        assert address % (2 * item if dtype in (np.float32, np.float64) else item) == 0
        assert all(wide >= extent for wide, extent in zip(embedding[1:], extents[1:], strict=True))
        steps = [stride * int(np.prod(embedding[k + 1 :])) for k in range(len(extents))]
        span = 1 + (batch - 1) * distance + sum((e - 1) * s for e, s in zip(extents, steps, strict=True))
        strides = [step * item for step in (distance, *steps)]
        return np.ndarray((batch, *extents), dtype, memory(address, (span,), dtype), strides=strides)

    def XtExec(self, plan, given, wanted, direction):
        plan = self.plans[plan]
        finish(plan["stream"])
        n, axes = plan["n"], list(range(1, len(plan["n"]) + 1))
        half = [*n[:-1], n[-1] // 2 + 1]
        to_real, from_real = (layout[0] in (np.float32, np.float64) for layout in reversed(plan["layouts"]))
        x = self._elements(given, half if to_real else n, plan["batch"], plan["layouts"][0])
        out = self._elements(wanted, half if from_real else n, plan["batch"], plan["layouts"][1])
        if to_real:
            assert direction == 1
            assert not x.imag[..., 0].any() and (n[-1] % 2 or not x.imag[..., -1].any())
            out[...] = np.fft.irfftn(x, n, axes, "forward")
            x[...] = np.nan
        elif from_real:
            assert direction == -1
            out[...] = np.fft.rfftn(x, n, axes)
        else:
            out[...] = np.fft.fftn(x, n, axes) if direction == -1 else np.fft.ifftn(x, n, axes, "forward")
        return 0

    def Destroy(self, plan):
        del self.plans[plan]
        return 0


# --- cuSOLVER and cuBLAS ---------------------------------------------------------------------------------------------

WORK = 48
NOT_CONVERGING = 41  # the smaller extent of matrices that Jacobi's method is said not to converge for


def kind_of(dtype):
    return next(kind for kind, found in DTYPES.items() if found is dtype)


def real_kind(kind):
    return kind & 1  # of complex numbers that of their parts


def size_before(count):
    """A function that gives the size of a workspace, by the pointer before its last `count` arguments."""

    def size(*arguments):
        return put(arguments[-1 - count], WORK)

    return size


def written(address, value):
    """A number of 32 bits at an address of the device."""
    memory(address, (), np.int32)[...] = value


def lu(a):
    """LU in place of a matrix, with the rows that were exchanged, counted from 1, and LAPACK's info."""
    n, pivots, info = len(a), [], 0
    for k in range(n):
        p = k + int(np.argmax(np.abs(a[k:, k])))
        pivots.append(p + 1)
        a[[k, p]] = a[[p, k]]
        if a[k, k] == 0:
            info = info or k + 1
            continue
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return pivots, info


def solve_lu(a, pivots, b, transposed=0):
    with np.errstate(all="ignore"):
        if transposed:
            for k in range(len(a)):
                b[k] = (b[k] - a[:k, k] @ b[:k]) / a[k, k]
            for k in reversed(range(len(a))):
                b[k] -= a[k + 1 :, k] @ b[k + 1 :]
            for k, p in reversed(list(enumerate(pivots))):
                b[[k, p - 1]] = b[[p - 1, k]]
            return
        for k, p in enumerate(pivots):
            b[[k, p - 1]] = b[[p - 1, k]]
        for k in range(len(a)):
            b[k + 1 :] -= np.outer(a[k + 1 :, k], b[k])
        for k in reversed(range(len(a))):
            b[k] /= a[k, k]
            b[:k] -= np.outer(a[:k, k], b[k])


def columns_of(address, m, n, dtype):
    """A matrix (m, n) that lies column by column."""
    return memory(address, (n, m), dtype).T


class Solver:
    """Both libraries: a handle is any number; the stream is that of the last call that set one."""

    def __init__(self):
        self.stream = None
        for letter, dtype in zip("SDCZ", DTYPES.values(), strict=True):
            self._typed(letter, dtype)

    def _typed(self, letter, dtype):
        def potrf(handle, uplo, n, pointers, lda, infos, batch):
            finish(self.stream)
            assert n == lda
            for i, address in enumerate(memory(pointers, (batch,), np.int64)):
                self._potrf(uplo, n, dtype, int(address), infos + 4 * i)
            return 0

        def getrf(handle, n, pointers, lda, pivots, infos, batch):
            finish(self.stream)
            for i, address in enumerate(memory(pointers, (batch,), np.int64)):
                found, info = lu(columns_of(int(address), n, lda, dtype))
                memory(pivots + 4 * n * i, (n,), np.int32)[...] = found
                written(infos + 4 * i, info)
            return 0

        def getrs(handle, transposed, n, k, pointers, lda, pivots, sides, ldb, info, batch):
            finish(self.stream)
            assert n == lda == ldb
            put(info, 0)
            for i, (a, b) in enumerate(zip(*(memory(p, (batch,), np.int64) for p in (pointers, sides)), strict=True)):
                pivot = memory(pivots + 4 * n * i, (n,), np.int32)
                solve_lu(columns_of(int(a), n, n, dtype), pivot, columns_of(int(b), n, k, dtype), transposed)
            return 0

        def geqrf(handle, m, n, pointers, lda, taus, info, batch):
            finish(self.stream)
            put(info, 0)
            kind = kind_of(dtype)
            for a, t in zip(*(memory(p, (batch,), np.int64) for p in (pointers, taus)), strict=True):
                self.xgeqrf_(m, n, kind, int(a), lda, kind, int(t), kind, None)
            return 0

        def q_size(handle, m, n, k, a, lda, tau, size):
            assert m >= n >= k and lda == m
            return put(size, WORK)

        def q(handle, m, n, k, a, lda, tau, work, size, info):
            finish(self.stream)
            assert size == WORK
            h, t = columns_of(a, m, n, dtype), memory(tau, (k,), dtype)
            found = np.eye(m, n, dtype=dtype)
            for i in reversed(range(k)):
                v = np.concatenate([np.zeros(i), [1], h[i + 1 :, i]]).astype(dtype)
                found -= t[i] * np.outer(v, v.conj() @ found)
            h[...] = found
            written(info, 0)
            return 0

        def eigh(handle, vectors, uplo, n, a, lda, w, work, size, info, parameters, batch):
            finish(self.stream)
            assert size == WORK and parameters == 1
            kind = kind_of(dtype)
            self.xsyevbatched_(vectors, uplo, n, kind, a, lda, real_kind(kind), w, kind, info, batch)
            return 0

        def svd(handle, vectors, econ, m, n, a, lda, s, u, ldu, v, ldv, work, size, info, parameters):
            finish(self.stream)
            assert size == WORK and parameters == 1 and (lda, ldu, ldv) == (m, m, n)
            matrix, k = columns_of(a, m, n, dtype), min(m, n)
            assert np.isfinite(matrix).all()  # what comes of others is not said
            if k == NOT_CONVERGING:
                written(info, k + 1)
                return 0
            left, values, right = np.linalg.svd(matrix, not econ)
            memory(s, (k,), DTYPES[real_kind(kind_of(dtype))])[...] = values
            if vectors:
                columns_of(u, m, left.shape[1], dtype)[...] = left
                columns_of(v, n, right.shape[0], dtype)[...] = right.conj().T
            matrix[...] = np.nan
            written(info, 0)
            return 0

        def svds(handle, vectors, m, n, a, lda, s, u, ldu, v, ldv, work, size, info, parameters, batch):
            assert max(m, n) <= 32
            item, k = np.dtype(dtype).itemsize, min(m, n)
            real = np.dtype(DTYPES[real_kind(kind_of(dtype))]).itemsize
            for i in range(batch):
                svd(
                    handle, vectors, 0, m, n, a + i * m * n * item, lda, s + i * k * real, u + i * m * m * item, ldu,
                    v + i * n * n * item, ldv, work, size, info + 4 * i, parameters,
                )  # fmt: skip
            return 0

        of_solver = {
            "potrfBatched": potrf,
            "orgqr" if letter in "SD" else "ungqr": q,
            "syevjBatched" if letter in "SD" else "heevjBatched": eigh,
            "gesvdj": svd,
            "gesvdjBatched": svds,
        }
        for name, function in of_solver.items():
            setattr(self, f"cusolverDn{letter}{name}", function)
            sizes = {q: q_size, eigh: size_before(2), svd: size_before(1), svds: size_before(2)}
            if function in sizes:
                setattr(self, f"cusolverDn{letter}{name}_bufferSize", sizes[function])
        for name, function in (("getrf", getrf), ("getrs", getrs), ("geqrf", geqrf)):
            setattr(self, f"cublas{letter}{name}Batched", function)

    @staticmethod
    def _create(out):
        return put(out, 1, np.int64)

    cusolverDnCreate = cusolverDnCreateParams = cublasCreate_v2 = property(lambda self: lambda out: self._create(out))
    cusolverDnCreateSyevjInfo = cusolverDnCreateGesvdjInfo = cusolverDnCreate

    @property
    def cusolverDnSetStream(self):
        def set_stream(handle, stream):
            self.stream = stream
            return 0

        return set_stream

    cublasSetStream_v2 = cusolverDnSetStream

    def __getattr__(self, name):
        """The generic functions: a method each, that gets the arguments before the workspace."""
        base, _, size = name.partition("_")
        work = getattr(type(self), base.removeprefix("cusolverDn").lower() + "_", None)
        if work is None:
            raise AttributeError(name)

        def sizes(handle, parameters, *arguments):
            batch = base.endswith("Batched")
            on_device, on_host = arguments[-2 - batch : len(arguments) - batch]
            put(on_device, WORK, np.uint64)
            return put(on_host, WORK, np.uint64)

        def run(handle, parameters, *arguments):
            batch = arguments[-1:] if base.endswith("Batched") else ()
            *arguments, scratch, on_device, _, on_host, info = arguments[: len(arguments) - len(batch)]
            finish(self.stream)
            assert on_device == on_host == WORK
            memory(scratch, (WORK,), np.uint8)[...] = 9
            work(self, *arguments, info, *batch)
            return 0

        return sizes if size else run

    def _potrf(self, uplo, n, dtype, a, info):
        matrix = columns_of(a, n, n, dtype)
        assert uplo == 0
        try:
            matrix[...] = np.linalg.cholesky(np.tril(matrix)) + np.triu(matrix, 1)
            written(info, 0)
        except np.linalg.LinAlgError:
            written(info, 1)

    def xpotrf_(self, uplo, n, kind, a, lda, computed, info):
        assert n == lda and kind == computed
        self._potrf(uplo, n, DTYPES[kind], a, info)

    def xgetrf_(self, m, n, kind, a, lda, pivots, computed, info):
        assert m == n == lda and kind == computed
        memory(pivots, (n,), np.int64)[...], found = lu(columns_of(a, n, n, DTYPES[kind]))
        written(info, found)

    @property
    def cusolverDnXgetrs(self):
        def run(handle, parameters, transposed, n, k, kind, a, lda, pivots, kind_b, b, ldb, info):
            finish(self.stream)
            assert n == lda == ldb and kind == kind_b
            pivots = memory(pivots, (n,), np.int64)
            solve_lu(columns_of(a, n, n, DTYPES[kind]), pivots, columns_of(b, n, k, DTYPES[kind]), transposed)
            written(info, 0)
            return 0

        return run

    def xgeqrf_(self, m, n, kind, a, lda, kind_of_tau, tau, computed, info):
        assert lda == m and kind == kind_of_tau == computed
        matrix = columns_of(a, m, n, DTYPES[kind])
        h, t = np.linalg.qr(matrix, "raw")
        matrix[...] = h.T
        memory(tau, (min(m, n),), DTYPES[kind])[...] = t
        if info is not None:  # of one call for all
            written(info, 0)

    def xsyevd_(self, vectors, uplo, n, kind, a, lda, kind_of_values, w, computed, info):
        assert n == lda and kind == computed
        matrix, values = columns_of(a, n, n, DTYPES[kind]), memory(w, (n,), DTYPES[kind_of_values])
        values[...], found = np.linalg.eigh(matrix, "LU"[uplo])
        matrix[...] = found if vectors else np.nan
        written(info, 0)

    def xsyevbatched_(self, vectors, uplo, n, kind, a, lda, kind_of_values, w, computed, info, batch):
        for i in range(batch):
            at = a + i * n * n * np.dtype(DTYPES[kind]).itemsize, w + i * n * np.dtype(DTYPES[kind_of_values]).itemsize
            self.xsyevd_(vectors, uplo, n, kind, at[0], lda, kind_of_values, at[1], computed, info + 4 * i)

    def xgesvd_(self, jobu, jobvt, m, n, kind, a, lda, kind_of_s, s, kind_u, u, ldu, kind_v, vt, ldvt, computed, info):
        assert m >= n and lda == m and ldu == m and ldvt == n and jobu == jobvt
        dtype, job = DTYPES[kind], chr(jobu)
        matrix = columns_of(a, m, n, dtype)
        left, values, right = np.linalg.svd(matrix, job == "A")
        memory(s, (n,), DTYPES[kind_of_s])[...] = values
        if job != "N":
            columns_of(u, m, left.shape[1], dtype)[...] = left
            columns_of(vt, n, n, dtype)[...] = right
        matrix[...] = np.nan
        written(info, 0)

    def xgeev_(self, left, right, n, kind, a, lda, kw, w, kl, vl, ldvl, kr, vr, ldvr, computed, info):
        assert left == 0 and vl is None and n == lda == ldvr and kind == kw == kr == computed
        dtype = DTYPES[kind]
        matrix = columns_of(a, n, n, dtype)
        values, vectors = np.linalg.eig(matrix)
        if kind < 4:  # LAPACK's form for real matrices
            memory(w, (2, n), dtype)[...] = values.real, values.imag
            pairs = np.asarray(values.imag) < 0
            vectors = np.where(pairs, -vectors.imag, vectors.real)
        else:
            memory(w, (n,), dtype)[...] = values
        if right:
            columns_of(vr, n, n, dtype)[...] = vectors
        matrix[...] = np.nan
        written(info, 0)


LIBRARIES = {"cufft": Cufft()}
LIBRARIES["cusolver"] = LIBRARIES["cublas"] = Solver()


# --- as functions of C -----------------------------------------------------------------------------------------------

C_TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int, "l": ctypes.c_int64, "z": ctypes.c_size_t, "b": ctypes.c_byte}
RAISED = 255  # the status of a call that raised here; what it was is printed


@functools.cache
def _entry(library, name, arguments):
    function = getattr(LIBRARIES[library], name)

    def call(*given):
        try:
            return function(*given)
        except BaseException:
            traceback.print_exc()
            return RAISED

    return ctypes.CFUNCTYPE(ctypes.c_int, *(C_TYPES[letter] for letter in arguments))(call)


def address(function):
    """In place of dlbridge.nd._nvidia.address()."""
    if not hasattr(LIBRARIES[function.library], function.name):
        return 0
    return ctypes.cast(_entry(function.library, function.name, function.arguments), ctypes.c_void_p).value
