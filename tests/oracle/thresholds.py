"""The sizes at which the kernels change their route, read from the constants of the sources.

A size that is written down a second time in a test goes stale in silence. So the constants are listed here by name
only, each with its unit; their values come from the sources when the driver runs. A name that is gone, or a new one
that could be a threshold and that no list knows, is an error.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    "ndarray/core/*.h",
    "ndarray/core/*.cpp",
    "ndarray/kernels/api.h",
    "ndarray/kernels/cuda/*.h",
    "ndarray/kernels/cuda/*.cu",
    "ndarray/kernels/cuda/*.cuh",
    "ndarray/kernels/functors/*.h",
    "ndarray/kernels/host/*.h",
    "ndarray/kernels/host/*.cpp",
    "ndarray/kernels/random/*.h",
)

ELEMENTS, BYTES, VECTORS = "elements", "bytes", "vectors of 16 bytes"

# Family of functions: the constants whose neighbours are tried as sizes, with what each of them counts.
THRESHOLDS: dict[str, dict[str, str]] = {
    "elementwise": {
        "core/elementwise.cpp:kMostApart": ELEMENTS,
        "core/elementwise.cpp:kMostBytes": BYTES,
        "core/fill.cpp:kMostBytes": BYTES,
        "core/ready.h:kPart": ELEMENTS,
        "core/rearrange.cpp:kRolledAtOnce": ELEMENTS,
        "core/generated_loop.cpp:kVectorBytes": BYTES,
        "core/join.cpp:kFewBytes": BYTES,
        "core/join.cpp:kFewOnHost": ELEMENTS,
        "core/join.cpp:kShortPiece": BYTES,
        "cuda/dense.cu:kThreads": VECTORS,
        "cuda/elementwise.cu:kTileSize": ELEMENTS,
        "cuda/elementwise.cu:kTiledFrom": ELEMENTS,
        "cuda/elementwise_types.cuh:kBlockThreads": VECTORS,
        "cuda/range.cu:kVectors": VECTORS,
        "cuda/reduce_plan.h:kVectorBytes": BYTES,
        "host/bits.cpp:kVector": BYTES,
        "host/copy.cpp:kFewGathered": ELEMENTS,
        "host/copy.cpp:kFewRepeated": ELEMENTS,
        "host/copy.cpp:kGathered": ELEMENTS,
        "host/copy.cpp:kRepeatedBytes": BYTES,
        "host/elementwise.cpp:kChunk": ELEMENTS,
        "host/elementwise.cpp:kPackedRow": ELEMENTS,
        "host/elementwise.cpp:kTileSize": ELEMENTS,
        "host/elementwise_arithmetic.cpp:kDividerPays": ELEMENTS,
        "host/elementwise.cpp:kTiledFrom": ELEMENTS,
        "host/elementwise_math.cpp:kMoved": ELEMENTS,
        "host/inner_loop.h:kDenseBlock": ELEMENTS,
        "host/range.cpp:kCounted": ELEMENTS,
        "host/vector_math.h:kBlock": ELEMENTS,
        "host/vector_math.h:kGrain": ELEMENTS,
    },
    "transpose": {
        "cuda/transpose.cu:kLeastExtent": ELEMENTS,
        "host/copy.cpp:kPart": ELEMENTS,
        "host/vector_math.h:kBlock": ELEMENTS,
        "host/vector_math.h:kGrain": ELEMENTS,
    },
    "reduction": {
        "cuda/reduce_accumulators.cuh:kWarp": ELEMENTS,
        "cuda/reduce_plan.h:kBlockRowVectors": VECTORS,
        "cuda/reduce_plan.h:kLongNarrowRow": BYTES,
        "cuda/reduce_plan.h:kLongRowVectors": VECTORS,
        "cuda/reduce_plan.h:kReduceThreads": ELEMENTS,
        "cuda/reduce_plan.h:kSplitBytes": BYTES,
        "cuda/reduce_plan.h:kTileBytes": BYTES,
        "cuda/reduce_plan.h:kTinyRowBytes": BYTES,
        "host/reduce_loops.h:kRowsTogether": ELEMENTS,
        "host/reduce_runs.h:kByteLanes": ELEMENTS,
        "host/reduce_columns.h:kCastRowBytes": BYTES,
        "host/reduce_columns.h:kCastRows": ELEMENTS,
        "host/reduce_loads.h:kColumnBytes": BYTES,
        "host/reduce_columns.h:kColumnLeaf": ELEMENTS,
        "host/reduce_columns.h:kColumnRows": ELEMENTS,
        "host/reduce_runs.h:kExactLeaf": ELEMENTS,
        "host/reduce_runs.h:kFirstFetched": ELEMENTS,
        "host/reduce_search.h:kLong": ELEMENTS,
        "host/reduce_runs.h:kLongBytes": BYTES,
        "host/reduce_search.h:kMany": ELEMENTS,
        "host/reduce_runs.h:kMomentLanes": ELEMENTS,
        "host/reduce_loads.h:kReduceBatch": ELEMENTS,
        "host/reduce_runs.h:kReduceLeaf": ELEMENTS,
        "host/reduce_search.h:kManyPlaces": ELEMENTS,
        "host/reduce_search.h:kMostPlaces": ELEMENTS,
        "host/reduce_search.h:kRunBytes": BYTES,
        "host/reduce_search.h:kSearchBytes": BYTES,
        "host/reduce_search.h:kSearched": ELEMENTS,
    },
    "scan": {
        "cuda/scan.cuh:kScanThreads": ELEMENTS,
        "cuda/scan.cuh:kScanWarp": ELEMENTS,
        "cuda/scan_kernels.cuh:kColumnChunk": ELEMENTS,
        "cuda/scan_kernels.cuh:kScanTile": ELEMENTS,
        "cuda/scan_kernels.cuh:kThreadsPerMultiprocessor": ELEMENTS,
        "cuda/scan_kernels.cuh:kTiledFewRow": ELEMENTS,
        "cuda/scan_kernels.cuh:kTiledRow": ELEMENTS,
        "host/scan.cpp:kChunk": ELEMENTS,
    },
    "sort": {
        "core/sorting.cpp:kSortedAtOnce": ELEMENTS,
        "cuda/sort.cu:kRowAlone": ELEMENTS,
        "cuda/sort.cuh:kBlockSortItems": ELEMENTS,
        "cuda/sort.cuh:kWideBlockSortItems": ELEMENTS,
        "cuda/sort_block.cu:kAlone": ELEMENTS,
        "host/key_loops.h:kAtOnce": ELEMENTS,
        "host/sort.cpp:kAtOnce": ELEMENTS,
        "host/sort.cpp:kCountPairs": ELEMENTS,
        "host/sort.cpp:kManyBytes": ELEMENTS,
        "host/sort.cpp:kManyPairs": ELEMENTS,
        "host/sort.cpp:kWidened": ELEMENTS,
        "host/sort.h:kBlock": ELEMENTS,
        "host/sort.h:kBuckets": ELEMENTS,
        "host/sort.h:kLookAt": ELEMENTS,
        "host/sort.h:kRadixFrom": ELEMENTS,
        "host/sort.h:kSelectFrom": ELEMENTS,
        "host/sort_order.cpp:kSpreadFrom": ELEMENTS,
        "host/sort_order.cpp:kThreeDigits": ELEMENTS,
        "host/sort_order.cpp:kTiny": ELEMENTS,
        "host/sort_order.cpp:kTwoDigits": ELEMENTS,
    },
    "index": {
        "cuda/index_combine_few.cu:kBlockValues": ELEMENTS,
        "cuda/index_combine_few.cu:kSumsBytes": BYTES,
        "cuda/index_combine.cu:kFewPlaces": ELEMENTS,
        "cuda/index_combine_sorted.cu:kBlockTile": ELEMENTS,
        "cuda/index_combine_sorted.cu:kTile": ELEMENTS,
        "cuda/index_last.cu:kFew": ELEMENTS,
        "cuda/index_loop.cuh:kIndexThreads": ELEMENTS,
        "cuda/index_order.cu:kTablePays": ELEMENTS,
        "cuda/nonzero.cu:kScanThreads": ELEMENTS,
        "cuda/nonzero.cu:kTile": ELEMENTS,
        "cuda/runs.cu:kTile": ELEMENTS,
        "cuda/search.cu:kKeptBytes": BYTES,
        "cuda/sort.cuh:kBlockSortItems": ELEMENTS,
        "cuda/sort.cuh:kWideBlockSortItems": ELEMENTS,
        "core/indexing.cpp:kCached": BYTES,
        "core/indexing.cpp:kRun": ELEMENTS,
        "core/rows.cpp:kFewRuns": ELEMENTS,
        "host/index.cpp:kPlaces": ELEMENTS,
        "host/index.cpp:kRun": ELEMENTS,
        "host/interpolate.cpp:kNext": ELEMENTS,
        "host/interpolate.cpp:kSearched": ELEMENTS,
        "core/index_line.cpp:kMaskPart": ELEMENTS,
        "core/nonzero.cpp:kFewElements": ELEMENTS,
        "host/nonzero.cpp:kCounters": ELEMENTS,
        "host/nonzero.cpp:kGroup": ELEMENTS,
        "core/views.cpp:kSmallRoom": BYTES,
        "host/runs.cpp:kBlock": ELEMENTS,
        "host/positions.cpp:kFewCounts": ELEMENTS,
        "host/rows.cpp:kBlockBytes": BYTES,
        "host/rows.cpp:kFewRows": ELEMENTS,
        "host/rows.cpp:kGroup": ELEMENTS,
        "host/rows.cpp:kPart": ELEMENTS,
        "host/rows.cpp:kShortRow": BYTES,
        "host/search.cpp:kBlock": ELEMENTS,
        "host/search.cpp:kInPart": ELEMENTS,
        "host/search.cpp:kKeptKeys": ELEMENTS,
        "host/search.cpp:kParts": ELEMENTS,
        "host/search.cpp:kShortRow": ELEMENTS,
        "host/search.cpp:kSteps": ELEMENTS,
    },
    "random": {
        "cuda/random.cu:kPerBlock": ELEMENTS,
        "host/philox_lanes.h:kLanes": ELEMENTS,
    },
    "product": {
        "core/linear.cpp:kFew": ELEMENTS,
        "cuda/matmul.cu:kDepth": ELEMENTS,
        "cuda/matmul.cu:kTile": ELEMENTS,
        "cuda/matrix_vector.cu:kEnoughBlocks": ELEMENTS,
        "cuda/matrix_vector.cu:kThreads": ELEMENTS,
        "host/correlate.cpp:kTogether": ELEMENTS,
        "host/matmul.cpp:kColumnBlock": ELEMENTS,
        "host/matmul.cpp:kDepthBlock": ELEMENTS,
        "host/matmul.cpp:kFirstPairs": ELEMENTS,
        "host/matmul.cpp:kRowBlock": ELEMENTS,
        "host/matmul.cpp:kSomeRows": ELEMENTS,
        "host/matmul.cpp:kWidePairs": ELEMENTS,
        "host/thin_products.cpp:kLanes": ELEMENTS,
    },
    "matrix": {
        "cuda/small_matrices.cu:kFewRows": ELEMENTS,
        "cuda/small_matrices.cu:kManyRows": ELEMENTS,
        "cuda/small_matrices.cu:kNarrowRows": ELEMENTS,
        "cuda/small_matrices.cu:kWarpRows": ELEMENTS,
        "functors/small_matrix.h:kMatrixRows": ELEMENTS,
    },
    "large": {  # reached by the few arrays of two gigabytes and more
        "cuda/elementwise_launch.h:kPartLimit": BYTES,
        "cuda/index.cu:kMost32": BYTES,
    },
}

# Constants that look like thresholds and are none, by the reason.
NO_THRESHOLD: dict[str, str] = {
    "codes and versions": """kernels/api.h:kErrorMemory kernels/api.h:kErrorIndex cuda/cublas.cu:kCompute32
        cuda/cublas.cu:kNoReducedReduction""",
    "numbers of dims, operands and index arrays, which the tests of the functions reach": """
        core/indexing.h:kMaxIndexItems kernels/api.h:kMaxIndexArrays
        kernels/api.h:kJoinedParts functors/loop.h:kTiledDims""",
    "allocations and caches": """cuda/cublas.cu:kMostDevices cuda/cublas.cu:kWorkspaceBytes
        cuda/launch.cuh:kDevices""",
    "numbers that no array reaches, or past which nothing is counted": "cuda/index_loop.cuh:kMostPositions",
    "tables by dtype": "core/promotion.h:kTableSize functors/op_groups.h:kDTypeSlots",
    "tables of numbers, and samples": "host/exp_log.cpp:kIntervals host/sort_order.cpp:kSample",
    "of the random numbers, whose values the tests of the distributions reach": """random/binomial.h:kMostSteps
        random/counts.h:kMostSteps random/philox.h:kMultiplier0 random/philox.h:kMultiplier1
        random/variates.h:kSecond""",
    "properties of types and masks of bits": """cuda/reduce_accumulators.cuh:kAll cuda/reduce_load.cuh:kBytes
        cuda/lanes.cuh:kAllLanes functors/packed_bytes.h:kHigh functors/divider.h:kBits functors/reduction.h:kWords
        cuda/sort_radix.cuh:kBits host/exp_log.cpp:kMantissa functors/float_form.h:kMantissa
        functors/dense.h:kEachByte functors/dense.h:kLow host/elementwise_logic.cpp:kLast
        functors/half_bits.h:kSign functors/dense.h:kFarthest host/float_parts.cpp:kEnough host/random.cpp:kLow
        host/sort.cpp:kValues""",
    "widths of a block that other constants multiply": """cuda/elementwise_vector.cuh:kAll
        host/vector_sort_lanes.h:kCount host/vector_sort_lanes.h:kMaxColumn host/vector_sort_quick.h:kFew
        cuda/index_combine_few.cu:kMostBlocks cuda/index_combine_few.cu:kWarp cuda/index_combine_sorted.cu:kWarp
        cuda/triangle.cu:kThreads cuda/wide_writes.cuh:kElements cuda/wide_writes.cuh:kWriters
        cuda/matmul.cu:kRow cuda/matmul.cu:kSide cuda/matmul.cu:kThreads
        cuda/matrix_vector.cu:kWarp cuda/nonzero.cu:kBytesPerThread cuda/nonzero.cu:kThreads cuda/block_sums.cuh:kWarp
        cuda/multinomial.cu:kThreads cuda/random.cu:kThreads cuda/scan_kernels.cuh:kLongRowBlocks
        cuda/runs.cu:kThreads cuda/search.cu:kThreads
        cuda/small_matrices.cu:kMostThreads cuda/small_matrices.cu:kWarp cuda/sort.cu:kThreads
        cuda/sort.cuh:kPieces cuda/sort_radix_float.cu:kThreads host/copy.cpp:kVector host/random.cpp:kBatch
        host/reduce_columns.h:kWide""",
    "of many short rows: elementwise.short_rows()": """host/copy.cpp:kBlockBytes host/copy.cpp:kEnoughRows
        host/elementwise.cpp:kBlockBytes host/elementwise.cpp:kShortRow""",
    "multiplications, of which the shapes of products have fewer and more": (
        "host/blas.h:kBlasDotFrom host/blas.h:kBlasFrom host/blas.h:kBlasVectorFrom host/thin_products.cpp:kFewBools "
        "host/thin_products.cpp:kFewComplex host/thin_products.cpp:kFewDots host/thin_products.cpp:kFewFloats"
    ),
    "trials of a row, of which the tests of multinomial() have fewer and more": "random/multinomial.h:kFewTrials",
    "of matrices by their dtype, and of right sides: tests/python/nd/test_nd_small_matrices.py": """
        cuda/small_matrices.cu:kWithoutAsking functors/small_matrix.h:kFewestSides
        functors/small_matrix.h:kMatrixBytes functors/small_matrix.h:kSidesTogether""",
    "more elements than a test's memory holds": "cuda/sort.cu:kMostPositions",
}

_CONSTANT = re.compile(
    r"^(?P<indent> *)[^\n]*?\bconstexpr (?P<type>[\w:]+) (?P<name>k[A-Z]\w*)\s*=\s*(?P<value>[^;]+);", re.M
)
_SIZES = {"std::int64_t", "std::size_t", "std::uint32_t", "std::uint64_t"}
_COUNTS = {"int", "unsigned"}
_LEAST = 16  # smaller numbers are dims, operands, unrolled steps: every list of sizes has them


def _key(path: Path) -> str:
    return "/".join(path.parts[-2:])


@cache
def constants() -> dict[str, tuple[str, str]]:
    """Every constant of the sources by "folder/file:name": its type and its expression."""
    found = {}
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            for match in _CONSTANT.finditer(path.read_text(encoding="utf-8")):
                key = f"{_key(path)}:{match['name']}"
                if key not in found or not match["indent"]:  # that of the namespace before those of classes
                    found[key] = (match["type"], match["value"])
    return found


def _alike(one: str, other: str) -> int:
    """How many characters two names have in common at their beginnings."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def value_of(key: str, itemsize: int = 4) -> int | None:
    """The value of a constant, where a type's size stands in it for elements of `itemsize` bytes; None: no number."""
    file, name = key.split(":")
    known = constants()
    if key not in known:
        # That of the header whose name says that it belongs to the file: scan.cuh for scan_kernels.cuh.
        homes = sorted((k for k in known if k.endswith(f":{name}")), key=lambda k: -_alike(k, file))
        if not homes:
            return None
        key, file = homes[0], homes[0].split(":")[0]
    text = known[key][1].split(",")[0]
    if "::k" in text:  # a property of a template's parameter
        return None
    text = re.sub(r"sizeof\([^()]*\)", str(itemsize), text)
    text = re.sub(r"(?:static_cast<[\w:]+>|std::u?int\d+_t|std::size_t)", "", text)
    text = re.sub(r"(k[A-Z]\w*)<\w+>", r"\1", text)
    text = text.replace("{", "(").replace("}", ")").replace("/", "//")
    text = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text)
    for other in set(re.findall(r"\bk[A-Z]\w*", text)):
        number = value_of(f"{file}:{other}", itemsize)
        if number is None:
            return None
        text = re.sub(rf"\b{other}\b", str(number), text)
    if not re.fullmatch(r"(0x[\da-fA-F]+|[\d\s()+*/<>|&~-])+", text):
        return None
    return int(eval(text))


def looks_like_a_threshold(key: str) -> bool:
    kind = constants()[key][0]
    value = value_of(key)
    return value is not None and value >= _LEAST and kind in (_SIZES | _COUNTS)


def faults() -> list[str]:
    """What the lists above and the sources disagree about."""
    listed = {key for names in THRESHOLDS.values() for key in names}
    dismissed = {key for names in NO_THRESHOLD.values() for key in names.split()}
    found = []
    for key in sorted(listed | dismissed | set(constants())):
        if key not in constants():
            found.append(f"{key} is listed in tests/oracle/thresholds.py, but the sources have no such constant")
        elif key in listed and value_of(key) is None:
            found.append(f"{key} is listed as a threshold, but its value cannot be read")
        elif key not in listed | dismissed and looks_like_a_threshold(key):
            found.append(f"{key} is new: list it under THRESHOLDS or NO_THRESHOLD of tests/oracle/thresholds.py")
    return found + [f"{key} is listed twice" for key in sorted(listed & dismissed)]


def sizes(family: str, itemsize: int = 4, most: int = 1 << 18) -> list[int]:
    """The sizes around every threshold of a family, in elements, with the smallest ones; none above `most`."""
    found = {0, 1, 2, 3, 31, 33}
    for key, unit in THRESHOLDS[family].items():
        value = value_of(key, itemsize)
        if value is None:
            raise RuntimeError(f"thresholds: {key} has no value; see faults()")
        count = {ELEMENTS: value, BYTES: value // itemsize, VECTORS: value * 16 // itemsize}[unit]
        found.update((count - 1, count, count + 1))
    return sorted(n for n in found if 0 <= n <= most)
