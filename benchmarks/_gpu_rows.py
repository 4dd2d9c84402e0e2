"""The rows of gpu.py: what each library is asked to do, how many bytes it must move, and the goal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Call = Callable[[], Any]
GIB = 1 << 30


@dataclass
class Row:
    """`build(lib, data)` makes the call of one library; `data` gives its arrays by name."""

    key: str
    title: str
    moved: int  # bytes read plus bytes written; 0: the row is reported in ms
    build: dict[str, Callable[[Any, Callable[[str], Any]], Call]]
    goal: float | None = None  # GB/s, or ms where moved is 0
    inputs: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)  # name -> (dtype, shape)
    check: bool = True  # compare the values with PyTorch's
    tolerance: float = 1e-5


def _same(text: str) -> dict[str, Callable[[Any, Callable[[str], Any]], Call]]:
    """The same expression for every library; `m` is the module, a to d its arrays."""
    return {name: _expression(text) for name in ("dlbridge", "torch", "cupy")}


def _expression(text: str) -> Callable[[Any, Callable[[str], Any]], Call]:
    def build(module: Any, data: Callable[[str], Any]) -> Call:
        names = {"m": module, **{n: data(n) for n in "abcd" if data(n) is not None}}
        code = compile(text, "<row>", "eval")
        return lambda: eval(code, names)

    return build


def _each(dlbridge: str, torch: str, cupy: str | None = None) -> dict[str, Callable[..., Call]]:
    out = {"dlbridge": _expression(dlbridge), "torch": _expression(torch)}
    if cupy is not None:
        out["cupy"] = _expression(cupy)
    return out


def _fused(module: Any, data: Callable[[str], Any]) -> Call:
    fused = module.fuse(lambda x, y, z: x * y + z)
    a, b, c = data("a"), data("b"), data("c")
    return lambda: fused(a, b, c)


def _cupy_fused(module: Any, data: Callable[[str], Any]) -> Call:
    return _fused(module, data)


F = "float32"
N = 1 << 28
SQUARE = (16384, 16384)


def main_rows() -> list[Row]:
    """The kernels with a goal, 1 GiB of float32 each."""
    one = {"a": (F, (N,))}
    two = {"a": (F, (N,)), "b": (F, (N,))}
    square = {"a": (F, SQUARE)}
    return [
        Row("copy", "copy", 2 * GIB, _each("a.copy()", "a.clone()", "a.copy()"), 4250, one),
        Row("add", "a + b", 3 * GIB, _same("a + b"), 4340, two),
        Row("exp", "exp(a)", 2 * GIB, _same("m.exp(a)"), 4250, one),
        Row(
            "fma",
            "a * b + c, fused",
            4 * GIB,
            {"dlbridge": _fused, "torch": _expression("m.addcmul(c, a, b)"), "cupy": _cupy_fused},
            4300,
            {**two, "c": (F, (N,))},
        ),
        Row("sum", "sum", GIB, _same("a.sum()"), 4400, one, tolerance=1e-4),
        Row("max", "max", GIB, _same("a.max()"), 4400, one),
        Row("argmax", "argmax", GIB, _same("a.argmax()"), 4400, one),
        Row("norm", "norm", GIB, _same("m.linalg.norm(a)"), 4400, one, tolerance=1e-4),
        Row(
            "sum0",
            "sum, axis 0 of (16384, 16384)",
            GIB,
            _each("a.sum(axis=0)", "a.sum(dim=0)", "a.sum(axis=0)"),
            4300,
            square,
            tolerance=1e-3,
        ),
        Row(
            "sum1",
            "sum, axis 1 of (16384, 16384)",
            GIB,
            _each("a.sum(axis=1)", "a.sum(dim=1)", "a.sum(axis=1)"),
            4350,
            square,
            tolerance=1e-3,
        ),
        Row(
            "transpose",
            "transposed copy of (16384, 16384)",
            2 * GIB,
            _each("m.ascontiguousarray(a.T)", "a.T.contiguous()", "m.ascontiguousarray(a.T)"),
            3400,
            square,
        ),
        Row("row", "add a broadcast row", 2 * GIB, _same("a + b"), 4250, {**square, "b": (F, (16384,))}),
        Row("strided", "a[::2] + b[::2]", 5 * GIB // 2, _same("a[::2] + b[::2]"), 4350, two),
        Row(
            "astype",
            "astype float64",
            3 * GIB,
            _each("a.astype('float64')", "a.double()", "a.astype('float64')"),
            4100,
            one,
        ),
        Row(
            "half",
            "a + b, float16",
            3 * GIB,
            _same("a + b"),
            4300,
            {"a": ("float16", (N * 2,)), "b": ("float16", (N * 2,))},
        ),
        Row("cumsum", "cumsum", 2 * GIB, _each("a.cumsum()", "a.cumsum(0)", "a.cumsum()"), 3150, one, check=False),
        Row("sort", "sort 2^26", 0, _each("m.sort(a)", "m.sort(a).values", "m.sort(a)"), 1.55, {"a": (F, (1 << 26,))}),
        Row(
            "randn",
            "randn",
            GIB,
            _each(
                "m.random.randn(268435456, dtype='float32')",
                "m.randn(268435456, device='cuda')",
                "m.random.standard_normal(268435456, dtype='float32')",
            ),
            3000,
            one,
            check=False,
        ),
        Row(
            "uniform",
            "uniform",
            GIB,
            _each(
                "m.random.random(268435456, dtype='float32')",
                "m.rand(268435456, device='cuda')",
                "m.random.random(268435456, dtype='float32')",
            ),
            None,
            one,
            check=False,
        ),
    ]


def cliff_rows() -> Iterator[Row]:
    """No axis, layout or dtype may fall off a cliff: the worst ratio to the best peer is what counts."""
    reductions = [
        ("(32768, 32), axis 0", (32768, 32), 0),
        ("(10^6, 8), axis 0", (10**6, 8), 0),
        ("(8, 10^6), axis 1", (8, 10**6), 1),
        ("(10^6, 8), axis 1", (10**6, 8), 1),
        ("(64, 2048, 2048), axis 1", (64, 2048, 2048), 1),
        ("(2048, 64, 2048), axis 1", (2048, 64, 2048), 1),
        ("(4096, 65536), axis 1", (4096, 65536), 1),
        ("(65536, 4096), axis 1", (65536, 4096), 1),
        ("(2·10^6, 100), axis 1", (2 * 10**6, 100), 1),
        ("(8·10^6, 33), axis 1", (8 * 10**6, 33), 1),
        ("(10^7, 3), axis 1", (10**7, 3), 1),
        ("(3, 10^7), axis 0", (3, 10**7), 0),
    ]
    for name, shape, axis in reductions:
        size = 4 * _product(shape)
        for op in ("sum", "max", "argmax"):
            torch_op = {"sum": "sum", "max": "amax", "argmax": "argmax"}[op]
            yield Row(
                f"{op}-{name}",
                f"{op} of {name}",
                size,
                _each(f"a.{op}(axis={axis})", f"a.{torch_op}(dim={axis})", f"a.{op}(axis={axis})"),
                None,
                {"a": (F, shape)},
                tolerance=1e-3,
                check=op != "argmax",
            )
    yield Row(
        "sum-planes",
        "sum of (512, 512, 1024), axes 0 and 2",
        GIB,
        _each("a.sum(axis=(0, 2))", "a.sum(dim=(0, 2))", "a.sum(axis=(0, 2))"),
        None,
        {"a": (F, (512, 512, 1024))},
        tolerance=1e-2,
    )
    for dtype in ("int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float64", "complex64", "bool"):
        item = {"int8": 1, "uint8": 1, "bool": 1, "int16": 2, "float16": 2, "bfloat16": 2, "int32": 4}.get(dtype, 8)
        n = GIB // 2 // item
        one, two = {"a": (dtype, (n,))}, {"a": (dtype, (n,)), "b": (dtype, (n,))}
        libraries = ("dlbridge", "torch") if dtype == "bfloat16" else ("dlbridge", "torch", "cupy")
        add = {k: v for k, v in _same("a + b").items() if k in libraries}
        total = {k: v for k, v in _same("a.sum()").items() if k in libraries}
        yield Row(f"add-{dtype}", f"a + b, {dtype}", 3 * n * item, add, None, two, tolerance=1e-2)
        yield Row(
            f"sum-{dtype}",
            f"sum, {dtype}",
            n * item,
            total,
            None,
            one,
            tolerance=1e-2,
            check=dtype not in ("float16", "bfloat16"),
        )
    cube = {"a": (F, (512, 512, 1024))}
    for axes in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
        yield Row(
            f"permute-{axes}",
            f"permuted copy {axes} of (512, 512, 1024)",
            2 * GIB,
            _each(
                f"m.ascontiguousarray(a.transpose({axes}))",
                f"a.permute({axes}).contiguous()",
                f"m.ascontiguousarray(a.transpose({axes}))",
            ),
            None,
            cube,
        )
    yield Row("scalar", "a + 1", 2 * GIB, _same("a + 1"), None, {"a": (F, (N,))})
    yield Row("compare", "a < b", 9 * N, _same("a < b"), None, {"a": (F, (N,)), "b": (F, (N,))})
    yield Row("unaligned", "a[1:] + b[1:]", 3 * GIB, _same("a[1:] + b[1:]"), None, {"a": (F, (N,)), "b": (F, (N,))})
    yield Row(
        "column", "add a broadcast column", 2 * GIB, _same("a + b"), None, {"a": (F, SQUARE), "b": (F, (16384, 1))}
    )
    yield Row(
        "narrow", "(10^7, 3) + (3,)", 2 * 12 * 10**7, _same("a + b"), None, {"a": (F, (10**7, 3)), "b": (F, (3,))}
    )
    yield Row(
        "mixed",
        "float32 + float64",
        20 * (N // 2),
        _same("a + b"),
        None,
        {"a": (F, (N // 2,)), "b": ("float64", (N // 2,))},
    )
    yield Row(
        "gather",
        "rows by an index array",
        2 * GIB,
        _same("a[b]"),
        None,
        {"a": (F, (1 << 20, 256)), "b": ("index", (1 << 20,))},
    )
    yield Row(
        "where", "where(a > 0, a, b)", 4 * GIB, _same("m.where(a > 0, a, b)"), None, {"a": (F, (N,)), "b": (F, (N,))}
    )
    yield Row(
        "cumsum1",
        "cumsum, axis 1 of (16384, 16384)",
        2 * GIB,
        _each("a.cumsum(axis=1)", "a.cumsum(1)", "a.cumsum(axis=1)"),
        None,
        {"a": (F, SQUARE)},
        check=False,
    )
    yield Row(
        "cumsum0",
        "cumsum, axis 0 of (16384, 16384)",
        2 * GIB,
        _each("a.cumsum(axis=0)", "a.cumsum(0)", "a.cumsum(axis=0)"),
        None,
        {"a": (F, SQUARE)},
        check=False,
    )
    yield Row(
        "sort-rows",
        "sort rows of (2^16, 1024)",
        0,
        _each("m.sort(a, axis=1)", "m.sort(a, dim=1).values", "m.sort(a, axis=1)"),
        None,
        {"a": (F, (1 << 16, 1024))},
    )
    yield Row(
        "argsort",
        "argsort 2^26",
        0,
        _each("m.argsort(a)", "m.argsort(a)", "m.argsort(a)"),
        None,
        {"a": (F, (1 << 26,))},
        check=False,
    )
    yield Row(
        "matmul",
        "matmul 4096^3, float32",
        0,
        _same("a @ b"),
        None,
        {"a": (F, (4096, 4096)), "b": (F, (4096, 4096))},
        tolerance=1e-3,
    )
    yield Row(
        "huge",
        "int8 add past 2^31 elements",
        3 * (3 << 30),
        _same("a + b"),
        None,
        {"a": ("int8", (3 << 30,)), "b": ("int8", (3 << 30,))},
    )


def _product(shape: tuple[int, ...]) -> int:
    out = 1
    for extent in shape:
        out *= extent
    return out
