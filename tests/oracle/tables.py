"""How rows of code become cases: by dtype, size and layout."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from oracle.arrays import DTYPES, LAYOUTS, Input
from oracle.cases import Case
from oracle.thresholds import sizes

ITEMSIZE = {"bool": 1, "bfloat16": 2, "complex64": 8, "complex128": 16}


def itemsize(dtype: str) -> int:
    return ITEMSIZE.get(dtype) or int(re.sub(r"\D", "", dtype)) // 8


# Shapes of about n elements, or with n along the axis that is worked on.
SHAPES: dict[str, Callable[[int], tuple[int, ...]]] = {
    "line": lambda n: (n,),
    "few": lambda n: (min(n, 5),),
    "one": lambda n: (1,),
    "point": lambda n: (),
    "rows": lambda n: (3, n),
    "columns": lambda n: (n, 3),
    "tall": lambda n: (n, 17),
    "middle": lambda n: (2, n, 5),
    "table": lambda n: (-(-n // 13), 13),
    "wide": lambda n: (13, -(-n // 13)),
    "square": lambda n: (math.isqrt(n), math.isqrt(n)),
    "matrix": lambda n: (n, n),
    "matrices": lambda n: (3, n, n),
    "cube": lambda n: (2, -(-n // 6), 3),
    "sevens": lambda n: (-(-n // 49), 7, 7),
    "forties": lambda n: (-(-n // 1600), 40, 40),
    "triples": lambda n: (-(-n // 3), 3),
    "half": lambda n: (n // 2,),
    "double": lambda n: (2 * n + 1,),
    "thirteen": lambda n: (13,),
    "first": lambda n: (-(-n // 13),),
}


class Letter(NamedTuple):
    """An input of a row; without a dtype it has the row's."""

    fill: str = "any"
    shape: str = "line"
    dtype: str = ""
    limit: Callable[[int], int] = lambda n: n
    layouts: bool = True  # whether it changes its layout with the row


class Row(NamedTuple):
    code: str
    numpy: str | None = ""
    ulps: float = 0
    numpy_ulps: float | None = None
    dtypes: tuple[str, ...] = ()
    most: int = 0  # elements, where time or memory grows faster than the size
    size: str = ""  # as in Case, where "@" stands for the first input


class Table(NamedTuple):
    """Rows that share inputs, dtypes and sizes."""

    family: str
    rows: tuple[Row | str, ...]
    letters: dict[str, Letter]
    dtypes: tuple[str, ...] = DTYPES
    around: str = ""  # the family of thresholds
    sizes: tuple[int, ...] = (0, 1, 17, 257, 2049)
    most: int = 20000
    layout_sizes: tuple[int, ...] = (37, 3001)
    ulps: float = 0
    layouts: tuple[str, ...] = LAYOUTS
    size: str = ""  # that of rows without their own


def expand(table: Table) -> Iterator[Case]:
    for position, row in enumerate(table.rows):
        row = Row(row) if isinstance(row, str) else row
        used = {name: letter for name, letter in table.letters.items() if re.search(rf"\b{name}\b", row.code)}
        for dtype in row.dtypes or table.dtypes:
            most = row.most or table.most
            tried = set(table.sizes)
            if table.around:
                tried.update(sizes(table.around, itemsize(dtype), most))
            tried = {n for n in tried if n <= most}
            for n in sorted(tried):
                yield case_of(table, row, used, dtype, n, "contiguous", position, max(tried))
            if not any(letter.layouts for letter in used.values()):
                continue
            for layout in table.layouts[1:]:
                for n in table.layout_sizes:
                    if n <= most:
                        yield case_of(table, row, used, dtype, n, layout, position, max(tried))


def case_of(
    table: Table, row: Row, used: dict[str, Letter], dtype: str, n: int, layout: str, seed: int, largest: int
) -> Case:
    inputs = tuple(
        (
            name,
            Input(
                letter.dtype or dtype,
                SHAPES[letter.shape](n),
                letter.fill,
                layout if letter.layouts else "contiguous",
                seed * 7 + ord(name[0]),
                letter.limit(n),
            ),
        )
        for name, letter in used.items()
    )
    ulps = row.ulps or table.ulps
    tier = 0 if layout == "contiguous" and n == largest else 1 if layout != "contiguous" else 2
    numpy_ulps = ulps if row.numpy_ulps is None else row.numpy_ulps
    size = (row.size or table.size).replace("@", inputs[0][0] if inputs else "")
    return Case(table.family, row.code, inputs, n, row.numpy, ulps, numpy_ulps, tier, size)


def rows(text: str, **options: object) -> tuple[Row, ...]:
    """Rows of code, one a line; "; " divides statements, the last of which is the result."""
    found = []
    for line in text.strip().splitlines():
        found.append(Row(line.strip().replace("; ", "\n"), **options))  # type: ignore[arg-type]
    return tuple(found)


def expand_all(tables: Iterable[Table]) -> Iterator[Case]:
    for table in tables:
        yield from expand(table)
