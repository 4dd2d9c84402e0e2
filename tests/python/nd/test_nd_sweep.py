"""The sweep of benchmarks/sweep.py: it leaves out no function, times nothing wrong, and goes on where it stopped."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from oracle import census
from oracle.arrays import Input
from oracle.cases import Case
from oracle.families import FAMILIES

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

import _sweep_report  # noqa: E402
import sweep  # noqa: E402
from _sweep_peers import OURS, Peer, Torch, function_of, timed_code  # noqa: E402
from _sweep_rows import DTYPES, LAYOUTS, REDUCED, Spot, in_order, walk  # noqa: E402
from oracle.arrays import values_of  # noqa: E402

pytestmark = pytest.mark.no_sanitizer  # it measures time

ADD = Case("ufuncs", "xp.add(x, y)", (("x", Input("float32", (50,))), ("y", Input("float32", (50,)))), 50)


@pytest.fixture(scope="module")
def spots():
    return walk((16, 1000))


@pytest.fixture(scope="module")
def host():
    return sweep.Sweep("cpu", ("numpy",), 0.0)


def spot_of(case):
    return Spot(case.code, case, "float32", case.n, "contiguous")


def test_the_walk_covers_every_function_of_the_oracle(spots):
    assert census.missing(spot.case for spot in spots) == []
    assert {spot.case.family for spot in spots} == set(FAMILIES)


def test_the_walk_misses_a_function_without_a_row(spots):
    without = [spot.case for spot in spots if "xp.searchsorted" not in spot.case.code]
    without = [case for case in without if ".searchsorted" not in case.code]
    assert any(line.startswith("searchsorted is public") for line in census.missing(without))


def test_the_walk_has_every_dtype_layout_and_axis(spots):
    for family in ("ufuncs", "reductions", "sorting", "manipulation"):
        own = [spot for spot in spots if spot.case.family == family]
        assert {spot.dtype for spot in own} == set(DTYPES)
        assert {spot.layout for spot in own} >= set(LAYOUTS)
    for code in ("xp.sum(x, axis=a)", "xp.cumsum(x, axis=a)"):
        axes = {spot.case.code for spot in spots if spot.subject == code}
        assert axes == {code.replace("=a", f"={axis}") for _, axis in REDUCED}


def test_what_is_sorted_has_few_equal_numbers(spots):
    """Few distinct values are sorted by other routes than numbers as they come."""
    sorts = [spot for spot in spots if spot.case.code in ("xp.sort(x)", "xp.argsort(x, kind='stable')")]
    for spec in {spot.case.inputs[0][1] for spot in sorts if spot.dtype in ("int32", "int64", "float32", "float64")}:
        values = values_of(spec, (1000,))
        assert len(np.unique(values)) > 600
    assert sorts


def test_no_row_is_there_twice(spots):
    assert len({spot.key for spot in spots}) == len(spots)


def test_the_first_rows_are_one_of_each_subject(spots):
    subjects = {(spot.case.family, spot.subject) for spot in spots}
    first = {(spot.case.family, spot.subject) for spot in spots[: len(subjects)]}
    assert first == subjects
    assert in_order(reversed(spots)) == spots  # whatever order the tables come in


def test_inputs_have_the_size_that_the_row_says(spots):
    for spot in spots:
        for _, spec in spot.case.inputs:
            assert np.prod(spec.shape, dtype=int) <= 3 * spot.size + 500, spot.key


def test_a_row_is_timed_against_numpy(host):
    row = host.row(spot_of(ADD))
    assert row["wrong"] == row["refused"] == {} and row["peer"] == "numpy"
    assert row["ratio"] == pytest.approx(row["ns"]["numpy"] / row["ns"][OURS], rel=0.1)


def test_a_wrong_result_is_reported_and_not_timed(host):
    planted = Case("sorting", "xp.sort(x)", (("x", Input("int32", (50,))),), 50, "np.sort(x)[::-1]")
    row = host.row(spot_of(planted))
    assert "elements differ" in row["wrong"]["numpy"] and "ns" not in row and "ratio" not in row
    assert [line.startswith("WRONG") for line in _sweep_report.lines_of(row)] == [True]


def test_a_wrong_result_of_another_library_is_reported_and_not_timed(monkeypatch):
    class Shifted:
        __version__ = "1"
        add = staticmethod(lambda x, y: np.add(x, y) + 1)

    one = sweep.Sweep("cpu", ("numpy",), 0.0)
    monkeypatch.setitem(one.peers, "shifted", Peer("shifted", Shifted, "cpu", "1"))
    row = one.row(spot_of(ADD))
    assert set(row["wrong"]) == {"shifted"} and set(row["ns"]) == {OURS, "numpy"}


def test_what_a_peer_lacks_is_no_fault(host):
    row = host.row(spot_of(Case("ufuncs", "xp.rsqrt(x)", (("x", Input("float32", (9,), "positive")),), 9)))
    assert "numpy" in row["refused"] and not row["wrong"] and "ratio" not in row


def test_a_peer_that_gives_its_argument_where_a_copy_is_asked_for_is_not_timed(monkeypatch):
    class Lazy:
        __version__ = "1"
        positive = staticmethod(lambda x: x)
        flip = staticmethod(lambda x: x[::-1])  # a view, as ours is

    one = sweep.Sweep("cpu", ("numpy",), 0.0)
    monkeypatch.setitem(one.peers, "lazy", Peer("lazy", Lazy, "cpu", "1"))
    x = (("x", Input("float32", (50,))),)
    assert "a copy is asked for" in one.row(spot_of(Case("ufuncs", "xp.positive(x)", x, 50)))["refused"]["lazy"]
    assert set(one.row(spot_of(Case("copies", "xp.flip(x)", x, 50)))["ns"]) == {OURS, "numpy", "lazy"}


def test_the_memory_of_an_array_is_what_its_strides_reach():
    x = np.arange(12.0).reshape(3, 4)
    begin = x.ctypes.data
    assert sweep.span(x) == range(begin, begin + 96)
    assert sweep.span(np.broadcast_to(x[:1], (50, 4))) == range(begin, begin + 32)
    assert sweep.span(x[::-2, 1:]) == range(begin + 8, begin + 96)
    assert sweep.span(x[:0]) == sweep.span(3) == range(0)


def test_rows_that_are_there_are_not_run_again(tmp_path, monkeypatch, capsys):
    out = tmp_path / "sweep.jsonl"
    few = walk((16,), "xp.hypot")
    options = ["--device", "cpu", "--sizes", "16", "--only", "xp.hypot", "--row-seconds", "0", "--out", str(out)]
    assert sweep.main([*options, "--seconds", "0"]) == 0
    assert [set(json.loads(line)) for line in out.read_text().splitlines()] == [{"session"}]
    assert sweep.main(options) == 0
    out.write_text(out.read_text().rpartition('{"on"')[0] + '{"on": "cu')  # cut off, as by a kill
    assert sweep.main(options) == 0
    rows = [record for record in sweep.read(out) if "key" in record]
    assert [row["key"] for row in rows] == [spot.key for spot in few]
    monkeypatch.setattr(sweep.Sweep, "row", lambda *_: pytest.fail("a row was run again"))
    assert sweep.main(options) == 0
    assert f"{len(few)} of {len(few)} rows done" in capsys.readouterr().out


def test_the_report_has_families_and_the_worst_rows(tmp_path, capsys):
    out = tmp_path / "sweep.jsonl"
    for only in ("xp.hypot", "xp.unique_counts"):
        sweep.main(["--sizes", "16", "--only", only, "--row-seconds", "0", "--out", str(out)])
    assert sweep.main(["--out", str(out), "--report", "--results", str(tmp_path), "--note", "A rehearsal."]) == 0
    (file,) = tmp_path.glob("sweep-cpu*-py*.md")
    text = file.read_text()
    assert "A rehearsal." in text and "## By family" in text and "| ufuncs |" in text and "## Rows below 1.0" in text


def test_a_report_stays_short(host):
    rows = [
        {"on": "x", "key": f"xp.f{i}(x) n=1 x=int8(1,)contiguous:any:0", "family": "ufuncs", "subject": f"f{i}",
         "code": f"xp.f{i}(x)", "dtype": "int8", "size": 16, "layout": "contiguous", "refused": {},
         "wrong": {"numpy": "differs"} if i % 2 else {}, "ratio": 0.5, "peer": "numpy", "ns": {OURS: 2, "numpy": 1}}
        for i in range(2000)
    ]  # fmt: skip
    assert len(_sweep_report.document(rows, host.session(), "").splitlines()) < 400


def test_in_place_code_is_timed_on_the_array_as_it_was():
    case = Case("sorting", "x.sort()\nx", (("x", Input("int32", (5,))),), 5)
    x = np.array([3, 1, 2])
    call = function_of(timed_code(case), {"xp": np, "x": x})
    assert call().tolist() == call().tolist() == [1, 2, 3] and x.tolist() == [3, 1, 2]


def test_the_seed_and_the_generator_are_not_timed():
    assert timed_code(Case("random", "xp.random.seed(5)\nxp.random.rand(n, **on)", ())) == "xp.random.rand(n, **on)"
    code = timed_code(Case("random", "xp.random.default_rng(7, **on).random(n)", ()))
    assert code == "g.random(n)"


@pytest.mark.parametrize(
    ("code", "theirs"),
    [
        ("xp.max(x, axis=None)", "xp.max(x)"),
        ("x.max(axis=0)", "xp.max(x, axis=0)"),
        ("x.astype('int32')", "x.to(xp.int32)"),
        ("x.copy()", "x.clone()"),
        ("xp.zeros(n, 'int8', **on)", "xp.zeros(n, **on, dtype=xp.int8)"),
        ("xp.argsort(x, axis=1, kind='stable')", "xp.argsort(x, axis=1, stable=True)"),
        ("xp.add.at(q, d, u)\nq", "xp.add_at(q, d, u)\nq"),
        ("xp.random.default_rng(7, **on).random(n, 'float32')", "g.random(n, **on, dtype=xp.float32)"),
        ("xp.linalg.norm(x, inf, axis=0)", "xp.linalg.norm(x, inf, axis=0)"),
    ],
)
def test_the_same_line_for_pytorch(code, theirs):
    torch = pytest.importorskip("torch")
    before = torch.get_default_dtype()
    try:
        assert Torch(torch, "cpu").code(Case("any", code, ())) == theirs
    finally:
        torch.set_default_dtype(before)


def test_pytorch_gives_what_we_give():
    torch = pytest.importorskip("torch")
    before = torch.get_default_dtype()
    try:
        one = sweep.Sweep("cpu", ("torch",), 0.0)
        seen, compared = set(), 0
        for spot in walk((16,)):
            if spot.subject in seen or spot.dtype not in ("float32", "int64", "-"):
                continue
            seen.add(spot.subject)
            calls, _ = one.calls(spot.case)
            if len(calls) == 2:
                compared += 1
                assert one.wrong(spot.case, 16, "torch", calls) is None, spot.key
            elif spot.subject == "xp.random.default_rng(7, **on).random(n)":
                pytest.fail(f"one of the two refuses {spot.key}")
        assert compared > 250
    finally:
        torch.set_default_dtype(before)


def test_the_gpu_is_timed_by_events_around_batches(monkeypatch):
    log = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            log.append("record")

        def synchronize(self):
            pass

        def elapsed_time(self, end):
            return 2.0

    class torch:
        class cuda:
            synchronize = staticmethod(lambda: None)

        cuda.Event = Event

    timings = sweep.timings_on_gpu({OURS: lambda: log.append("call"), "peer": lambda: None}, 0.0, torch)
    count = timings[OURS].calls_per_round
    assert 1 < count <= 50 and timings[OURS].median_ns == pytest.approx(2e6 / count)
    assert timings[OURS].rounds == 8 and "call" in log[log.index("record") :]
    monkeypatch.setattr(sweep, "SLOW_NS", -1)  # what takes seconds is called once more, and no round
    log.clear()
    assert sweep.timings_on_gpu({OURS: lambda: log.append("call")}, 0.0, torch)[OURS].rounds == 1
    assert log == ["call"]


def test_narrower_takes_the_dtype_that_says_less():
    leaf = sweep.Leaf(np.array([1, 2]), "int64"), sweep.Leaf(np.array([1.0, 2.0], "f4"), "float32")
    assert {one.dtype for one in sweep.narrower(*leaf)} == {"float32"}
    assert sweep.apart(*leaf, 4, False) is None


def test_a_difference_in_a_large_result_is_found():
    got, want = np.zeros((2, sweep.LARGE), "f4"), np.zeros((2, sweep.LARGE), "f4")
    leaves = sweep.Leaf(got, "float32"), sweep.Leaf(want, "float32")
    assert sweep.apart(*leaves, 4, False) is None
    want[1, -1] = 1
    assert "1 of" in sweep.apart(*leaves, 4, False)


def test_dtypes_of_two_libraries_may_differ_and_values_may_not():
    leaf = sweep.Leaf(np.array([1, 2]), "int64"), sweep.Leaf(np.array([1.0, 2.0], "f4"), "float32")
    assert "differ" in sweep.apart(leaf[0], sweep.Leaf(np.array([1.0, 3.0]), "float64"), 4, False)
