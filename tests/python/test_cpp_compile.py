"""What the C++ headers cost a compiler, and what it says of a wrong use."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import caster_support
import pytest

pytestmark = pytest.mark.no_sanitizer  # nothing of it runs

SOURCES = Path(__file__).parents[2] / "benchmarks" / "compile_sources"


def compiled(*command, by=None):
    python = ("-isystem", sysconfig.get_paths()["include"])
    folders = (f"-I{folder}" for folder in caster_support.include_folders())
    command = [by or caster_support.cxx_compiler(), "-std=c++20", *folders, *python, *command]
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_a_file_of_functions_reads_no_binding_library_and_no_costly_header(tmp_path):
    done = compiled("-M", SOURCES / "functions_alone.cpp")
    assert done.returncode == 0, done.stderr
    read = {Path(name).name for name in done.stdout.split() if name != "\\"}
    assert "tensor_view.h" in read
    costly = {"iostream", "ostream", "sstream", "format", "ranges", "regex", "chrono", "functional", "filesystem"}
    assert not read & {*costly, "map", "unordered_map", "memory", "mutex", "thread", "pybind11.h", "nanobind.h"}


def test_the_words_of_refusals_are_the_packages_and_not_compiled_into_extensions(tmp_path):
    nanobind = pytest.importorskip("nanobind", reason="nanobind is the route whose files can be as small")
    out = tmp_path / "three.o"
    done = compiled("-O2", "-fPIC", "-fvisibility=hidden", "-isystem", nanobind.include_dir(), "-c",
                    SOURCES / "with_nanobind.cpp", "-o", out)  # fmt: skip
    assert done.returncode == 0, done.stderr
    code = out.read_bytes()
    assert b"its default is None" in code
    for words in (b"C-contiguous", b"writable memory", b".astype(", b"cuda_host"):
        assert words not in code, words


# A wrong use, and what the first error is to say of it.
WRONG = {
    "element": ("void f(Arg<long double> a) {}", "no dtype is known for this element type"),
    "two layouts": ("void f(Arg<float, c_contig, f_contig> a) {}", "no layout meets all of them. Name one of"),
    "two devices": ("void f(Arg<float, on_cpu, on_cuda> a) {}", "no device meets all of them. Name one of"),
    "shape and rank": ("void f(Arg<float, shape<dyn, 3>, rank<1>> a) {}", "no rank meets all of shape<...>, rank<...>"),
    "negative extent": ("void f(Arg<float, shape<-2, 3>> a) {}", "an extent is a number >= 0, or dyn"),
    "no constraint": ("void f(Arg<float, int> a) {}", "Arg<T, ...> takes constraints behind T: c_contig,"),
    "rank as a number": (
        "void f(Arg<float, c_contig, double> a) {}",
        "Arg<T, ...> takes constraints behind T: c_contig,",
    ),
    "copy to write to": ("void f(Arg<float, may_convert> a) {}", "a writable argument is never converted"),
    "const inside a set": ("void f(Arg<any_of<const float>> a) {}", "the const belongs to the set"),
    "twice in a set": ("void f(Arg<any_of<int, int>> a) {}", "two of the element types are of one dtype"),
    "missing const": (
        "void f(const Arg<const float>& a) { TensorView<float, dyn> v = a.view(); }",
        "TensorView<const float",
    ),
    "elements of any dtype": ("void f(const Arg<const void>& a) { a.view(); }", "an Arg<void> has no elements to view"),
    "elements of a set": ("auto f(const Arg<const any_of<float, int>>& a) { return a.view(); }", "visit(a, [](auto"),
    "device memory without a stream": (
        "void f(const Arg<float, on_cuda>& a) { a.view(); }",
        "name the stream that you",
    ),
    "element of device memory": (
        "float f(const Arg<float, rank<1>, on_cuda>& a, stream_arg s) { return a.view(s)(0); }",
        "elements of device memory cannot be reached from host code",
    ),
    "number of indices": (
        "float f(const Arg<float, rank<2>>& a) { return a.view()(0); }",
        "v(i, j, ...) takes one index for each axis",
    ),
    "view of a temporary": (
        "Arg<float> make(); auto f() { return make().view(); }",
        "a temporary gives no view, as nobody would keep the memory. Keep the argument in a variable",
    ),
    "view of a temporary tensor": (
        "auto f(const Arg<float>& a) { return a.tensor().view<float, 1>(); }",
        "a temporary gives no view, as nobody would keep the memory. Keep the tensor in a variable",
    ),
    "no framework": ('auto f(const Arg<float>& a) { return as<"tourch">(a.tensor()); }', "knows no framework of this"),
    "empty argument": ("Arg<float> a;", "an Arg is made of an argument, and never empty"),
    "two owners": ("Arg<float> f(const Arg<float>& a) { return a; }", "deleted"),
}


@pytest.mark.parametrize("compiler", ["c++", "clang++-19"])
@pytest.mark.parametrize("case", WRONG)
def test_the_error_of_a_wrong_use_is_ten_lines_and_the_first_says_it(case, compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on PATH")
    code, words = WRONG[case]
    source = tmp_path / "wrong.cpp"
    source.write_text(f"#include <dlbridge/arg.h>\nusing namespace dlbridge;\n{code}\n", "utf-8")
    done = compiled("-fsyntax-only", source, by=compiler)
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    assert words in errors[0], done.stderr
    if " clang " not in f" {compiled('--version', by=compiler).stdout} ":  # which names every template on the way
        assert len(done.stderr.splitlines()) <= 10, done.stderr
