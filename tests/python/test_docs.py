"""The documents: their Python runs, their links and paths lead somewhere, and what they say twice they say alike."""

import ast
import builtins
import ctypes
import doctest
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import caster_support
import dlbridge
import pytest
from dlbridge import nd

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [path for path in (REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md") if path.exists()]
PAGES += sorted((REPOSITORY / "docs").rglob("*.md"))
WRITTEN = [path for path in PAGES if "api" not in path.parts]  # the reference is checked as a whole, below
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def name_of(page):
    return page.relative_to(REPOSITORY).as_posix()


@functools.cache
def blocks(page):
    """(line, language, what follows it, source) of the blocks of a page."""
    text = page.read_text()
    return [
        (text[: match.start()].count("\n") + 2, match[1], match[2].strip(), match[3])
        for match in re.finditer(r"^```(\w+)\b([^\n]*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ]


@functools.cache
def python_blocks(page):
    """(line, kind, source) of the blocks that start ```python; the kind is "", "gpu", "fragment", or a file's name."""
    return [(line, kind, source) for line, language, kind, source in blocks(page) if language == "python"]


def run(source, names, page, line):
    if ">>>" not in source:
        exec(compile("\n" * (line - 1) + source, str(page), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(source, names, page.name, str(page), line - 1)
    test.globs = names  # not its copy, which would keep alive what an example deletes
    said = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append, clear_globs=False)
    assert not said, "".join(said)


def imports(source):
    """The modules that an example imports."""
    lines = re.findall(r"^(?:>>> )?((?:import|from) .*)", source, re.MULTILINE)
    for node in ast.parse("\n".join(lines)).body:
        yield from [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]


def skip_without(source, page, line):
    """Skips the page where a module is missing that an example imports."""
    for module in imports(source):
        pytest.importorskip(module, reason=f"{page.name}, line {line}, uses it")


def run_shell(source):
    """Runs ```sh run: with this Python, and with the headers of the wheel, where dlbridge is installed from one."""
    try:
        dlbridge.get_include()
    except FileNotFoundError:
        pytest.skip("dlbridge is not installed from a wheel here")
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler on PATH")
    if os.environ.get("LD_PRELOAD"):
        pytest.skip("the Python of a shell would not load what wants a preloaded library")
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": folders}
    done = subprocess.run(["bash", "-ec", source], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run_page(page, kinds):
    """Runs the blocks of a page one after the other, in one namespace. Those with a file's name are written there."""
    names = {"__name__": "__docs__"}
    for line, language, kind, source in blocks(page):
        if "." in kind:
            if language == "python":
                skip_without(source, page, line)
            Path(kind).write_text(source)
        elif (language, kind) == ("sh", "run"):
            run_shell(source)
        elif language == "python" and kind in kinds:
            skip_without(source, page, line)
            run(source, names, page, line)
    builtins.__dict__.pop("_", None)  # where doctest leaves the last result
    names.clear()  # the globals of functions that a library keeps, as op() does


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, from which files are imported, too; the next page imports its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for path in tmp_path.glob("*.py"):
        module = sys.modules.get(path.stem)  # which may be an installed one of that name
        if module is not None and getattr(module, "__file__", None) == str(path):
            del sys.modules[path.stem]


RUNNABLE = [
    page
    for page in WRITTEN
    if any((language, kind) in {("python", ""), ("sh", "run")} for _, language, kind, _ in blocks(page))
]
ON_A_GPU = [page for page in WRITTEN if any(kind == "gpu" for _, kind, _ in python_blocks(page))]


@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_python_of_a_page_runs(page, folder):
    run_page(page, {""})


@pytest.mark.gpu
@pytest.mark.parametrize("page", ON_A_GPU, ids=name_of)
def test_python_of_a_page_runs_on_a_gpu(page, folder):
    run_page(page, {"", "gpu"})


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_python_that_is_not_run_is_python_all_the_same(page):
    for line, kind, source in python_blocks(page):
        assert kind in {"", "gpu", "fragment"} or kind.endswith(".py"), f"line {line}"
        if ">>>" not in source:
            ast.parse(source)


def shown_in_part(page):
    """The first block of C++ of a page, which no file of the tree holds."""
    return next(source for _, language, kind, source in blocks(REPOSITORY / page) if language == "cpp" and not kind)


def check_compiles(source, folder, *options):
    (folder / "shown.cpp").write_text(source)
    command = [*caster_support.compiler_command(), *options, "-fsyntax-only", str(folder / "shown.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.no_sanitizer
def test_an_extension_that_is_shown_in_part_compiles(tmp_path):
    """The module at the head of the page, whose blur() is the reader's own."""
    check_compiles(shown_in_part("docs/cpp_extensions.md"), tmp_path)


@pytest.mark.no_sanitizer
def test_converters_that_are_shown_in_part_compile(tmp_path):
    """The lines at the head of the page, as a function of the reader's array."""
    torch = pytest.importorskip("torch", reason="the lines convert PyTorch's tensors")
    eigen = next((i for i in ("/usr/include/eigen3", "/usr/local/include/eigen3") if os.path.exists(i)), None)
    if eigen is None:
        pytest.skip("no Eigen: apt-get install libeigen3-dev")
    headers, lines = re.fullmatch(
        r"(.*using namespace dlbridge;\n)(.*)", shown_in_part("docs/converters.md"), re.S
    ).groups()
    source = f"{headers}at::Tensor shown(const at::Tensor& torch_tensor) {{\n{lines}return back;\n}}\n"
    check_compiles(source, tmp_path, "-isystem", eigen, "-isystem", str(Path(torch.__file__).parent / "include"))


def test_an_example_with_a_wrong_result_is_found():
    with pytest.raises(AssertionError, match="Expected:"):
        run(">>> 1 + 1\n3\n", {}, REPOSITORY / "README.md", 1)
    with pytest.raises(ZeroDivisionError):
        run("1 / 0\n", {}, REPOSITORY / "README.md", 1)


def anchors(page):
    """GitHub's names of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    missing = []
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            missing.append(link)
    assert missing == []


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_paths_of_the_tree_exist(page):
    folders = "bridge|protocols|frameworks|ndarray|python|tests|tools|benchmarks|examples|docs|cmake"
    paths = re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text())
    built = (".so", "seal.json")
    assert [path for path in paths if not (REPOSITORY / path).exists() and not path.endswith(built)] == []


def test_the_counts_of_other_libraries_suites_are_what_their_runs_printed():
    page = (REPOSITORY / "docs/ndarray.md").read_text()
    rows = {
        "cupy": "CuPy",
        "array-api-2025.12": "array-api-tests, 2025.12",
        "array-api-2024.12": "array-api-tests, 2024.12",
    }
    for suite, row in rows.items():
        cells = re.search(rf"^\| {re.escape(row)}[^|]*\| ([^|]+) \| ([^|]+) \|", page, re.MULTILINE).groups()
        for device, cell in zip(("host", "h200"), cells, strict=True):
            printed = (REPOSITORY / f"tests/suites/results/{suite}-{device}.txt").read_text()
            counts = re.search(r": (\d+) of (\d+) applicable tests passed", printed).groups()
            assert re.findall(r"\d+", cell.replace(",", ""))[:2] == list(counts), (suite, device)


@pytest.mark.parametrize("tool", ["write_api.py", "write_cpp_reference.py", "write_errors.py"])
def test_what_is_written_from_the_sources_says_what_they_say(tool):
    command = [sys.executable, str(REPOSITORY / "tools" / tool), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def capsule():
    return dlbridge.asdlpack(b"x").__dlpack__(max_version=(1, 0))


def meta_tensor():
    torch = pytest.importorskip("torch")
    dlbridge.asdlpack(torch.empty(2, device="meta"))


PROVOKED = {
    "no protocol": lambda: dlbridge.asdlpack(object()),
    "a capsule twice": lambda: [dlbridge.asdlpack(one) for one in [capsule()] * 2],
    "read-only and legacy": lambda: dlbridge.asdlpack(b"x").__dlpack__(),
    "a format by a helper": lambda: dlbridge.asdlpack(ctypes.py_object(), protocol="buffer"),
    "a table of Python": meta_tensor,
    "printf": lambda: dlbridge.asdlpack(b"x", speed=1),
    "Python": lambda: dlbridge.convert(b"x", "no_such_module"),
    "ndarray": lambda: nd.ones(2) + nd.ones(3),
}


@pytest.mark.parametrize("provoke", PROVOKED.values(), ids=PROVOKED)
def test_an_error_is_in_the_index(provoke):
    with pytest.raises(Exception) as caught:
        provoke()
    page = (REPOSITORY / "docs" / "errors.md").read_text()
    rows = re.findall(r"^\| (.*?) \| .* \| `(\w+)` \|$", page, re.MULTILINE)
    fitting = [
        raised
        for rule, raised in rows
        if re.search(re.escape(re.sub(r"\\(.)", r"\1", rule)).replace("…", ".*"), str(caught.value))
    ]
    assert caught.type.__name__ in fitting, str(caught.value)


def test_a_report_of_the_runner_becomes_a_matrix(tmp_path):
    report, page = tmp_path / "report.json", tmp_path / "matrix.md"
    tool = [sys.executable, str(REPOSITORY / "tools" / "write_matrix.py")]
    runner = [sys.executable, "-m", "dlbridge", "--only", "stdlib", "--plain", "--json", str(report)]
    subprocess.run(runner, check=True, capture_output=True)
    page.write_text("before\n<!-- matrix: begin -->\nstale\n<!-- matrix: end -->\nafter\n")
    subprocess.run([*tool, str(report), "--page", str(page)], check=True)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "stale" not in text
    assert "| from \\ to | buffer |" in text and "| bytes | works |" in text


def test_the_oldest_python_is_said_alike():
    declared = re.search(r'requires-python = ">=([\d.]+)"', (REPOSITORY / "pyproject.toml").read_text())[1]
    said = {
        name_of(page): version
        for page in WRITTEN
        for version in re.findall(r"Python (\d\.\d+) or newer", page.read_text())
    }
    assert said == {"README.md": declared}
