"""Cases of linear algebra and of Fourier transforms, which libraries compute: other ones on a device and on the host.

Factors are no unique results, what is made of them is. Errors are measured by the size of the matrix, or of what is
transformed; matrices that are inverted are near the unit matrix, so that they do not grow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oracle.cases import Case
from oracle.tables import Letter, Table, expand_all, rows

LIBRARYS = ("float32", "float64", "complex64", "complex128")
ULPS = 32
SIZE = "np.sqrt((np.abs(@) ** 2).sum((-2, -1)).max()) + @.shape[-1]"
UNSCALED = "4.0 * np.sqrt(@.size)"  # of transforms that are not made as large as what they are made of
# Any matrices, some near the unit matrix, Hermitian ones: one, many small ones, some that are no longer small.
KINDS = {"square": "seh", "sevens": "kfi", "forties": "mgj"}
SMALL_KINDS = {"matrix": "seh", "matrices": "kfi"}  # by their rows, around those at which other threads do the work


def _of_each(text: str, *more: str, kinds: dict[str, str] = KINDS) -> str:
    """The rows for each kind of matrices, which they have as s, e and h; and for other letters that stand for s."""
    return "\n".join(_renamed(text.strip(), letters) for letters in (*kinds.values(), *more))


def _letters_of(kinds: dict[str, str]) -> dict[str, Letter]:
    fills = ("unit", True), ("regular", False), ("hermitian", False)
    return {
        letter: Letter(fill, shape, layouts=layouts)
        for shape, letters in kinds.items()
        for letter, (fill, layouts) in zip(letters, fills, strict=True)
    }


def _renamed(text: str, letters: str) -> str:
    return re.sub(r"\b[seh]\b", lambda found: letters["seh".index(found[0])], text)


LINEAR = Table(
    "linear algebra",
    (
        *rows(
            _of_each(
                """
                xp.linalg.inv(e)
                xp.linalg.solve(e, s)
                xp.linalg.det(e)
                xp.linalg.slogdet(e)[0]
                xp.linalg.slogdet(e)[1]
                xp.linalg.cholesky(h)
                xp.linalg.eigvalsh(h)
                w, v = xp.linalg.eigh(h); (v * w[..., None, :]) @ xp.conj(xp.matrix_transpose(v))
                w, v = xp.linalg.eig(e); xp.abs(e @ v - v * w[..., None, :])
                xp.real(xp.linalg.eigvals(e).sum(-1) - xp.linalg.trace(e))
                xp.linalg.matrix_power(e, -2)
                xp.linalg.cond(e)
                xp.linalg.cond(e, 1)
                """
            )
        ),
        *rows(
            _of_each(
                """
                q, r = xp.linalg.qr(s); q @ r
                q = xp.linalg.qr(s, "complete")[0]; xp.conj(xp.matrix_transpose(q)) @ q
                xp.abs(xp.linalg.qr(s, "r"))
                u, d, v = xp.linalg.svd(s, False); (u * d[..., None, :]) @ v
                u = xp.linalg.svd(s, True)[0]; xp.conj(xp.matrix_transpose(u)) @ u
                xp.linalg.matrix_norm(s, ord=2)
                """,
                "t",
                "z",
            )
        ),
        # A value is as near as the largest is large, by whatever method; the nuclear norm is the sum of all.
        *rows(_of_each("xp.linalg.svdvals(s)", "t", "z"), size=f"4 * ({SIZE})"),
        *rows(_of_each('xp.linalg.matrix_norm(s, ord="nuc")', "t", "z"), size=f"np.min(@.shape[-2:]) * ({SIZE})"),
        *rows(
            """
            xp.linalg.pinv(e)
            xp.linalg.matrix_rank(e)
            xp.linalg.lstsq(e, s, rcond=None)[0]
            xp.linalg.tensorinv(e[None], ind=2)[..., 0]
            xp.linalg.tensorsolve(e, s[0])
            """
        ),
        *rows(
            """
            xp.linalg.pinv(t)
            xp.linalg.lstsq(t, x[: len(t)], rcond=None)[0]
            """,
            dtypes=("float64", "complex128"),
        ),
        *rows(
            """
            xp.polyfit(x[:40], x[:40] * 2, 2)
            xp.sort(xp.abs(xp.roots(xp.r_[2, x[:4]])))
            """,
            dtypes=("float64", "complex128"),
            size="100.0",
        ),
    ),
    {
        **_letters_of(KINDS),
        "t": Letter("unit", "table"),
        "z": Letter("unit", "wide"),
        "x": Letter("unit"),
    },
    dtypes=LIBRARYS,
    sizes=(169, 1225, 5041),
    layout_sizes=(1225,),
    layouts=("contiguous", "strided", "reversed", "transposed", "gapped"),
    ulps=ULPS,
    size=SIZE,
)

SMALL = Table(
    "linear algebra",
    (
        *rows(
            _of_each(
                """
                xp.linalg.inv(e)
                xp.linalg.solve(e, s)
                xp.linalg.solve(e, s[..., :1])
                xp.linalg.det(e)
                xp.linalg.slogdet(e)[0]
                xp.linalg.slogdet(e)[1]
                xp.linalg.cholesky(h)
                """,
                kinds=SMALL_KINDS,
            )
        ),
    ),
    _letters_of(SMALL_KINDS),
    dtypes=LIBRARYS,
    around="matrix",
    sizes=(1, 2, 3, 48, 100),
    layout_sizes=(13, 40),
    layouts=("contiguous", "strided", "reversed", "transposed", "gapped"),
    ulps=ULPS,
    size=SIZE,
)

TRANSFORMS = Table(
    "transforms",
    (
        *rows(
            "\n".join(f"xp.fft.{name}({x}, norm='ortho')" for x in "xtw" for name in ("fft", "ifft", "irfft", "hfft"))
        ),
        *rows(
            """
            xp.fft.fft(x)
            xp.fft.ifft(x, norm="forward")
            xp.fft.irfft(x, norm="forward")
            """,
            size=UNSCALED,
        ),
        *rows(
            """
            xp.fft.fft(t, 10, 0, "ortho")
            xp.fft.ifft(t, 16, 1, "ortho")
            xp.fft.irfft(t, 9, 0, "ortho")
            xp.fft.fft2(t, norm="ortho")
            xp.fft.ifft2(t, norm="ortho")
            xp.fft.fftn(c, norm="ortho")
            xp.fft.ifftn(c, (3, 5), (0, 1), "ortho")
            xp.fft.irfft2(t, norm="ortho")
            xp.fft.irfftn(c, norm="ortho")
            """
        ),
        *rows("xp.fft.rfft(x)", dtypes=("float32", "float64", "int32"), size=UNSCALED),
        *rows(
            """
            xp.fft.rfft(x, norm="ortho")
            xp.fft.rfft(t, 11, 0, "ortho")
            xp.fft.ihfft(x, norm="ortho")
            xp.fft.ihfft(w, norm="ortho")
            xp.fft.rfft2(t, norm="ortho")
            xp.fft.rfftn(c, norm="ortho")
            """,
            dtypes=("float32", "float64", "int32"),
        ),
    ),
    {
        "x": Letter("unit"),
        "t": Letter("unit", "table"),
        "w": Letter("unit", "wide"),
        "c": Letter("unit", "cube"),
    },
    dtypes=(*LIBRARYS, "int32"),
    sizes=(5, 64, 1009, 5000, 20000),
    layout_sizes=(1009,),
    ulps=ULPS,
    size="4.0",
)


def cases() -> Iterator[Case]:
    yield from expand_all((LINEAR, SMALL, TRANSFORMS))
