"""The differential of the functions on the host: a share of its cases against NumPy, and that its lists are whole.

All of the cases, and the device: `python tests/gpu/differential.py`.
"""

import itertools
from pathlib import Path

import numpy as np
import pytest
from child_process import run_python
from oracle import census, thresholds
from oracle.arrays import COMPLEX, DTYPES, LAYOUTS, Input, make
from oracle.cases import Case, Raised, compare, known_difference, reproducer, run
from oracle.compare import Leaf, difference, round_to_bfloat16, to_host
from oracle.families import FAMILIES, KNOWN, all_cases

ROOT = Path(__file__).resolve().parents[3]
SHARE = 40  # one case in so many, a number that no list of sizes, dtypes or layouts has as a period
MOST = 9000  # elements


@pytest.fixture(scope="module")
def cases():
    return list(all_cases())


@pytest.fixture(scope="module")
def families(cases):
    """A share of each family: the first of its codes, and then every so many."""
    chosen = {}
    seen = set()
    for position, case in enumerate(cases):
        small = all(np.prod(spec.shape, dtype=int) <= MOST for _, spec in case.inputs) and case.n <= MOST
        first = case.code not in seen and case.n > 1
        if small and (first or position * 0x9E3779B1 % (1 << 32) % SHARE == 0):
            seen.add(case.code)
            chosen.setdefault(case.family, []).append(case)
    return chosen


@pytest.mark.parametrize("family", FAMILIES)
def test_host_is_as_numpy(family, families):
    failed = []
    for case in families[family]:
        found, _ = run(case, "host", KNOWN)
        failed += [f"{one.message}\n{reproducer(case, 'cpu')}" for one in found]
    assert not failed, f"{len(failed)} of {len(families[family])} cases:\n" + "\n".join(failed[:5])


def test_every_family_is_driven(cases):
    assert {case.family for case in cases} == set(FAMILIES)


def test_every_public_function_has_cases(cases):
    assert census.missing(cases) == []


def test_every_threshold_of_the_sources_is_known():
    assert thresholds.faults() == []


def test_a_function_without_cases_is_missed(cases):
    without = [case for case in cases if "xp.searchsorted" not in case.code and ".searchsorted" not in case.code]
    assert any(line.startswith("searchsorted is public") for line in census.missing(without))


def test_a_threshold_that_is_gone_or_new_is_missed(monkeypatch):
    known = dict(thresholds.constants())
    known["cuda/sort.cuh:kNewLimit"] = ("std::int64_t", "1 << 12")
    del known["cuda/sort.cu:kRowAlone"]
    monkeypatch.setattr(thresholds, "constants", lambda: known)
    found = thresholds.faults()
    assert any("cuda/sort.cuh:kNewLimit is new" in line for line in found)
    assert any("cuda/sort.cu:kRowAlone is listed" in line for line in found)


def test_the_value_of_a_threshold_is_that_of_the_source():
    assert thresholds.value_of("cuda/sort.cu:kRowAlone") == 1 << 17
    assert thresholds.value_of("cuda/scan_kernels.cuh:kScanTile", 2) == 2 * thresholds.value_of(
        "cuda/scan_kernels.cuh:kScanTile", 4
    )
    assert thresholds.value_of("cuda/elementwise_launch.h:kPartLimit") == (1 << 31) - 1


@pytest.mark.parametrize(("dtype", "layout"), list(itertools.product(DTYPES, LAYOUTS)))
def test_an_input_is_the_same_everywhere(dtype, layout):
    for shape in ((), (0,), (5,), (4, 3), (2, 3, 4)):
        spec = Input(dtype, shape, "any", layout)
        theirs, ours = make(spec), make(spec, "cpu")
        assert ours.shape == theirs.shape == shape and ours.dtype == dtype
        name = theirs.dtype.name
        assert difference(to_host(ours), Leaf(theirs, name)) is None


def test_layouts_are_what_they_say():
    for device in (None, "cpu"):
        strides = {layout: make(Input("float32", (4, 6), "any", layout), device).strides for layout in LAYOUTS}
        assert strides["contiguous"] == strides["offset"] == strides["unaligned"] == (24, 4)
        assert strides["strided"] == (48, 8) and strides["reversed"] == (24, -4) and strides["gapped"] == (36, 4)
        assert strides["broadcast"] == (0, 4) and strides["transposed"] == (4, 16)


@pytest.mark.parametrize(
    ("got", "want", "ulps", "loose", "same"),
    [
        ([1.0, np.nan], [1.0, -np.nan], 0, False, True),
        ([0.0], [-0.0], 0, False, False),
        ([0.0], [-0.0], 0, True, True),
        ([0.0], [-0.0], 1, False, True),
        ([1.0], [np.nextafter(1.0, 2)], 0, False, False),
        ([1.0], [np.nextafter(1.0, 2)], 1, False, True),
        ([1.0], [1.0 + 3 * 2.0**-52], 2, False, False),
        ([-5e-324], [5e-324], 2, False, True),
        ([-5e-324], [5e-324], 1, False, False),
        ([np.inf], [np.finfo(float).max], 0, False, False),
        ([np.inf], [np.finfo(float).max], 8, False, True),
        ([np.inf], [np.finfo(float).max * (1 - 2.0**-40)], 8, False, False),
        ([np.inf], [-np.inf], 8, False, False),
        ([np.nan], [1.0], 8, False, False),
        ([1.0], [-1.0], 1e9, False, False),
        ([1 + 1e-17j], [1 + 0j], 1, False, True),
        ([1 + 1e-17j], [1 + 0j], 0, False, False),
        ([complex(np.nan, 1)], [complex(np.nan, 2)], 4, False, True),
        ([complex(np.nan, 1)], [complex(np.nan, np.inf)], 4, False, False),
        ([complex(np.nan, np.inf)], [complex(-np.inf, np.inf)], 4, False, True),
        ([complex(np.nan, np.inf)], [complex(-np.inf, np.inf)], 0, True, False),
        ([complex(np.inf, 0)], [complex(1, np.nan)], 4, False, False),
        ([complex(np.nan, 1)], [complex(2, np.nan)], 0, True, True),
        ([3], [4], 4, False, False),
    ],
)
def test_rules_of_comparison(got, want, ulps, loose, same):
    leaves = [Leaf(np.array(x), str(np.array(x).dtype)) for x in (got, want)]
    assert (difference(*leaves, ulps, loose) is None) is same


def test_an_error_may_be_measured_by_the_size_of_the_operands():
    got, want = (Leaf(np.array([x]), "float64") for x in (3e-15, 2e-15))
    assert difference(got, want, 8) is not None
    assert difference(got, want, 8, size=np.array([3.0])) is None
    assert difference(got, want, 1, size=np.array([3.0])) is not None
    assert difference(got, want, 8, size=np.array([np.inf])) is not None


def test_read_only_halves_stay_read_only():
    halves = Case("sorting", "x.sort()\nx", (("x", Input("float16", (4, 3), "any", "broadcast")),), 4)
    assert run(halves, "host") == ([], 1)


def test_shapes_dtypes_and_exceptions_are_compared():
    x = np.arange(6.0)
    assert "shape" in difference(Leaf(x, "float64"), Leaf(x.reshape(2, 3), "float64"))
    assert "dtype" in difference(Leaf(x.astype("f4"), "float32"), Leaf(x, "float64"))
    assert "2 results" in difference((Leaf(x, "float64"),), (Leaf(x, "float64"),) * 2)
    assert compare(Raised("TypeError", "a"), Raised("TypeError", "b"), 0) is None
    assert "raised" in compare(Raised("TypeError", "a"), Raised("ValueError", "b"), 0)
    assert "raised" in compare(Raised("TypeError", "a"), Leaf(x, "float64"), 0)


def test_rounding_to_bfloat16():
    values = np.array([1.0, 1.00390625, 1.01171875, np.inf, np.nan, -0.0, 3.4e38], "f4")
    assert (
        round_to_bfloat16(values).tobytes() == np.array([1, 1, 1.015625, np.inf, np.nan, -0.0, np.inf], "f4").tobytes()
    )


def test_a_wrong_result_is_found_and_its_reproducer_runs():
    case = Case("sorting", "xp.sort(x)", (("x", Input("int32", (9,))),), 9, "np.sort(x)[::-1]")
    ((against, message),), made = run(case, "cpu", KNOWN)
    assert against == "the host against NumPy" and "elements differ" in message and made == 2
    assert run_python(reproducer(case, "cpu"), cwd=ROOT).stdout.count("[") == 3


def test_known_differences_are_of_cases_that_exist(cases):
    for entry in KNOWN:
        assert any(known_difference(case, (entry,)) for case in cases), entry


def test_every_dtype_takes_part_in_every_kind_of_function(cases):
    for family in ("ufuncs", "copies", "reductions", "scans", "sorting", "scatters", "products", "manipulation"):
        assert {spec.dtype for case in cases if case.family == family for _, spec in case.inputs} == set(DTYPES)
    assert set(COMPLEX) < set(DTYPES)
