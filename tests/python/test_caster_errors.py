"""dlbridge/pybind11.h: what a caller reads where an array is not taken (tests/pybind/caster_module.cpp)."""

import ast
import re
import sys
import types
from pathlib import Path

import caster_support
import dlbridge
import pytest
from caster_support import matrix
from dlbridge import _core, asdlpack
from lifecycle_support import FLOAT32, Exporter

np = pytest.importorskip("numpy", reason="NumPy is the oracle here")


ROW = np.ones(3, "float32")
WRONG = matrix("float64")


# --- names ----------------------------------------------------------------------------------------------------------


CALLS = {
    "second argument": (lambda m, bad: m.dot(ROW, bad), "dot(): argument 'y': "),
    "both arguments": (lambda m, bad: m.dot(bad, bad), "dot(): argument 'x': "),
    "module.def": (lambda m, bad: m.plain_dot(ROW, bad), "plain_dot(): argument 'y': "),
    "keyword": (lambda m, bad: m.plain_dot(y=bad, x=ROW), "plain_dot(): argument 'y': "),
    "beside a bad scalar": (lambda m, bad: m.capturing(bad, 1), "capturing(): argument 'a': "),
    "lambda with captures": (lambda m, bad: m.capturing(bad), "capturing(): argument 'a': "),
    "py::args": (lambda m, bad: m.starred(bad, 1, 2), "starred(): argument 'arg0': "),
    "behind py::args": (lambda m, bad: m.keyword_only(1, a=bad), "keyword_only(): argument 'a': "),
    "std::optional": (lambda m, bad: m.optional(bad), "optional(): argument 'a': "),
    "std::vector": (lambda m, bad: m.list([matrix(), bad]), "list(): argument 'arg0': "),
    "noexcept": (lambda m, bad: m.noexcept_sum(bad), "noexcept_sum(): argument 'arg0': "),
    "by reference": (lambda m, bad: m.matrix_by_reference(bad), "matrix_by_reference(): argument 'a': "),
    "may_convert": (lambda m, bad: m.convert(bad), "convert(): argument 'a': "),
    "constructor": (lambda m, bad: m.Filter(bad), "Filter(): argument 'a': "),
    "member": (lambda m, bad: m.Filter(matrix()).apply(bad), "Filter.apply(): argument 'a': "),
    "member without names": (lambda m, bad: m.Filter(matrix()).unnamed(bad, 1), "Filter.unnamed(): argument 'arg0': "),
    "static member": (lambda m, bad: m.Filter.of(bad), "Filter.of(): argument 'a': "),
    "property": (lambda m, bad: setattr(m.Filter(matrix()), "data", bad), "Filter.data: argument 'value': "),
    "static property": (
        lambda m, bad: setattr(m.Filter, "shared", bad),
        "a function without a name: argument 'arg1': ",
    ),
    "member by dlbridge::def": (lambda m, bad: m.Filter(matrix()).add(bad), "Filter.add(): argument 'a': "),
    "lambda as a member": (lambda m, bad: m.Filter(matrix()).minus(bad), "Filter.minus(): argument 'a': "),
    "constructor by dlbridge::def": (lambda m, bad: m.Filter(bad, 2.0), "Filter(): argument 'b': "),
    "factory": (lambda m, bad: m.Factory(bad, n=2), "Factory(): argument 'a': "),
    "py::args and py::kwargs": (lambda m, bad: m.starred_both(bad, 1, k=2), "starred_both(): argument 'arg0': "),
    "py::kwargs": (lambda m, bad: m.named_rest(a=bad, k=2), "named_rest(): argument 'a': "),
    "default values": (lambda m, bad: m.plus(bad), "plus(): argument 'a': "),
    "std::optional between others": (
        lambda m, bad: m.optional_in_the_middle(1, bad),
        "optional_in_the_middle(): argument 'a': ",
    ),
    "std::variant": (lambda m, bad: m.either(bad), "either(): argument 'a': "),
    "std::variant, module.def": (lambda m, bad: m.plain_either(bad), "plain_either(): argument 'a': "),
}


TAKEN = {
    "constructor by dlbridge::def": (lambda m, a: m.Filter(a, 2.0).data, 132),
    "member by dlbridge::def": (lambda m, a: m.Filter(a).add(a), 132),
    "lambda as a member": (lambda m, a: m.Filter(a).minus(a), 0),
    "property": (lambda m, a: [f := m.Filter(2 * a), setattr(f, "data", a), f.data][-1], 66),
    "static property": (lambda m, a: [setattr(m.Filter, "shared", a), m.Filter.shared][-1], 1),
    "factory": (lambda m, a: type(m.Factory(a)).__name__, "Factory"),
    "py::args and py::kwargs": (lambda m, a: m.starred_both(a, 1, 2, k=3), 66 + 20 + 100),
    "py::kwargs": (lambda m, a: m.named_rest(k=3, a=a), 67),
    "std::optional between others": (lambda m, a: m.optional_in_the_middle(1, a, "xy"), 69),
    "std::optional left out": (lambda m, a: m.optional_in_the_middle(1), 5),
    "std::variant": (lambda m, a: [m.either(x) for x in (None, a, 3, a.__dlpack__())], [0, 1, 2, 1]),
    "std::variant of several arrays": (
        lambda m, a: [f(x) for f in (m.several, m.plain_several) for x in (7, a[0], a[0].astype("float64"), a)],
        [0, 1, 2, 3] * 2,
    ),
    "std::variant of arrays only": (
        lambda m, a: [
            [f(x) for f in (m.arrays, m.plain_arrays) for x in (a[0], a[0].astype("float64"), a, a[0].__dlpack__())],
            [m.optional_arrays(a), m.optional_arrays(None), m.list_of_arrays([a[0], a[0].astype("float64")])],
            m.same_arrays(a[0:1]).tolist() == a[0:1].tolist() and m.same_arrays(r := a[0]) is r,
        ],
        [[0, 1, 2, 0] * 2, [2, -1, 21], True],
    ),
    "std::variant, lambda with captures": (lambda m, a: m.capturing_several(a[0]), 2),
    "std::vector of std::variant": (lambda m, a: m.list_of_several([a[0], 1, a]), [1, 0, 3]),
    "overloads of std::variant": (lambda m, a: [m.several_or_text(x) for x in (a[0], "x")], [1, "text"]),
}


@pytest.mark.parametrize(("call", "result"), TAKEN.values(), ids=list(TAKEN))
def test_an_array_that_fits_is_taken_there(ext, call, result):
    assert call(ext, matrix()) == result


@pytest.mark.parametrize(("call", "names"), CALLS.values(), ids=list(CALLS))
def test_an_array_that_does_not_fit_is_named(ext, call, names):
    with pytest.raises(TypeError) as error:
        call(ext, np.ones((1, 1, 2, 2), "complex128"))
    assert str(error.value).startswith(names + "expected "), error.value
    assert "got (1, 1, 2, 2) [numpy.ndarray, complex128" in str(error.value)


@pytest.mark.parametrize(("call", "names"), CALLS.values(), ids=list(CALLS))
def test_what_the_reader_refuses_is_named_and_keeps_its_class(ext, call, names):
    caster_support.check_named_by_the_reader(call, ext, names, np.zeros(3, "float32"))


def test_errors_of_the_producers_own_code_are_left_alone(ext):
    for call, _ in CALLS.values():
        with pytest.raises(ValueError, match="^my own words$"):
            call(ext, caster_support.Broken(ValueError))


SEVERAL = {
    "def": (lambda m, bad: m.several(bad), "several(): argument 'a': "),
    "module.def": (lambda m, bad: m.plain_several(bad), "plain_several(): argument 'a': "),
    "arrays only": (lambda m, bad: m.arrays(bad), "arrays(): argument 'a': "),
    "arrays only, module.def": (lambda m, bad: m.plain_arrays(bad), "plain_arrays(): argument 'a': "),
    "arrays only, std::vector": (lambda m, bad: m.list_of_arrays([ROW, bad]), "list_of_arrays(): argument 'all': "),
    "lambda with captures": (lambda m, bad: m.capturing_several(bad), "capturing_several(): argument 'a': "),
    "std::vector": (lambda m, bad: m.list_of_several([ROW, bad]), "list_of_several(): argument 'all': "),
}


@pytest.mark.parametrize(("call", "names"), SEVERAL.values(), ids=list(SEVERAL))
def test_each_alternative_of_a_variant_says_why_it_does_not_take_an_array(ext, call, names):
    caster_support.check_each_alternative(call, ext, names)


def test_overloads_tell_what_the_alternatives_of_a_variant_say(ext):
    with pytest.raises(TypeError, match=r"(?s)^several_or_text\(\): .*'a': none of the .*float32.*float64.*rank 2"):
        ext.several_or_text(np.ones(2, "int32"))


def test_a_capsule_that_no_alternative_takes_is_not_consumed(ext):
    producer = Exporter((2,), dtype=(0, 32, 1))
    capsule = producer.capsule()
    with pytest.raises(TypeError, match="none of the alternatives takes this"):
        ext.several(capsule)
    assert asdlpack(capsule).dtype == "int32"
    producer.assert_all_deleted_once()


def test_none_as_the_default_of_a_member(ext):
    with pytest.raises(TypeError, match=r"^Pair.f\(\): argument 'x': its default is None, .*std::optional"):
        ext.define_none_member(types.ModuleType("other"))


def test_an_operator_lets_the_other_operand_try(ext):
    assert ext.Filter(matrix()) + matrix() == 2 * matrix().sum()
    for other in (5, matrix("float64").tolist()):
        with pytest.raises(TypeError, match="unsupported operand"):
            ext.Filter(matrix()) + other


def test_a_cast_that_is_not_made_unasked_is_named(ext):
    with pytest.raises(TypeError, match=r"^convert\(\): argument 'a': complex64 is not cast to float32 .*same_kind"):
        ext.convert(matrix("complex64"))


def test_none_as_the_default_of_a_plain_argument(ext):
    with pytest.raises(TypeError, match=r"^f\(\): argument 'x': its default is None, .*std::optional"):
        ext.define_none(types.ModuleType("other"))
    with pytest.raises(
        TypeError, match=r"^plain_none\(\): argument 'x': None, its default, is not an array.*std::optional"
    ):
        ext.plain_none()
    assert ext.plain_none(ROW)


def test_streams(ext):
    with pytest.raises(
        ValueError, match=r"^stream\(\): argument 'stream': stream -1 .*names no stream.*Give None, a CUDA"
    ):
        ext.stream(-1)
    for wrong, kind in (("x", TypeError), (0, ValueError), (-7, ValueError)):
        with pytest.raises(kind, match=r"^stream\(\): argument 'stream': stream ") as error:
            ext.stream(wrong)
        assert "-1," not in str(error.value) and "-1 for" not in str(error.value)


def test_a_failed_view_is_told_to_the_caller_in_his_words(ext):
    for source, hint in ((matrix().T, "asdlpack(x, copy=True)"), (matrix("float64"), "x.astype"), (ROW, "reshape")):
        with pytest.raises((TypeError, ValueError, BufferError), match="^view: expected ") as error:
            ext.dense(source)
        assert hint in str(error.value).partition("Hint: ")[2]
        assert "copy::" not in str(error.value) and "dense_copy" not in str(error.value)


# --- overloads ------------------------------------------------------------------------------------------------------


def test_overloads_give_the_reason_of_each(ext):
    assert [ext.two(ROW), ext.two(np.ones(2)), ext.two("text")] == ["float32", "float64", "text"]
    with pytest.raises(TypeError) as error:
        ext.two(np.ones(2, "int32"))
    lines = str(error.value).splitlines()
    assert lines[0] == "two(): no overload takes these arguments:"
    assert lines[1].startswith("    argument 'a': expected dtype float32, got (2,) [numpy.ndarray, int32")
    assert lines[2].startswith("    argument 'b': expected dtype float64, got (2,) [numpy.ndarray, int32")
    with pytest.raises(TypeError, match=r"(?s)^two\(\): no overload.*'a': list has none of.*'b': list has none of"):
        ext.two([1])
    # What an earlier call left behind is not told in a later one.
    with pytest.raises(TypeError, match=r"^plain_dot\(\): argument 'x': expected dtype float32"):
        ext.plain_dot(np.ones(2), ROW)
    with pytest.raises(TypeError, match=r"^strict\(\): argument 'arg0': expected dtype float32, got \(2,\)"):
        ext.strict(np.zeros(2))


def test_a_capsule_goes_to_the_overload_that_takes_it(ext):
    producer = Exporter((2,), dtype=(2, 64, 1))
    assert ext.two(producer.capsule()) == "float64"
    producer.assert_all_deleted_once()


@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
def test_a_capsule_that_is_refused_is_not_consumed(ext, legacy):
    producer = Exporter((2,), dtype=(0, 32, 1), legacy=legacy)
    capsule = producer.capsule()
    for refused in (
        lambda: ext.two(capsule),
        lambda: ext.strict(capsule),
        lambda: ext.flat(capsule),
        lambda: ext.plain_dot(ROW, capsule),
        lambda: ext.optional(capsule),
        lambda: ext.Filter(capsule),
    ):
        with pytest.raises(TypeError, match="dtype float32, got .2,. .PyCapsule"):
            refused()
    assert asdlpack(capsule).dtype == "int32"
    producer.assert_all_deleted_once()


def test_a_capsule_that_fits_beside_an_argument_that_does_not_is_not_consumed(ext):
    producer, another = Exporter((2,), dtype=FLOAT32), Exporter((2,), dtype=(0, 32, 1))
    capsule, other = producer.capsule(), another.capsule()
    for refused in (
        lambda: ext.plain_dot(capsule, np.ones(2)),
        lambda: ext.dot(capsule, "abc"),
        lambda: ext.dot(capsule, other),
        lambda: ext.pair(capsule, "x"),
    ):
        with pytest.raises(TypeError):
            refused()
    assert ext.pair(capsule, np.ones(2)) == "float64"
    producer.assert_all_deleted_once()


# --- hints ----------------------------------------------------------------------------------------------------------


def _cases():
    readonly = np.zeros((4, 5, 3), "float32")
    readonly.flags.writeable = False
    yield "numpy layout", "fill", np.zeros((5, 4, 3), "float32").transpose(1, 0, 2)
    yield "numpy dtype", "fill", np.zeros((4, 5, 3))
    yield "numpy read-only", "fill", readonly
    yield "numpy shape", "fill", np.zeros((4, 5), "float32")
    yield "numpy overlap", "plus", np.lib.stride_tricks.as_strided(np.zeros(1, "float32"), (3,), (0,))
    yield "numpy Fortran", "fill_fortran", np.zeros((4, 5))
    yield "numpy Fortran dtype", "fill_fortran", np.zeros((4, 5), "int32")
    yield "buffer dtype", "fill", memoryview(np.zeros((4, 5, 3)))
    yield "read: numpy layout", "matrix", matrix().T
    yield "read: numpy dtype", "matrix", matrix("int32")
    yield "read: numpy shape", "picture", np.zeros((4, 5), "uint8")
    yield "read: numpy one axis too many", "matrix", matrix()[None]
    yield "read: numpy set of dtypes", "floating", np.zeros(3, "float16")
    yield "read: buffer dtype", "matrix", memoryview(matrix("float64"))
    yield "read: bytes dtype", "plain_dot_x", b"1234"
    yield "tensor layout", "fill", asdlpack(np.zeros((5, 4, 3), "float32").transpose(1, 0, 2))


def follow(hint, function, source):
    """Does what the hint says; what the function has been called with, and where the result is."""
    words = {"a": source, "x": source, "numpy": np, "dlbridge": dlbridge, "torch": sys.modules.get("torch")}
    pass_copy = re.match(
        r"the function writes to \w+: pass copy = (.*?)(?:, then (.*)|, which then has the result)$", hint
    )
    if pass_copy is None:
        return function(eval(hint, words))
    words["copy"] = eval(pass_copy[1], words)
    function(words["copy"])
    back = pass_copy[2]
    if back is None:
        return words["copy"]
    if back.startswith("copy it back into"):
        np.asarray(source)[...] = np.asarray(words["copy"])
    else:
        exec(back, words)
    return source


def check_hint(ext, name, source):
    function = (lambda x: ext.plain_dot(x, ROW)) if name == "plain_dot_x" else getattr(ext, name)
    with pytest.raises(TypeError) as error:
        function(source)
    result = follow(str(error.value).partition("Hint: ")[2], function, source)
    if name in ("fill", "fill_fortran"):
        assert np.asarray(result).all() and np.asarray(result).size > 0


@pytest.mark.parametrize(("name", "source"), [pytest.param(*row[1:], id=row[0]) for row in _cases()])
def test_following_the_hint_helps_and_loses_no_write(ext, name, source):
    check_hint(ext, name, source)


def test_following_the_hint_helps_with_torch(ext):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for name, source in (
        ("fill", torch.zeros(5, 4, 3).transpose(0, 1)),
        ("fill", torch.zeros(4, 5, 3, dtype=torch.float64)),
        ("fill", torch.zeros(4, 5)),
        ("fill", torch.zeros(1).expand(4, 5, 3)),
        ("fill_fortran", torch.zeros(4, 5, dtype=torch.float64)),
        ("matrix", torch.zeros(4, 5).T),
        ("matrix", torch.zeros(4, 5, dtype=torch.int32)),
        ("picture", torch.zeros(4, 5, dtype=torch.uint8)),
    ):
        check_hint(ext, name, source)


def test_a_reader_that_advises_a_copy_says_to_copy_back_what_is_written(ext):
    swapped = np.zeros((4, 5, 3), ">f4")
    with pytest.raises(BufferError, match=r"^fill\(\): argument 'a': .*has to be copied back$"):
        ext.fill(swapped)
    with pytest.raises(BufferError) as error:
        ext.matrix(matrix(">f4"))
    assert "copied back" not in str(error.value)


# --- conversion -----------------------------------------------------------------------------------------------------


def test_conversion_of_misaligned_numbers(ext):
    a = matrix()
    misaligned = np.frombuffer(bytearray(b"\0") + a.tobytes(), "uint8")[1:].view("float32").reshape(3, 4)
    assert ext.convert(misaligned)[1] == a.sum()
    with pytest.raises(TypeError, match=r"^convert\(\): argument 'a': expected rank 2, got \(12,\)"):
        ext.convert(misaligned.ravel("A").view())


# --- signatures -----------------------------------------------------------------------------------------------------


def signatures(module):
    for owner in (module, module.Filter, module.Keeper):
        for name in vars(owner):
            text = (getattr(owner, name).__doc__ or "").splitlines()[:1]
            if text and text[0].startswith(f"{name}("):
                yield text[0]


def test_signatures_are_python_so_that_stubs_are(ext):
    modules = {"typing", "dlbridge", "numpy", "torch", "jax", "cupy", "types", "collections", "caster_module"}
    builtins = {"bool", "float", "int", "object", "str", "tuple", "list", "dict", "None"}
    seen = 0
    for text in signatures(ext):
        if "(*args, **kwargs)" in text:  # of overloads
            continue
        function = ast.parse(f"def {text}: ...").body[0]
        annotations = [function.returns, *(a.annotation for a in function.args.args + function.args.kwonlyargs)]
        for name in (n for a in annotations if a for n in ast.walk(a) if isinstance(n, ast.Name)):
            assert name.id in modules | builtins, (name.id, text)
        seen += 1
    assert seen > 40


def test_frameworks_of_results_are_those_that_convert_knows():
    header = (Path(caster_support.include_folders()[0]) / "dlbridge" / "python" / "framework.h").read_text()
    rows = header.partition("kKnownFrameworks[] = {")[2].partition("};")[0]
    names = re.findall(r'\{"([^"]*)", "[^"]*"\}', rows)
    table = _core.consumers()
    assert len(names) == len(set(names))
    assert set(names) == {*table, *(alias for row in table.values() for alias in row["aliases"])}
