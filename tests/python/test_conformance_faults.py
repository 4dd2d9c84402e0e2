"""The kit finds every fault that is planted in a fake library, and nothing in the sound one."""

import pytest
from dlbridge.tests import _patience, check_consumer, check_producer

pytest.importorskip("numpy", reason="the fake library is made of NumPy")
pytestmark = pytest.mark.no_sanitizer  # the faults are real: wild strides and wild deletes are followed

# fault, part of the id of the check that must find it
PRODUCER_FAULTS = [
    ("drops_readonly", "dlpack.versioned.readonly-flag"),
    ("no_is_copied", "copy.true-flag[float32-2x3-C]"),
    ("strides_in_bytes", "versioned.values[float32-2x3-C]"),
    ("floors_strides", "versioned.inexpressible-strides"),
    ("bool_as_uint8", "versioned.dtype[bool-2x3-C]"),
    ("bool_as_bit", "legacy.dtype[bool-2x3-C]"),
    ("complex_as_halves", "versioned.dtype[complex64-2x3-C]"),
    ("wrong_byte_offset", "legacy.values[float32-2x3-C]"),
    ("wrong_device_in_struct", "versioned.device[float32-2x3-C]"),
    ("wrong_device_tuple", "device.tuple"),
    ("device_list", "device.tuple"),
    ("device_id_none", "device.tuple"),
    ("major_2", "versioned.version"),
    ("null_strides", "versioned.strides[float32-2x3-C]"),
    ("strange_flag", "versioned.flags[float32-2x3-C]"),
    ("never_frees", "versioned.leak-consumed"),
    ("never_frees", "legacy.leak-consumed"),
    ("no_destructor", "legacy.leak-unconsumed"),
    ("deletes_consumed", "versioned.consumed-capsule"),
    ("deletes_consumed", "legacy.consumed-capsule"),
    ("memory_dies", "versioned.outlives"),
    ("legacy_despite_max_version", "call.max-version[(1, 0)]"),
    ("versioned_without_max_version", "call.max-version[None]"),
    ("wrong_capsule_name", "call.plain"),
    ("ignores_device", "call.unknown-device[(9999, 0)]"),
    ("ignores_stream", "call.cpu-stream[1]"),
    ("ignores_copy_true", "copy.true[float32-2x3-C]"),
    ("ignores_copy_false", "copy.false[float32-2x3-C]"),
    ("copies_strided_despite_false", "copy.false[float32-4x6-strided]"),
    ("copies_strided_despite_false", "copy.false[int16-4x6-F]"),
    ("zeros_for_a_strided_copy", "copy.true[float32-4x6-strided]"),
    ("readonly_copies", "copy.true[float32-2x3-C-readonly]"),
    ("readonly_copies", "copy.true[float32-4x6-strided-readonly]"),
    ("scratch", "legacy.independent"),
    ("scratch", "versioned.independent"),
    ("scratch_for_copies", "copy.true-independent"),
    ("interface_of_a_temporary", "array_interface.lifetime"),
    ("struct_of_a_temporary", "array_interface.struct-lifetime"),
    ("interface_scratch", "array_interface.independent"),
    ("buffer_scratch", "buffer.independent"),
    ("buffer_suboffsets", "buffer.suboffsets[float32-2x3-C]"),
    ("buffer_leaks", "buffer.leak"),
    ("buffer_leaves_obj", "buffer.refused-view"),
    ("exports_foreign_order", "versioned.inexpressible[>i4]"),
    ("refuses_with_value_error", "legacy.inexpressible[>f8]"),
    ("interface_byte_order", "array_interface.values[float32-2x3-C]"),
    ("interface_byte_order", "array_interface.typestr[int32-2x3-C]"),
    ("interface_strides_in_elements", "array_interface.values[int16-4x6-strided]"),
    ("interface_drops_readonly", "array_interface.readonly"),
    ("interface_data_list", "array_interface.data[float32-2x3-C]"),
    ("interface_no_version", "array_interface.version"),
    ("interface_shape_list", "array_interface.shape[float32-2x3-C]"),
    ("struct_always_writeable", "struct-flags[float32-2x3-C-readonly]"),
    ("struct_always_contiguous", "struct-flags[int16-4x6-strided]"),
    ("struct_two_is_three", "struct-fields[float32-2x3-C]"),
    ("cuda_stream_0", "cuda.stream["),
    ("cuda_typestr", "cuda.typestr[float32-2x3-C]"),
    ("cuda_null_data", "cuda.null-data[float32-0-C]"),
    ("cuda_drops_readonly", "cuda.readonly[float32-2x3-C-readonly]"),
    ("cuda_version", "cuda.version"),
    ("cuda_mask", "cuda.mask"),
    ("cuda_and_host", "cuda.device-array"),
    ("buffer_ignores_writable", "refuses-writable-simple-of-readonly"),
    ("buffer_ignores_contiguity", "refuses-simple-of-strided"),
    ("buffer_wrong_format", "buffer.format[float32-2x3-C]"),
    ("buffer_wrong_len", "buffer.sizes[float32-2x3-C]"),
    ("buffer_drops_readonly", "buffer.readonly[float32-2x3-C-readonly]"),
    ("buffer_fills_everything", "buffer.null-fields[float32-2x3-C]"),
    ("buffer_no_strides", "buffer.values[int16-4x6-strided]"),
]

EXCHANGE_FAULTS = [
    ("exchange_wrong_name", "exchange.functions"),
    ("exchange_is_an_integer", "exchange.functions"),
    ("exchange_null_function", "exchange.functions"),
    ("exchange_major_2", "exchange.version"),
    ("exchange_circular_chain", "exchange.version"),
    ("exchange_on_instance", "exchange.on-type"),
    ("exchange_moving_table", "exchange.on-type"),
    ("exchange_drops_readonly", "exchange.readonly"),
    ("exchange_managed_major_2", "exchange.managed[float32-2x3-C]"),
    ("exchange_borrows_another_dtype", "exchange.borrowed[float32-2x3-C]"),
    ("exchange_never_frees", "exchange.leak"),
    ("exchange_makes_another_type", "exchange.round-trip"),
    ("exchange_to_object_leaks", "exchange.round-trip"),
    ("exchange_scratch", "exchange.independent"),
    ("exchange_stream_fails", "exchange.work-stream"),
    ("exchange_allocates_reversed", "exchange.allocates[float32-0x3-C]"),
    ("exchange_allocator_is_silent", "exchange.allocator-fails"),
]

CONSUMER_FAULTS = [
    ("takes_consumed", "versioned.capsule-name[used_dltensor_versioned]"),
    ("takes_consumed", "legacy.second-time"),
    ("takes_any_name", "legacy.capsule-name[tensor]"),
    ("never_renames", "versioned.renames"),
    ("never_deletes", "legacy.values[float32-2x3-C]"),
    ("deletes_twice", "versioned.values[float32-2x3-C]"),
    ("deletes_at_once", "versioned.alive"),
    ("deletes_before_renaming", "legacy.foreign-device[2]"),
    ("leaks_on_error", "legacy.odd-dtype[0-24-1]"),
    ("ignores_byte_offset", "versioned.byte-offset"),
    ("misreads_null_strides", "legacy.null-strides"),
    ("strides_in_bytes", "versioned.values[float32-2x3-C]"),
    ("ignores_strides", "versioned.values[int16-4x6-strided]"),
    ("counts_size_one_strides", "legacy.wild-strides-of-one"),
    ("refuses_empty", "legacy.empty-null-data"),
    ("takes_major_2", "versioned.major-error"),
    ("refuses_minor_99", "versioned.minor-99"),
    ("drops_readonly", "dlpack.versioned.readonly"),
    ("bool_as_uint8", "versioned.values[bool-2x3-C]"),
    ("guesses_dtype", "legacy.odd-dtype[0-24-1]"),
    ("ignores_lanes", "versioned.odd-dtype[2-32-4]"),
    ("takes_any_device", "legacy.foreign-device[2]"),
    ("asks_no_version", "calls.max-version"),
    ("version_list", "calls.max-version-form"),
    ("passes_stream", "calls.stream"),
    ("no_retry", "calls.old-producer"),
    ("exports_twice", "calls.one-export"),
    ("swallows_errors", "calls.buffer-error"),
    ("copies_anyway", "calls.copy-false-shares[float32-2x3-C]"),
    ("any_copies_anyway", "calls.copy-false-shares[float32-2x3-C]"),
    ("copies_strided", "calls.copy-false-shares[float32-4x6-strided]"),
    ("copies_anyway", "calls.copy-false-of-old[float32-2x3-C]"),
    ("ignores_copy_keyword", "calls.copy-true-copies[float32-2x3-C]"),
    ("any_ignores_copy_keyword", "calls.copy-true"),
    ("forgets_copy_of_old", "calls.copy-true-of-old[float32-2x3-C]"),
    ("exchange_ignores_table_version", "exchange.newer-table"),
    ("exchange_takes_any_name", "exchange.wrong-name"),
    ("exchange_leaks", "exchange.plain"),
    ("deletes_twice", "exchange.plain"),
    ("drops_readonly", "exchange.readonly"),
    ("interface_ignores_mask", "array_interface.mask"),
    ("interface_ignores_byte_order", "array_interface.swapped[int32]"),
    ("interface_ignores_strides", "array_interface.values[float32-4x6-strided]"),
    ("interface_ignores_offset", "array_interface.data-object-offset"),
    ("interface_drops_readonly", "array_interface.readonly"),
    ("interface_forgets_producer", "array_interface.kept-alive"),
    ("interface_reads_beyond", "malformed[buffer-too-short]"),
    ("buffer_never_releases", "buffer.values[float32-2x3-C]"),
    ("buffer_releases_at_once", "buffer.locks"),
    ("buffer_ignores_itemsize", "buffer.format[itemsize-too-large]"),
    ("buffer_ignores_byte_order", "buffer.format[big-int]"),
    ("buffer_ignores_strides", "buffer.values[int16-4x6-strided]"),
    ("buffer_drops_readonly", "buffer.readonly"),
    ("buffer_ignores_suboffsets", "buffer.suboffsets"),
    ("buffer_leaks_on_error", "buffer.format[unknown]"),
    ("buffer_leaks_on_error", "buffer.suboffsets"),
    ("interface_never_releases", "array_interface.data-object-released"),
]

CUDA_CONSUMER_FAULTS = [
    ("cuda_takes_stream_0", "cuda.refuses[stream-0]"),
    ("cuda_ignores_mask", "cuda.refuses[mask]"),
    ("cuda_drops_readonly", "cuda.readonly"),
]

# These end the process, or never end: only a process of their own can report them.
DEADLY_FAULTS = [
    ("aborts_on_negative_strides", "legacy.values[int16-4x6-reversed]", "SIGABRT"),
    ("calls_null_deleter", "legacy.null-deleter", "SIGSEGV"),
    # A crash, or, where much memory is mapped, no answer in time.
    ("reads_huge_ndim", "legacy.malformed[huge-ndim]", "SIGSEGV|no answer for 3 s"),
    ("hangs_on_broadcast", "legacy.values[int16-4x6-broadcast]", "no answer for 3 s"),
]


@pytest.fixture
def no_waiting(monkeypatch):
    """The fake library deletes at once; what it has not deleted by then it never will."""
    monkeypatch.setattr(_patience, "LIMIT_S", 0.05)


def names(rows):
    return pytest.mark.parametrize(
        ("fault", "check"), [pytest.param(*row, id=f"{row[0]}-{row[1].split('[')[0]}") for row in rows]
    )


def assert_found(report, check):
    found = [result for result in report.results if result.outcome == "failed" and check in result.id]
    assert found, report.text(verbose=True)
    assert all(result.clause and result.source and result.expected and result.got for result in found)


def assert_sound(report):
    assert report.exit_code == 0, report.text()
    assert not report.having("failed"), report.text()


def kind(fault):
    return {"device": "cuda"} if fault.startswith("cuda") else {}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # NumPy's, of a capsule renamed
@names(PRODUCER_FAULTS)
def test_fault_of_a_producer_is_found(fault, check):
    name = f"conformance_fake_producer:make_{fault}"
    assert_found(check_producer(name, only=[check], isolate=False, **kind(fault)), check)


def test_what_cpythons_own_bytes_do_is_no_more_than_a_should():
    report = check_producer(
        "conformance_fake_producer:make_buffer_leaves_obj", only=["buffer.refused-view"], isolate=False
    )
    assert [result.severity for result in report.having("failed")] == ["should"], report.text()
    assert report.exit_code == 0


@names(EXCHANGE_FAULTS)
def test_fault_of_an_exchange_table_is_found(fault, check):
    assert_found(check_producer(f"conformance_fake_exchange:make_{fault}", only=[check], isolate=False), check)


@pytest.mark.usefixtures("no_waiting")
@names(CONSUMER_FAULTS)
def test_fault_of_a_consumer_is_found(fault, check):
    assert_found(check_consumer(f"conformance_fake_consumer:take_{fault}", only=[check], isolate=False), check)


@names(CUDA_CONSUMER_FAULTS)
def test_fault_of_a_cuda_consumer_is_found(fault, check):
    assert_found(check_cuda(fault, only=[check]), check)


def check_cuda(fault, **options):
    import conformance_fake_consumer as fakes

    return check_consumer(
        getattr(fakes, f"take_{fault}" if fault.startswith("cuda") else f"take_cuda_{fault}"),
        protocols=["cuda_array_interface"],
        cuda_memory=fakes.lend,
        isolate=False,
        **options,
    )


@pytest.mark.parametrize(("fault", "check", "said"), DEADLY_FAULTS, ids=[row[0] for row in DEADLY_FAULTS])
def test_crash_or_hang_is_found_and_the_rest_goes_on(fault, check, said):
    after = "dlpack.versioned.minor-99"
    report = check_consumer(
        f"conformance_fake_consumer:take_{fault}", only=[check, after], isolate=True, timeout=3, protocols=["dlpack"]
    )
    outcomes = {result.id: result for result in report.results}
    assert outcomes[f"dlpack.{check}"].outcome == "failed"
    assert any(words in outcomes[f"dlpack.{check}"].got for words in said.split("|"))
    assert outcomes[after].outcome == "passed", report.text()
    assert report.exit_code == (0 if outcomes[f"dlpack.{check}"].severity == "should" else 1)


@pytest.mark.parametrize("name", ["sound", "sound_buffer", "cuda_sound"])
def test_nothing_is_found_in_a_sound_producer(name):
    report = check_producer(f"conformance_fake_producer:make_{name}", **kind(name))
    assert_sound(report)
    assert len(report.having("passed")) > 150


def test_nothing_is_found_in_a_sound_exchange_table():
    report = check_producer("conformance_fake_exchange:make_sound", protocols=["dlpack_exchange"])
    assert_sound(report)
    assert len(report.having("passed")) > 90


def test_nothing_is_found_in_a_sound_consumer():
    report = check_consumer("conformance_fake_consumer:take_sound")
    assert_sound(report)
    assert len(report.having("passed")) > 300
    assert_sound(check_cuda("sound"))


def test_a_refusal_after_the_import_is_no_leak():
    """The traceback of the refusal keeps the frame in which the consumer has the array: it must be gone first."""
    report = check_consumer("conformance_fake_consumer:take_refuses_late")
    wrong = [result for result in report.having("failed") if "deleter" in result.expected or "view" in result.expected]
    assert not wrong, report.text()
    assert any("only arrays of shape (2, 3)" in result.got for result in report.having("skipped"))


def test_what_any_keyword_reaches_is_checked():
    """`def f(x, **options)` may take copy=, and is asked."""
    report = check_consumer("conformance_fake_consumer:take_any_sound", only=["calls.copy-"])
    assert_sound(report)
    assert len(report.having("passed")) > 15, report.text(verbose=True)


def test_enough_faults_of_every_protocol():
    rows = PRODUCER_FAULTS + EXCHANGE_FAULTS + CONSUMER_FAULTS + CUDA_CONSUMER_FAULTS
    assert len({fault for fault, _ in rows}) >= 20
    for protocol in ("exchange.", "array_interface.", "cuda.", "buffer."):
        assert any(check.startswith(protocol) for _, check in rows)
