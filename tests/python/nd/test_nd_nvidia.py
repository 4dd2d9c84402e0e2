"""NVIDIA's libraries as the ndarray calls them: arguments as in their headers, and what is said without one."""

import re
import subprocess
import sys

import pytest
from dlbridge.nd import _cufft, _cusolver
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
