"""The contenders of sweep.py: one line of NumPy's dialect as a call of each library, and what it gave."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import textwrap
import types
from collections.abc import Callable
from typing import Any

import _sweep_rows  # noqa: F401  (it finds the oracle)
import numpy as np
from dlbridge import nd
from oracle.arrays import DTYPES, INTS, make
from oracle.cases import Case
from oracle.compare import leaves

OURS = "dlbridge"
SEEDED = re.compile(r"^xp\.random\.seed\(\d+\)\n")
GENERATOR = re.compile(r"xp\.random\.default_rng\(\d+, \*\*on\)")
IN_PLACE = re.compile(r"^x\.(sort|partition)\(")


class Lacks(Exception):
    """A library has no such function, or not for these arguments."""


def timed_code(case: Case) -> str:
    """The code without what is not to be timed: the seed, the making of a generator; and on an array as it was."""
    code = GENERATOR.sub("g", SEEDED.sub("", case.code))
    return code if not IN_PLACE.match(code) else f"x = xp.copy(x)\n{code}"


def function_of(code: str, names: dict[str, Any]) -> Callable[[], Any]:
    """A function without arguments that runs the code and returns the value of its last line, on local variables."""
    tree = ast.parse(code)
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & set(names)
    lines = [ast.unparse(statement) for statement in tree.body[:-1]] + [f"return {ast.unparse(last.value)}"]
    text = f"def call({', '.join(f'{n}={n}' for n in sorted(used))}):\n{textwrap.indent(chr(10).join(lines), '    ')}"
    scope = dict(names)
    exec(text, scope)
    return scope.pop("call")  # which would else hold itself, and the arrays, until a collection


class Peer:
    """A library that takes part; `on` are the keywords that make an array on the device."""

    def __init__(self, name: str, module: Any, device: str, version: str) -> None:
        self.name, self.module, self.device, self.version = name, module, device, version
        self.on: dict[str, Any] = {}
        if name == OURS and not str(nd.empty(0).device).startswith(device):
            self.on = {"device": device}

    def array(self, spec: Any, shared: Any) -> Any:
        """An array of the library: on a GPU that of ours in `shared`, taken by DLPack."""
        if self.name == OURS:
            return shared
        return make(spec) if self.device == "cpu" else self.module.from_dlpack(shared)

    def code(self, case: Case) -> str:
        return timed_code(case)

    def build(self, case: Case, arrays: dict[str, Any]) -> Callable[[], Any]:
        """The call, with arrays made for it. Raises what the library raises where it cannot do it."""
        taken = {n: self.array(spec, arrays[n]) for n, spec in case.inputs}
        names: dict[str, Any] = {"xp": self.module, "on": self.on, "n": case.n, "np": np, "nd": nd, **taken}
        names.update(inf=float("inf"), nan=float("nan"))
        code = self.code(case)
        if GENERATOR.search(case.code):
            names["g"] = self.module.random.default_rng(7, **self.on)
        return function_of(code, names)

    def leaves(self, result: Any) -> Any:
        return leaves(_on_host(result))


def _on_host(result: Any) -> Any:
    """A result with what is of PyTorch or CuPy replaced by NumPy's arrays."""
    if isinstance(result, (tuple, list)):
        return tuple(_on_host(item) for item in result)
    if hasattr(result, "resolve_conj"):
        return result.detach().resolve_conj().cpu().numpy()
    return result.get() if type(result).__module__.startswith("cupy") else result


# --- PyTorch speaks another dialect -----------------------------------------------------------------------------------

METHODS = {"copy": "clone", "astype": "to", "conjugate": "conj_physical", "conj": "conj_physical", "fill": "fill_"}
# Of these PyTorch's method gives something else, or asks for other arguments: its function is called.
AS_FUNCTIONS = {"sort", "argsort", "max", "min", "var", "std", "nonzero", "repeat", "take", "searchsorted"}
# Names that mean something else there.
OTHERWISE = re.compile(
    r"^x\.size$|^x\.sort\(|sort\(x, axis=None\)|xp\.arange\(3, -4|promote_types|result_type|tri[lu]_indices"
    r"|xp\.(gradient|nanmedian|histogramdd|cov)\("
    r"|^x\[1:\] =|^x\[:, 1:\] ="  # a write to what is read
)
OTHERWISE_OF_INTEGERS = re.compile(r"xp\.reciprocal")
DTYPE_AT = {"zeros": 1, "ones": 1, "empty": 1, "full": 2, "identity": 1, "array": 1, "asarray": 1, "fromiter": 1}
SAME = {  # NumPy's name: PyTorch's
    "max": "amax",
    "min": "amin",
    "ascontiguousarray": "Tensor.contiguous",
    "copy": "clone",
    "array": "asarray",
    "take_along_axis": "take_along_dim",
    "repeat": "repeat_interleave",
    "expand_dims": "unsqueeze",
    "permute_dims": "permute",
    "broadcast_arrays": "broadcast_tensors",
    "array_equal": "equal",
    "equal": "eq",
    "invert": "bitwise_not",
    "bitwise_invert": "bitwise_not",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "power": "pow",
    "conjugate": "conj_physical",
    "conj": "conj_physical",
    "rint": "round",
    "mod": "remainder",
    "degrees": "rad2deg",
    "radians": "deg2rad",
    "expit": "sigmoid",
    "add_reduce": "sum",
    "maximum_reduce": "amax",
    "add_accumulate": "cumsum",
    "identity": "eye",
    "put": "Tensor.put_",
    "copyto": "Tensor.copy_",
    "cumulative_prod": "cumprod",
    "array_split": "tensor_split",
    "split": "tensor_split",
    "unstack": "unbind",
    "transpose": "t",
    "ediff1d": "diff",
    "fill_diagonal": "Tensor.fill_diagonal_",
    "vecdot": "linalg.vecdot",
    "unique_values": "unique",
    **dict.fromkeys(("select", "resize", "size", "median", "histogram")),  # other functions of these names
}


def _torch_namespace(torch: Any) -> types.SimpleNamespace:
    """PyTorch under NumPy's names, where it has the function under another, or by other rules."""
    public = {n: getattr(torch, n) for n in dir(torch) if not n.startswith("_")}
    for name, other in SAME.items():
        public.pop(name, None)
        if other is not None:
            public[name] = functools.reduce(getattr, other.split("."), torch)
    partial = functools.partial
    public.update(
        var=partial(torch.var, correction=0),
        std=partial(torch.std, correction=0),
        sort=lambda x, axis=-1, descending=False: torch.sort(x, dim=axis, descending=descending).values,
        argsort=lambda x, axis=-1, stable=True, **options: torch.argsort(x, dim=axis, stable=stable, **options),
        unique_counts=partial(torch.unique, return_counts=True),
        unique_inverse=partial(torch.unique, return_inverse=True),
        take=lambda x, at, axis=None: torch.take(x, at) if axis is None else torch.index_select(x, axis, at),
        tile=lambda x, times: torch.tile(x, times if isinstance(times, tuple) else (times,)),
        full=lambda n, value, **options: torch.full((n,), value, **options),
        matrix_transpose=lambda x: x.mT,
        nonzero=partial(torch.nonzero, as_tuple=True),
        extract=lambda mask, x: torch.masked_select(x, mask),
        digitize=lambda x, edges, right=False: torch.bucketize(x, edges, right=not right),
        around=lambda x, decimals: torch.round(x, decimals=decimals),
        roll=lambda x, shift, axis=None: torch.roll(x, shift, axis),
        flip=lambda x, axis: torch.flip(x, axis),
        meshgrid=partial(torch.meshgrid, indexing="xy"),
        add_at=lambda q, d, u: q.index_put_((d,), u, accumulate=True),
        random=types.SimpleNamespace(
            random=torch.rand, random_sample=torch.rand, ranf=torch.rand, sample=torch.rand, rand=torch.rand,
            randn=torch.randn, standard_normal=torch.randn, permutation=torch.randperm,
            randint=lambda low, high, n, **on: torch.randint(low, high, (n,), **on),
        ),
    )  # fmt: skip
    public["random"].default_rng = lambda *_, **options: public["random"]  # its generators have no methods
    return types.SimpleNamespace(**public)


class _Dialect(ast.NodeTransformer):
    """NumPy's line as PyTorch's: names of dtypes, of methods, and `axis=None`, which is no axis there."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        inner = node.value
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id == "xp":
            if inner.attr in ("fft", "linalg", "random"):
                return node
            return ast.Attribute(inner.value, f"{inner.attr}_{node.attr}", node.ctx)
        if not (isinstance(inner, ast.Name) and inner.id in ("xp", "np")):
            node.attr = METHODS.get(node.attr) or node.attr
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        made = node.func
        if isinstance(made, ast.Attribute) and made.attr in AS_FUNCTIONS and not _is_module(made.value):
            node = ast.Call(ast.Attribute(ast.Name("xp"), made.attr), [made.value, *node.args], node.keywords)
        elif isinstance(made, ast.Attribute) and _is_module(made.value) and made.attr in DTYPE_AT:
            at = DTYPE_AT[made.attr]
            if len(node.args) > at:
                node.keywords.append(ast.keyword("dtype", node.args.pop(at)))
        node.keywords = [self.keyword(k) for k in node.keywords if not _is_none(k)]
        return self.generic_visit(node)

    @staticmethod
    def keyword(given: ast.keyword) -> ast.keyword:
        if given.arg == "kind" and isinstance(given.value, ast.Constant) and given.value.value == "stable":
            return ast.keyword("stable", ast.Constant(True))
        return given

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and node.value in DTYPES:
            return ast.Attribute(ast.Name("xp"), node.value)
        return node


def _is_module(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "xp"


def _is_none(given: ast.keyword) -> bool:
    return given.arg == "axis" and isinstance(given.value, ast.Constant) and given.value.value is None


class Torch(Peer):
    def __init__(self, torch: Any, device: str) -> None:
        torch.set_default_dtype(torch.float64)  # integers divide into float64, as in NumPy: the same bytes to write
        super().__init__("torch", _torch_namespace(torch), device, torch.__version__)
        self.on = {"device": device}

    def array(self, spec: Any, shared: Any) -> Any:
        return self.module.from_dlpack(shared)

    def code(self, case: Case) -> str:
        whole = any(spec.dtype in (*INTS, "bool") for _, spec in case.inputs)
        if OTHERWISE.search(case.code) or (whole and OTHERWISE_OF_INTEGERS.search(case.code)):
            raise Lacks("the same name means something else")
        if GENERATOR.search(case.code):
            code = timed_code(case)
            if "(n" not in code:
                raise Lacks("its random functions take other parameters")
            return re.sub(r"'(\w+)'", r"dtype=xp.\1", code.replace("(n", "(n, **on"))
        tree = ast.fix_missing_locations(_Dialect().visit(ast.parse(timed_code(case))))
        return ast.unparse(tree)


def peers(device: str, wanted: tuple[str, ...]) -> tuple[dict[str, Peer], dict[str, str]]:
    """Ours and the libraries under test, and why others are absent."""
    import dlbridge

    found = {OURS: Peer(OURS, nd, device, dlbridge.__version__)}
    absent = {}
    for name in wanted:
        try:
            module = importlib.import_module(name)
            if name == "torch":
                found[name] = Torch(module, device)
            else:
                found[name] = Peer(name, module, device, module.__version__)
        except ImportError as error:
            absent[name] = str(error)
    return found, absent


__all__ = ["OURS", "Lacks", "Peer", "Torch", "peers", "timed_code"]
