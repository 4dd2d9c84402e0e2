"""Cases of functions that are composed of others: their arithmetic has cases of its own, here it is their wiring."""

from __future__ import annotations

from collections.abc import Iterator

from oracle.cases import Case
from oracle.tables import Letter, Table, expand_all, rows

COMPOSED = Table(
    "composed",
    (
        *rows(
            """
            xp.gradient(x)
            xp.gradient(t, axis=1, edge_order=2)
            xp.convolve(x, x[:5])
            xp.convolve(x[:9], x, "same")
            xp.correlate(x, x[:5], "full")
            xp.correlate(x[:6], x, "same")
            xp.cross(w, w[::-1])
            xp.matvec(t, t[0])
            xp.vecmat(t[:, 0], t)
            xp.block([[t, t], [t, t]])
            xp.unique(t, True, True, True, axis=0)
            xp.insert(x, 3, 7)
            xp.insert(t, [1, 3], 2, axis=1)
            xp.trim_zeros(x)
            xp.sort_complex(x)
            xp.polynomial.polynomial.polyvander(x[:9], 4)
            xp.polynomial.polynomial.polycompanion(xp.r_[x[:9], 2])
            xp.polynomial.polyutils.as_series([x, t[0]])
            xp.polynomial.polyutils.trimseq(xp.r_[x[:5], 0, 0])
            xp.polynomial.polyutils.trimcoef(x, 2)
            xp.require(t, None, "F")
            xp.asarray_chkfinite(x)
            xp.intersect1d(x, x[::3], return_indices=True)
            xp.pad(x, 5, "linear_ramp", end_values=3)
            xp.pad(t, 2, "reflect", reflect_type="odd")
            xp.piecewise(x, [x.real < 0, x.real > 2], [-1, 5])
            xp.apply_over_axes(xp.sum, c, [0, 2])
            xp.r_[x, 1, x]
            xp.c_[x, x]
            x.flat[::3]
            x.flat[::2] = 7; x
            x.flat[:] = x[:3]; x
            xp.mask_indices(len(v), xp.triu, 1)
            xp.polyadd(x, x[:3])
            xp.polysub(x[:5], x)
            xp.polymul(x[:9], x[:5])
            xp.polyval(x[:4], x)
            xp.poly1d(x[:4])(x)
            xp.diag_indices_from(s)
            xp.tril_indices_from(t)
            xp.triu_indices_from(t, 1)
            """
        ),
        *rows("xp.poly(x[:3])\nxp.unwrap(x * 3) + 4096", dtypes=("float32", "float64"), ulps=16),
        *rows("x.byteswap().byteswap()", dtypes=("int16", "float32", "int64", "complex128")),
        *rows(
            "xp.cov(t) + 64\nxp.corrcoef(t) + 4\nxp.cov(t, aweights=xp.abs(t[0]) + 1) + 64",
            dtypes=("float64",),
            ulps=200,
        ),
        *rows(
            """
            xp.nanmedian(h)
            xp.nanquantile(h, 0.3)
            xp.nanpercentile(h, 60)
            xp.nanquantile(h, 0.4, method="hazen")
            """,
            dtypes=("float32", "float64"),
            ulps=8,
        ),
        *rows('xp.pad(x, 5, "maximum")\nxp.pad(t, 2, "median", stat_length=3)', dtypes=("int32", "float64")),
        *rows("xp.histogram2d(x, x[::-1], 4)\nxp.histogramdd(w, 3)", dtypes=("int32", "float64"), ulps=8),
        *rows("xp.packbits(x)\nxp.packbits(t, axis=1, bitorder='little')", dtypes=("bool", "uint8", "int32")),
        *rows("xp.unpackbits(x)\nxp.unpackbits(t, axis=0, count=9)", dtypes=("uint8",)),
        *rows("xp.bitwise_count(x)\nxp.bitwise_count(t[:, ::-2])", dtypes=("bool", "int8", "uint16", "int64")),
        *rows(
            """
            xp.lib.stride_tricks.as_strided(x.copy(), (7, 5), (3 * x.itemsize, x.itemsize))
            xp.lib.stride_tricks.sliding_window_view(x[::-2], 3)
            xp.lib.stride_tricks.sliding_window_view(t, (2, 3))
            """
        ),
    ),
    {
        "x": Letter("whole"),
        "t": Letter("whole", "table"),
        "w": Letter("whole", "triples"),
        "c": Letter("whole", "cube"),
        "s": Letter("whole", "square"),
        "v": Letter("whole", "few"),
        "h": Letter("holes"),
    },
    dtypes=("int32", "float32", "float64", "complex128"),
    sizes=(65, 2049, 5000),
)


def cases() -> Iterator[Case]:
    yield from expand_all((COMPOSED,))
