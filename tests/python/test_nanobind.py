"""dlbridge/nanobind.h (tests/nanobind/nanobind_module.cpp): arguments, errors, results and lifetimes."""

import gc
import shutil
import subprocess
import sys

import caster_support
import dlbridge
import nanobind_support
import pytest
from child_process import run_python
from dlbridge import asdlpack, nd
from lifecycle_support import host_array, nothing_lost

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")

ROW = np.arange(3, dtype="float32")
MATRIX = np.arange(12, dtype="float32").reshape(3, 4)
WRONG = np.ones((1, 1, 2, 2), "complex128")


@pytest.fixture(scope="module", params=[False, True], ids=["linked", "split"])
def ext(request):
    return nanobind_support.load(split=request.param)


def _torch(a):
    return pytest.importorskip("torch", reason="PyTorch is not installed").from_numpy(a)


MAKERS = {"numpy": np.asarray, "torch": _torch, "nd": host_array, "Tensor": asdlpack}


# --- arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))
def test_an_array_of_any_framework_is_taken_and_given_back(ext, make):
    given = make(MATRIX)
    before = sys.getrefcount(given)
    with nothing_lost():
        for call in (ext.matrix, ext.by_reference):
            assert call(given) == 66
            with pytest.raises(TypeError):
                ext.dot(given, given)
        gc.collect()
    assert sys.getrefcount(given) == before


TAKEN = {
    "keyword": (lambda m: m.dot(y=ROW, x=ROW), 9),
    "strides": (lambda m: m.dot(ROW[::-1], MATRIX[:, 1]), 3 * 15),
    "no names": (lambda m: m.unnamed(ROW, 2), 6),
    "lambda with captures": (lambda m: m.capturing(ROW), 13),
    "may_convert": (lambda m: m.converted(ROW.astype("float64")), 3),
    "any_of, int": (lambda m: m.dispatched(np.arange(3, dtype="int32")), 403),
    "any_of, double": (lambda m: m.dispatched(np.arange(3.0)), 803),
    "call_guard": (lambda m: m.guarded(ROW), 3),
    "stream": (lambda m: m.streamed(ROW, 2), 2),
    "no stream": (lambda m: m.streamed(ROW), 1),
    "Tensor": (lambda m: m.tensor(ROW), "float32"),
    "another thread": (lambda m: m.elsewhere(ROW), 3),
    "std::optional": (lambda m: m.optional(ROW), 3),
    "std::optional, None": (lambda m: m.optional(), -1),
    "module.def": (lambda m: m.plain(ROW), 3),
    "overloaded, the other one": (lambda m: m.plain_or_text("four"), 4),
    "nb::cast": (lambda m: m.cast(ROW), 3),
    "capsule": (lambda m: m.dot(ROW.__dlpack__(), asdlpack(ROW).__dlpack__()), 9),
    "capsule, call_guard": (lambda m: m.guarded(ROW.__dlpack__()), 3),
    "member": (lambda m: m.Filter(ROW + 1).apply(ROW), 3),
    "lambda as a member": (lambda m: getattr(m.Filter(ROW + 1), "with")(ROW, by=3), 9),
    "constructor by nb::init": (lambda m: m.Filter(ROW + 1, 2).apply(ROW), 6),
    "property": (lambda m: [f := m.Filter(ROW), setattr(f, "data", ROW + 7), f.data][-1], 7),
    "property by a member": (lambda m: [f := m.Filter(ROW), setattr(f, "assigned", ROW[:2]), f.assigned][-1], 2),
    "nb::args and nb::kwargs": (lambda m: m.starred(ROW, 1, 2, k=3), 123),
    "std::vector": (lambda m: m.list([ROW, asdlpack(ROW)]), 6),
    "std::vector, call_guard": (lambda m: m.list_unlocked([ROW, ROW.__dlpack__()]), 6),
    "std::optional by reference": (lambda m: [m.optional_by_reference(x) for x in (ROW, None)], [3, -1]),
    "std::optional between others": (lambda m: m.optional_in_the_middle(1, ROW), 9),
    "std::optional left out": (lambda m: m.optional_in_the_middle(1, k=2), 3),
    "std::variant": (lambda m: [m.either(x) for x in (None, ROW, 3, ROW.__dlpack__())], [0, 1, 2, 1]),
    "std::variant of several arrays": (
        lambda m: [m.several(x) for x in (7, ROW, ROW.astype("float64"), MATRIX)],
        [0, 1, 2, 3],
    ),
    "std::variant of arrays only": (
        lambda m: [
            *(m.arrays(x) for x in (ROW, ROW.astype("float64"), MATRIX, ROW.__dlpack__())),
            *(m.optional_arrays(MATRIX), m.optional_arrays(None), m.list_of_arrays([ROW, ROW.astype("float64")])),
            m.same_arrays(ROW) is ROW,
        ],
        [0, 1, 2, 0, 2, -1, 21, True],
    ),
    "std::vector of std::variant": (lambda m: m.list_of_several([ROW, 1, MATRIX]), [1, 0, 3]),
    "overloads of std::variant": (lambda m: [m.several_or_text(x) for x in (ROW, "text")], [1, 4]),
}


@pytest.mark.parametrize(("call", "result"), TAKEN.values(), ids=list(TAKEN))
def test_what_fits_is_taken(ext, call, result):
    with nothing_lost():
        assert call(ext) == result
        gc.collect()


def test_memory_that_is_written_to_is_the_callers(ext):
    a = ROW.copy()
    ext.scale(a, by=3)
    assert a.tolist() == [0, 3, 6]
    with pytest.raises(TypeError, match=r"^scale\(\): argument 'a': expected writable memory"):
        ext.scale(np.broadcast_to(ROW, ROW.shape))


# --- errors ---------------------------------------------------------------------------------------------------------


CALLS = {
    "first argument": (lambda m, bad: m.dot(bad, ROW), "dot(): argument 'x': "),
    "second argument": (lambda m, bad: m.dot(ROW, bad), "dot(): argument 'y': "),
    "keyword": (lambda m, bad: m.dot(y=bad, x=ROW), "dot(): argument 'y': "),
    "no names": (lambda m, bad: m.unnamed(bad, 1), "unnamed(): argument 'arg0': "),
    "lambda with captures": (lambda m, bad: m.capturing(bad), "capturing(): argument 'a': "),
    "may_convert": (lambda m, bad: m.converted(bad), "converted(): argument 'a': "),
    "any_of": (lambda m, bad: m.dispatched(bad), "dispatched(): argument 'a': "),
    "call_guard": (lambda m, bad: m.guarded(bad), "guarded(): argument 'a': "),
    "constructor": (lambda m, bad: m.Filter(bad), "Filter(): argument 'a': "),
    "member": (lambda m, bad: m.Filter(ROW).apply(bad), "Filter.apply(): argument 'a': "),
    "member by value": (lambda m, bad: m.Filter(ROW).assign(bad), "Filter.assign(): argument 'a': "),
    "constructor by nb::init": (lambda m, bad: m.Filter(bad, 2.0), "Filter(): argument 'a': "),
    "lambda as a member": (lambda m, bad: getattr(m.Filter(ROW), "with")(bad), "Filter.with(): argument 'a': "),
    "property": (lambda m, bad: setattr(m.Filter(ROW), "data", bad), "Filter.data: argument 'value': "),
    "property by a member": (
        lambda m, bad: setattr(m.Filter(ROW), "assigned", bad),
        "Filter.assigned: argument 'value': ",
    ),
    "nb::args and nb::kwargs": (lambda m, bad: m.starred(bad, 1, k=2), "starred(): argument 'arg0': "),
    "default values": (lambda m, bad: m.scale(bad), "scale(): argument 'a': "),
    "std::optional": (lambda m, bad: m.optional(bad), "optional(): argument 'a': "),
    "std::optional between others": (
        lambda m, bad: m.optional_in_the_middle(1, bad),
        "optional_in_the_middle(): argument 'a': ",
    ),
    "std::vector": (lambda m, bad: m.list([ROW, bad]), "list(): argument 'all': "),
    "std::vector, call_guard": (lambda m, bad: m.list_unlocked([bad]), "list_unlocked(): argument 'all': "),
    "std::variant": (lambda m, bad: m.either(bad), "either(): argument 'a': "),
    "module.def": (lambda m, bad: m.plain(bad), ""),
    "nb::cast": (lambda m, bad: m.cast(bad), ""),
}


@pytest.mark.parametrize(("call", "names"), CALLS.values(), ids=list(CALLS))
def test_an_array_that_does_not_fit_is_named(ext, call, names):
    before = sys.getrefcount(WRONG)
    with nothing_lost():
        with pytest.raises(TypeError) as error:
            call(ext, WRONG)
        assert str(error.value).startswith(names + "expected "), error.value
        assert "got (1, 1, 2, 2) [numpy.ndarray, complex128" in str(error.value)
        del error
        gc.collect()
    assert sys.getrefcount(WRONG) == before


@pytest.mark.parametrize(("call", "names"), CALLS.values(), ids=list(CALLS))
def test_what_the_reader_refuses_is_named_and_keeps_its_class(ext, call, names):
    caster_support.check_named_by_the_reader(call, ext, names, ROW)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, MemoryError], ids=lambda kind: kind.__name__)
def test_errors_of_the_producers_own_code_are_left_alone(ext, kind):
    for call, _ in CALLS.values():
        with pytest.raises(kind, match="^my own words$"):
            call(ext, caster_support.Broken(kind))


SEVERAL = {
    "alone": (lambda m, bad: m.several(bad), "several(): argument 'a': "),
    "arrays only": (lambda m, bad: m.arrays(bad), "arrays(): argument 'a': "),
    "arrays only, std::vector": (lambda m, bad: m.list_of_arrays([ROW, bad]), "list_of_arrays(): argument 'all': "),
    "std::vector": (lambda m, bad: m.list_of_several([ROW, bad]), "list_of_several(): argument 'all': "),
}


@pytest.mark.parametrize(("call", "names"), SEVERAL.values(), ids=list(SEVERAL))
def test_each_alternative_of_a_variant_says_why_it_does_not_take_an_array(ext, call, names):
    caster_support.check_each_alternative(call, ext, names)


def test_a_capsule_that_no_alternative_takes_is_not_consumed(ext):
    capsule = np.arange(3, dtype="int32").__dlpack__()
    with pytest.raises(TypeError, match="none of the alternatives takes this"):
        ext.several(capsule)
    assert asdlpack(capsule).dtype == "int32"


def test_another_argument_that_does_not_fit_is_left_to_nanobind(ext):
    capsule = ROW.__dlpack__()
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.unnamed(capsule, "abc")
    assert ext.plain(capsule) == 3, "the capsule was not read"


def test_capsules_are_read_once_all_arguments_fit(ext):
    good, bad = ROW.__dlpack__(), MATRIX.__dlpack__()
    with pytest.raises(TypeError, match=r"^dot\(\): argument 'y': expected rank 1, got \(3, 4\)"):
        ext.dot(good, bad)
    assert ext.dot(good, ROW) == 9
    assert ext.matrix(bad) == 66
    with pytest.raises(dlbridge.DataError, match=r"^matrix\(\): argument 'a': "):
        ext.matrix(bad)


def test_overloads_are_asked_in_turn(ext):
    assert ext.over(MATRIX) == "floats 2"
    assert ext.over(np.arange(3, dtype="int32")) == "ints 1"
    assert ext.over(ROW, ROW) == "two 6"
    for _ in range(2):
        with pytest.raises(TypeError) as error:
            ext.over(np.arange(3.0))
        assert str(error.value).splitlines() == [
            "over(): no overload takes these arguments:",
            "    argument 'a': expected dtype float32, got (3,) [numpy.ndarray, float64, strides (1,), cpu, writable]. "
            "Hint: a.astype('float32')",
            "    closest: argument 'a': expected dtype int32, got (3,) [numpy.ndarray, float64, strides (1,), cpu, "
            "writable]. Hint: a.astype('int32')",
        ]


def test_none_as_the_default_of_an_array_is_refused_when_the_function_is_defined(ext):
    with pytest.raises(TypeError, match=r"^bad\(\): argument 'a': its default is None, which no Arg takes"):
        ext.none_default(ext)


def test_stream_minus_one_names_no_stream(ext):
    with pytest.raises(ValueError, match=r"^streamed\(\): argument 'stream': stream -1 .*names no stream to work on"):
        ext.streamed(ROW, -1)
    with pytest.raises(TypeError, match=r"^streamed\(\): argument 'stream': "):
        ext.streamed(ROW, "abc")


def test_errors_of_views_are_the_packages(ext):
    with pytest.raises(TypeError, match="^view: expected dtype float64, got .*Hint: cast it before the call"):
        ext.fails(ROW)


def test_the_module_says_at_import_that_dlbridge_is_missing(ext):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.modules['dlbridge'] = None\n"
        "try: import nanobind_module\nexcept ImportError as e: print('pip install dlbridge' in str(e.__cause__))"
    )
    assert run_python(code, nanobind_support.build().parent).stdout == "True\n"


# --- results --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))
def test_a_result_is_of_the_arguments_framework(ext, make):
    given = make(ROW)
    result = ext.like_it(given)
    assert type(result) is type(given)
    assert np.asarray(result).tolist() == [1, 1, 1]
    assert ext.same(given) is given


def test_results_by_name(ext):
    assert isinstance(ext.as_tensor(2), dlbridge.Tensor)
    assert type(ext.as_numpy(2)) is np.ndarray
    assert isinstance(ext.as_named(2, "nd"), nd.ndarray)
    with pytest.raises(ValueError, match="no_such"):
        ext.as_named(2, "no_such")


def test_a_property_over_memory_of_the_object_keeps_it(ext):
    for name in ("values", "kept"):
        with nothing_lost():
            values = np.asarray(getattr(ext.Filter(ROW + 1), name))
            gc.collect()
            assert values.tolist() == [1, 2, 3]
            del values
            gc.collect()


@pytest.mark.no_sanitizer
@pytest.mark.parametrize("flags", [(), nanobind_support.SPLIT], ids=["linked", "split"])
def test_clang_compiles_it_without_a_warning(flags):
    clang = next(filter(None, map(shutil.which, ("clang++", "clang++-19"))), None)
    if clang is None:
        pytest.skip("no clang++ on PATH")
    command = [clang, *nanobind_support.compiler_command()[1:], *flags, "-fsyntax-only", nanobind_support.SOURCE]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_signatures_say_what_is_taken(ext):
    assert ext.matrix.__doc__.startswith("matrix(a: typing.Annotated[dlbridge.AnyArray, ")
    assert '"Tensor[float32, (*, *), C, cpu]"]) -> float' in ext.matrix.__doc__
    assert ext.as_numpy.__doc__ == "as_numpy(n: int) -> numpy.ndarray"
    assert ext.as_tensor.__doc__ == "as_tensor(n: int) -> dlbridge.Tensor"
