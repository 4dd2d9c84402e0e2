"""The fuzzer of ndarray programs: some of its programs, and that it finds, shrinks and prints what differs.

More of them: `python tests/fuzz/nd_programs.py`.
"""

import random

import numpy as np
import pytest
from child_process import run_python
from dlbridge import nd
from numpy.lib import NumpyVersion
from oracle import programs
from oracle.intended import INTENDED
from oracle.statements import Writer

SEED, PROGRAMS, STATEMENTS = 2026, 250, 25


def program(seed, device="cpu"):
    """The lines of a program, and its first difference."""
    writer, session, lines = Writer(random.Random(seed)), programs.Session(device), []
    for _ in range(STATEMENTS):
        lines.append(writer.line(session.arrays()))
        try:
            message = session.step(lines[-1], INTENDED)
        except programs.Undefined:
            break
        if message:
            return lines, programs.Finding(len(lines) - 1, message, programs.kind_of(lines[-1], message))
    return lines, None


def test_programs_do_what_they_do_with_numpy(device):
    for number in range(PROGRAMS):
        lines, finding = program(f"{SEED}/{number}", device)
        if finding:
            small = programs.shrunk(lines, finding, device, INTENDED)
            pytest.fail(f"{finding.message}\n{programs.as_code(small, device)}")


def test_a_sum_of_products_is_anybodys_guess_only_where_a_product_overflows():
    large, whole = np.array([np.inf, 9e300]), np.array([1, 2**62])
    assert programs.product_overflows([large, whole])
    assert programs.product_overflows([np.array([300], "float16")])
    assert not programs.product_overflows([np.array([np.inf, np.nan, 1e3]), whole])
    assert not programs.product_overflows([whole, whole])  # integers wrap around, everywhere alike
    assert not programs.product_overflows([np.zeros(0)])


def test_a_seed_gives_the_same_program():
    assert program("7/3") == program("7/3") != program("7/4")


def test_programs_reach_every_kind_of_statement():
    text = "\n".join(line for number in range(300) for line in program(f"3/{number}")[0])
    for piece in (".T", "reshape", "broadcast_to", "out=", "astype", "concatenate", "sort", "axis=(", "+=", "::-1",
                  "copyto", "where", "keepdims", "2**6", "np.", "None", "@", "expand_dims"):  # fmt: skip
        assert piece in text, piece


@pytest.fixture
def wrong_sum(monkeypatch):
    """An ndarray library whose sum is one too large where there are five elements or more."""
    right = nd.sum

    def wrong(x, **kwargs):
        return right(x, **kwargs) + (1 if x.size >= 5 else 0)

    monkeypatch.setattr(nd, "sum", wrong)


def test_a_difference_is_found_and_made_small(wrong_sum):
    lines = [
        "v0 = xp.array([[1, 2, 3], [4, 5, 6]], 'int64', **on)",
        "v1 = v0[::-1]",
        "v2 = v1 + 1",
        "v3 = xp.array([1.5], 'float32', **on)",
        "v4 = v2.T",
        "v5 = xp.sum(v4, axis=0)",
        "v6 = v5 * 2",
    ]
    finding = programs.first_difference(lines, "cpu")
    assert finding.position == 5 and "v5" in finding.message
    small = programs.shrunk(lines, finding, "cpu")
    assert len(small) == 2 and small[1] == "v5 = xp.sum(v4, axis=0)" and small[0].startswith("v4 = xp.array(")


def test_the_end_of_the_process_is_a_finding(monkeypatch):
    import os

    monkeypatch.setattr(nd, "negative", lambda x: os.abort())
    lines = ["v0 = xp.array([1, 2], 'int8', **on)", "v1 = v0 + 1", "v2 = xp.negative(v0)"]
    finding = programs.check(lines, "cpu")
    assert finding.position == -1 and "status -6" in finding.message
    assert programs.shrunk(lines, finding, "cpu")[-1] == "v2 = xp.negative(v0)"


def test_a_statement_without_an_end_is_a_finding(monkeypatch):
    import time

    monkeypatch.setattr(programs.Watch, "longest", 0.5)
    monkeypatch.setattr(nd, "negative", lambda x: time.sleep(60))
    lines = ["v0 = xp.array([1, 2], 'int8', **on)", "v1 = xp.negative(v0)"]
    assert programs.check(lines, "cpu").kind == programs.ENDLESS


def test_printed_programs_run():
    code = programs.as_code(["v0 = xp.array([1, 2], 'int8', **on)", "v1 = v0 * 2"], "cpu")
    assert run_python(code).stdout.count("[2, 4]") == 2


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)])
def test_literals_keep_their_values(dtype, shape):
    values = Writer(random.Random(5)).values(dtype, shape)
    made = eval(programs.literal(values), {"xp": np, "on": {}, "nan": np.nan, "inf": np.inf})
    assert made.dtype == values.dtype and made.shape == shape
    assert made.tobytes() == values.tobytes() or np.array_equal(made, values, equal_nan=True)


def test_an_exception_that_blames_nobody_is_a_finding(monkeypatch):
    def broken(x):
        raise SystemError("returned NULL without setting an exception")

    monkeypatch.setattr(nd, "negative", broken)
    lines = ["v0 = xp.array([True], 'bool', **on)", "v1 = xp.negative(v0)"]  # a TypeError of NumPy's
    assert "SystemError" in programs.first_difference(lines, "cpu").message


def test_intended_differences_are_still_there(device):
    """An entry that no program meets any more goes stale: it would hide what breaks later."""
    for entry in INTENDED:
        if entry.device == device and not (entry.numpy_until and NumpyVersion(np.__version__) >= entry.numpy_until):
            assert programs.first_difference(entry.example, device) is not None, entry.reason
            assert programs.first_difference(entry.example, device, INTENDED) is None, entry.reason
