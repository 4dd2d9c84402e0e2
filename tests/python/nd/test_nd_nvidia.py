"""NVIDIA's libraries as the ndarray calls them: arguments as in their headers, and what is said without one."""

import re
import subprocess
import sys
from array import array

import pytest
from dlbridge.nd import _cufft, _cusolver, _native, _nvidia
from dlbridge.nd._nvidia import Function, library_folders

HEADERS = {"cufft": ["cufft.h", "cufftXt.h"], "cusolver": ["cusolverDn.h"], "cublas": ["cublas_api.h"]}
LETTERS = {"int": "i", "cufftHandle": "i", "int64_t": "l", "long long int": "l", "size_t": "z", "signed char": "b"}
HANDLES = ("cusolverDnHandle_t", "cusolverDnParams_t", "syevjInfo_t", "gesvdjInfo_t", "cublasHandle_t", "cudaStream_t")
ENUMS = ("cudaDataType", "cublasFillMode_t", "cublasOperation_t", "cusolverEigMode_t")
LETTERS |= dict.fromkeys(HANDLES, "p") | dict.fromkeys(ENUMS, "i")


def functions(value):
    """The functions in the tables of a module."""
    if isinstance(value, Function):
        yield value
    elif isinstance(value, (dict, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from functions(part)


FUNCTIONS = sorted(
    {f.name: f for module in (_cufft, _cusolver) for value in vars(module).values() for f in functions(value)}.items()
)


def declarations(library):
    """The headers' text without comments, from a wheel or a toolkit."""
    for folder in library_folders(("nvidia/cu13/lib", f"nvidia/{library}/lib")):
        files = [folder.parent / "include" / name for name in HEADERS[library]]
        if all(file.is_file() for file in files):
            return re.sub(r"//.*|/\*[\s\S]*?\*/", "", "\n".join(file.read_text(errors="replace") for file in files))
    return pytest.skip(f"the headers of {library} are not installed")


def letter(argument):
    if "*" in argument or "[" in argument:
        return "p"
    return LETTERS[re.sub(r"\bconst\b", "", argument).strip().rsplit(None, 1)[0].strip()]


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_arguments_are_those_of_the_header(name, function):
    found = re.search(rf"\b{name}\s*\(([^;]*?)\)\s*;", declarations(function.library))
    assert found is not None
    assert "".join(map(letter, found[1].split(","))) == function.arguments


def test_a_library_that_is_not_there_is_named_with_its_wheel():
    code = (
        "from dlbridge.nd import _nvidia\n"
        "_nvidia._VERSIONS['nosuch'] = (13,)\n"
        "try: _nvidia.library('nosuch')\n"
        "except RuntimeError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "libnosuch of CUDA was not found" in said and "pip install nvidia-nosuch" in said
    assert "libnosuch.so.13" in said


# --- calls of a library's functions ----------------------------------------------------------------------------------


class OfLibc(_native.LibraryFunction):
    def __init__(self, name, arguments):
        self.name, self.arguments = name, arguments

    def _load(self):
        return _native.find_symbol(_native.open_library("libc.so.6"), self.name), self.arguments, f"{self.name} of libc"


def test_results_are_written_to_memory_of_the_host():
    seconds = array("q", [0, -1])
    OfLibc("clock_gettime", "ip")(1, seconds)
    assert seconds[0] >= 0 and 0 <= seconds[1] < 10**9


def test_a_status_other_than_0_is_an_error_with_the_functions_name():
    OfLibc("abs", "i")(0)
    with pytest.raises(RuntimeError, match="^abs of libc failed with status 7$"):
        OfLibc("abs", "i")(-7)


@pytest.mark.parametrize(
    ("letters", "arguments", "error", "message"),
    [
        ("i", (), TypeError, "takes 1 arguments, got 0"),
        ("i", (2**31,), OverflowError, "out of range for an argument 'i'"),
        ("b", (-129,), OverflowError, "out of range for an argument 'b'"),
        ("z", (-1,), OverflowError, "negative"),
        ("i", (0.5,), TypeError, "float"),
        ("p", (b"constant",), BufferError, "not writable"),
        ("p", (0.5,), TypeError, "bytes-like"),
    ],
    ids=["count", "int", "char", "size", "float", "constant", "no-memory"],
)
def test_arguments_that_do_not_fit_are_refused(letters, arguments, error, message):
    with pytest.raises(error, match=message):
        OfLibc("abs", letters)(*arguments)


def test_a_function_that_a_library_lacks_is_named(monkeypatch):
    monkeypatch.setattr(_nvidia, "address", lambda function: 0)
    function = Function("cufft", "cufftNoSuch", "i")
    assert not function.exists()
    with pytest.raises(RuntimeError, match="libcufft has no cufftNoSuch"):
        function(1)


# --- how a transform's axes lie --------------------------------------------------------------------------------------

LAYOUTS = [
    ("rows", (3, 8), (8, 1), (1,), ([8], 1, 8)),
    ("columns", (3, 8), (8, 1), (0,), ([3], 8, 1)),
    ("columns of a part", (3, 5), (8, 1), (0,), ([3], 8, 1)),
    ("every other element", (3, 4), (8, 2), (1,), ([4], 2, 8)),
    ("transposed", (8, 3), (1, 8), (1,), ([3], 8, 1)),
    ("planes of a part", (2, 3, 4), (40, 8, 1), (1, 2), ([3, 8], 1, 40)),
    ("two batches as one", (2, 3, 8), (24, 8, 1), (2,), ([8], 1, 8)),
    ("an axis between", (2, 3, 8), (24, 8, 1), (1,), None),
    ("two batches apart", (2, 3, 8), (100, 8, 1), (2,), None),
    ("backwards", (8,), (-1,), (0,), None),
    ("repeated", (3, 8), (0, 1), (1,), None),
    ("axes that overlap", (3, 8), (4, 1), (0, 1), None),
]


@pytest.mark.parametrize(("shape", "strides", "axes", "want"), [r[1:] for r in LAYOUTS], ids=[r[0] for r in LAYOUTS])
def test_layouts_that_cufft_can_be_told(shape, strides, axes, want):
    assert _cufft._layout(shape, strides, axes) == want


# --- what a transform is asked for ----------------------------------------------------------------------------------

REQUESTS = [
    ("one axis", "fft", (3, 8), (8,), (1,), ((1,), (8,))),
    ("two axes", "fftn", (2, 3, 8), (3, 8), (1, 2), ((1, 2), (3, 8))),
    ("in another order", "ifftn", (3, 8), (8, 3), (1, 0), ((0, 1), (3, 8))),
    ("half of the last one named", "rfftn", (3, 8), (8, 3), (1, 0), ((1, 0), (8, 3))),
    ("inverse half", "ihfft", (3, 8), (8,), (1,), ((1,), (8,))),
    ("padded", "fftn", (3, 8), (3, 9), (0, 1), None),
    ("cut", "rfft", (3, 8), (7,), (1,), None),
    ("an axis twice", "fftn", (3, 8), (8, 8), (1, 1), None),
    ("four axes", "fftn", (2, 2, 2, 2), (2, 2, 2, 2), (0, 1, 2, 3), None),
    ("to real numbers", "irfft", (3, 5), (8,), (1,), None),
    ("to real numbers, as many", "hfft", (3, 5), (5,), (1,), None),
]


@pytest.mark.parametrize(
    ("name", "shape", "extents", "axes", "want"), [r[1:] for r in REQUESTS], ids=[r[0] for r in REQUESTS]
)
def test_transforms_that_one_plan_does(name, shape, extents, axes, want):
    kind, dtype, direction, factor, plan = _cufft._request(name, "float64", shape, extents, axes, "forward")
    assert plan == want and dtype.name == "complex128" and kind == name.partition("fft")[0]
    assert (direction == -1) == (kind in ("", "r", "h", "ih")) and (factor == 1) == ("i" in name)
