"""Cases of sorting, searching, sets, and of everything that reads and writes by index or mask."""

from __future__ import annotations

from collections.abc import Iterator

from oracle.arrays import DTYPES, INTS, LAYOUTS, REAL, Input
from oracle.cases import Case
from oracle.tables import Letter, Row, Table, expand_all, rows

# Partitions leave the order within their parts open: the pivot, and that the parts lie on its right sides, are not.
PIVOT = "p = xp.{}(x, len(x) // 2); q = {}; k = len(x) // 2; s = xp.sort(q); (q[k], xp.sort(q[:k]), xp.sort(q[k:]))"

SORTS = Table(
    "sorting",
    (
        *rows(
            """
            xp.sort(x)
            xp.argsort(x, kind="stable")
            x.sort(); x
            x.argsort(kind="stable")
            xp.unique(x)
            xp.unique(x, return_index=True, return_inverse=True, return_counts=True)
            xp.unique_all(x)
            xp.unique_counts(x)
            v, i = xp.unique_inverse(x); (v, v[i])
            xp.sort(xp.unique_values(x))
            xp.nonzero(x)
            xp.flatnonzero(x)
            xp.argwhere(x)
            x.nonzero()
            xp.searchsorted(s, x)
            xp.searchsorted(s, x, side="right")
            xp.searchsorted(x, s, sorter=xp.argsort(x, kind="stable"))
            s.searchsorted(x)
            xp.lexsort((x, s))
            """
        ),
        Row("xp.sort(x, descending=True)", None),
        Row("xp.argsort(x, descending=True)", None),
        Row(PIVOT.format("partition", "p").replace("; ", "\n")),
        Row(PIVOT.format("argpartition", "x[p]").replace("; ", "\n")),
        Row("k = len(x) // 2; x.partition(k); (x[k], xp.sort(x[:k]), xp.sort(x[k:]))".replace("; ", "\n")),
        Row("k = len(x) // 2; q = x[x.argpartition(k)]; (q[k], xp.sort(q[:k]), xp.sort(q[k:]))".replace("; ", "\n")),
    ),
    {"x": Letter("any"), "s": Letter("ascending", layouts=False)},
    around="sort",
    sizes=(0, 1, 17, 257, 2049, 300_001),
    most=300_001,
)
TIES = SORTS._replace(
    letters={"x": Letter("ties"), "s": Letter("ascending", layouts=False)},
    sizes=(0, 17, 4099, 100_003),
    around="",
    most=100_003,
)
ROWS = Table(
    "sorting",
    rows(
        """
        xp.sort(x, axis=0)
        xp.sort(x, axis=1)
        xp.sort(x, axis=None)
        xp.argsort(x, axis=0, kind="stable")
        xp.argsort(x, axis=1, kind="stable")
        x.sort(axis=0); x
        xp.take_along_axis(x, xp.argsort(x, axis=1, kind="stable"), axis=1)
        xp.unique(x)
        xp.nonzero(x)
        xp.argwhere(x)
        """
    ),
    {"x": Letter("ties", "rows")},
    around="sort",
    most=2100,
    sizes=(0, 1, 5, 700),
)
TALL_ROWS = ROWS._replace(letters={"x": Letter("any", "tall")}, around="", sizes=(1, 100, 3001), most=3001)

SETS = Table(
    "sets",
    rows(
        """
        xp.isin(x, y)
        xp.isin(x, y, invert=True)
        xp.union1d(x, y)
        xp.intersect1d(x, y)
        xp.setdiff1d(x, y)
        xp.setxor1d(x, y)
        """
    ),
    {"x": Letter("whole"), "y": Letter("whole", "half")},
    sizes=(0, 1, 17, 2049, 5001, 100_003),
    most=100_003,
    dtypes=tuple(d for d in DTYPES if d not in ("complex64", "complex128")),
)
WIDE_SETS = SETS._replace(letters={"x": Letter("any"), "y": Letter("any", "half")}, dtypes=INTS, sizes=(17, 5001))

SCATTERS = Table(
    "scatters",
    (
        *rows(
            """
            q[p] = v; q
            q[p] = q[r]; q
            q[d] = v; q
            q[p] = 1; q
            xp.put(q, p, v); q
            xp.put(q, d, v); q
            q.put(d, v); q
            x.put(d, v); x
            xp.put(q, w, v, mode="wrap"); q
            xp.put(q, w, v, mode="clip"); q
            q[m] = 1; q
            q[m] = v[:int(m.sum())]; q
            q[~m] = q[m][:1]; q
            q[::-1][d] = v; q
            xp.putmask(q, m, v); q
            xp.place(q, m, v); q
            xp.copyto(q, v, where=m); q
            xp.put_along_axis(q, p, v, 0); q
            q[d]
            q[p]
            q[m]
            q[-1 - d]
            xp.take(q, d)
            xp.take(q, w, mode="wrap")
            xp.take(q, w, mode="clip")
            x.take(d)
            xp.take_along_axis(q, p, 0)
            xp.compress(m, q)
            x.compress(m)
            xp.extract(m, q)
            xp.choose(m, [q, v])
            x.choose([x, x]) if x.dtype == bool else 0
            xp.select([m, ~m], [q, v])
            xp.where(m)
            xp.nonzero(m)
            xp.count_nonzero(m)
            xp.argwhere(m)
            xp.flatnonzero(m)
            xp.delete(q, d[:9])
            xp.delete(q, m)
            xp.repeat(q, c)
            """
        ),
    ),
    {
        "q": Letter("any"),
        "x": Letter("any"),
        "v": Letter("any"),
        "u": Letter("whole"),
        "p": Letter("permutation", dtype="int64"),
        "r": Letter("permutation", dtype="int64"),
        "d": Letter("index", dtype="int64"),
        "w": Letter("index", dtype="int64", limit=lambda n: 3 * n),
        "c": Letter("bin", dtype="int64", limit=lambda n: 3),
        "m": Letter("any", dtype="bool"),
    },
    around="index",
    sizes=(0, 1, 17, 257, 2049, 4097, 100_003),
    most=100_003,
)
ACCUMULATE = Table(
    "scatters",
    rows(
        """
        xp.add.at(q, d, u); q
        xp.subtract.at(q, d, u); q
        xp.maximum.at(q, d, u); q
        xp.minimum.at(q, d, u); q
        xp.add.at(q, d, 1); q
        """
    ),
    {"q": Letter("whole"), "u": Letter("whole"), "d": Letter("index", dtype="int64")},
    around="index",
    sizes=(0, 1, 17, 2049, 100_003),
    most=100_003,
    dtypes=tuple(d for d in DTYPES if d not in ("bool", "float16", "bfloat16")),
    layouts=tuple(layout for layout in LAYOUTS if layout != "broadcast"),  # read-only, which NumPy overlooks here
)
MANY = ACCUMULATE._replace(  # few targets, each hit by many
    rows=rows("q = xp.zeros_like(x[:7]); xp.add.at(q, b, u); q"),
    letters={"x": Letter("whole"), "u": Letter("whole"), "b": Letter("bin", dtype="int64", limit=lambda n: min(n, 7))},
)
NARROW = SCATTERS._replace(  # index arrays of every integer dtype, and lists of axes
    rows=rows(
        """
        q[b] = v; q
        q[b]
        xp.take(q, b)
        xp.put(q, b, v); q
        """
    ),
    letters={
        "b": Letter("bin", limit=lambda n: min(n, 100)),
        "q": Letter("any", dtype="float32"),
        "v": Letter("any", dtype="float32"),
    },
    dtypes=INTS,
)
TABLES_BY_INDEX = Table(
    "scatters",
    rows(
        """
        t[i] = t[0]; t
        t[:, j] = 1; t
        t[i, j]
        t[i, j] = 2; t
        t[i[:, None], j[None, :5]]
        t[i[:, None], j[None, :5]] = 3; t
        t[i]
        t[:, j]
        t[k] = 0; t
        t[k]
        t[t[:, 0] == t[:, 0]]
        t[..., j[::-1]]
        t[xp.ix_(i[:5], j[:3])]
        xp.take(t, i, axis=0)
        xp.take(t, j, axis=1)
        xp.compress(k[:, 0], t, axis=0)
        xp.delete(t, j[:3], 1)
        xp.apply_along_axis(lambda row: row[::-1], 1, t[:9])
        xp.fill_diagonal(t, 1); t
        """
    ),
    {
        "t": Letter("any", "table"),
        "i": Letter("bin", "first", dtype="int64", limit=lambda n: -(-n // 13)),
        "j": Letter("bin", "first", dtype="int64", limit=lambda n: 13),
        "k": Letter("any", "table", dtype="bool"),
    },
    sizes=(13, 260, 2600, 60_000),
    most=60_000,
)

COUNTS = Table(
    "histograms",
    (
        Row("xp.bincount(b)"),
        Row("xp.bincount(b, minlength=50)"),
        Row("xp.bincount(b, weights=u)"),
        Row("xp.histogram(u, bins=10)"),
        Row("xp.histogram(u, bins=[-3, -1, 0, 2.5, 3])"),
        Row("xp.histogram_bin_edges(u, bins=7)", ulps=2),
        Row("xp.digitize(u, xp.arange(-3, 4, **on))"),
        Row("xp.digitize(u, xp.arange(3, -4, -1, **on), right=True)"),
        Row("xp.unravel_index(b, (3000, 50))"),
        Row("xp.ravel_multi_index((b, b), (200_000, 300_000))"),
    ),
    {"b": Letter("bin", limit=lambda n: n), "u": Letter("whole", dtype="float64")},
    dtypes=("int64", "int32", "uint8", "int8"),
    around="index",
    sizes=(0, 1, 17, 120, 2049, 100_003),
    most=100_003,
)
SMALL_COUNTS = COUNTS._replace(
    letters={"b": Letter("bin", limit=lambda n: 90), "u": Letter("whole", dtype="float64")},
    dtypes=INTS,
    sizes=(17, 120, 2049, 300_001),
    most=300_001,
    around="",
)
BY_DTYPE = Table(
    "histograms",
    (
        *rows(
            """
            xp.digitize(x, s[:100])
            xp.digitize(x, s[:100], right=True)
            """
        ),
        Row("xp.histogram(x, bins=8)", ulps=16, dtypes=(*INTS, "float64")),
        Row("xp.interp(x, s, xp.arange(len(s), **on))", ulps=32),
    ),
    {"x": Letter("finite"), "s": Letter("ascending", layouts=False)},
    dtypes=tuple(d for d in REAL if d != "bfloat16"),
    sizes=(1, 17, 2049, 20_000),
)


def in_order() -> Iterator[Case]:
    """Already sorted, reversed, and constant inputs: the orders that a radix sort or a merge could favour."""
    for dtype in DTYPES:
        for n in (2047, 2049, 4097, 131_073):
            for code in (
                "xp.sort(x)",
                "xp.sort(x[::-1])",
                "xp.argsort(x[::-1], kind='stable')",
                "xp.argsort(x * 0, kind='stable')",
                "xp.unique(x)",
            ):
                yield Case("sorting", code, (("x", Input(dtype, (n,), "ascending")),), n, tier=1)


def cases() -> Iterator[Case]:
    yield from expand_all(
        (SORTS, TIES, ROWS, TALL_ROWS, SETS, WIDE_SETS, SCATTERS, ACCUMULATE, MANY, NARROW, TABLES_BY_INDEX)
    )
    yield from expand_all((COUNTS, SMALL_COUNTS, BY_DTYPE))
    yield from in_order()
