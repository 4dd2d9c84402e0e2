"""Of Arrow, too, the kit finds every fault that is planted in a fake library, and nothing in the sound one."""

import pytest
from dlbridge.tests import check_consumer, check_producer
from dlbridge.tests.conformance import _tables
from test_conformance_faults import assert_found, assert_sound, names, no_waiting  # noqa: F401

pytest.importorskip("numpy", reason="the fake library is made of NumPy")
pytestmark = pytest.mark.no_sanitizer  # the faults are real: what was freed is used

# fault, part of the id of the check that must find it
PRODUCER_FAULTS = [
    ("wrong_name", "arrow.array.call"),
    ("list_of_capsules", "arrow.device.call"),
    ("released_already", "arrow.array.call"),
    ("same_capsules", "arrow.array.fresh"),
    ("no_requests", "arrow.array.requested-none"),
    ("no_requests", "arrow.stream.requested-none"),
    ("refuses_requests", "arrow.array.requested-own"),
    ("refuses_requests", "arrow.stream.requested-wider"),
    ("claims_the_request", "arrow.array.requested-wider"),
    ("takes_any_fields", "arrow.array.requested-fields"),
    ("takes_any_fields", "arrow.stream.requested-fields"),
    ("releases_request", "arrow.array.requested-released[own]"),
    ("takes_junk", "arrow.array.requested-junk[number]"),
    ("takes_junk", "arrow.array.requested-junk[name]"),
    ("takes_junk", "arrow.stream.requested-junk[string]"),
    ("takes_any_keyword", "arrow.device.keyword[1]"),
    ("no_requests", "arrow.device.keyword[None]"),
    ("no_destructor", "arrow.array.unconsumed"),
    ("no_destructor", "arrow.stream.unconsumed"),
    ("no_destructor", "arrow.device.unconsumed"),
    ("destroys_consumed", "arrow.array.consumed"),
    ("destroys_consumed", "arrow.device.consumed"),
    ("keeps_release", "arrow.array.marks-released"),
    ("stream_keeps_release", "arrow.stream.marks-released"),
    ("never_frees", "arrow.array.leak"),
    ("never_frees", "arrow.stream.leak"),
    ("lives_in_its_array", "arrow.array.outlives"),
    ("stream_owns_chunks", "arrow.stream.outlives"),
    ("forgets_children", "arrow.releases-children"),
    ("frees_moved_children", "arrow.moved-child"),
    ("schema_owns_array", "arrow.apart"),
    ("schema_of_another_type", "arrow.schema.call"),
    ("schema_of_another_name", "arrow.schema.call"),
    ("keeps_release", "arrow.schema.call"),
    ("stream_without_errors", "arrow.stream.callbacks"),
    ("stream_changes_schema", "arrow.stream.one-schema"),
    ("stream_starts_again", "arrow.stream.ends"),
    ("stream_keeps_release", "arrow.stream.unread"),
    ("error_of_noise", "arrow.stream.errors"),
    ("negative_error", "arrow.stream.errors"),
    ("device_99", "arrow.device.device"),
    ("dirty_reserve", "arrow.device.reserved"),
    ("event_on_the_host", "arrow.device.no-event"),
    ("unknown_format", "arrow.array.format[int32-5-C]"),
    ("no_format", "arrow.stream.format[int32-5-C]"),
    ("wrong_format", "arrow.array.dtype[int32-5-C]"),
    ("schema_too_few_children", "arrow.array.children[int32-3x2-C]"),
    ("schema_null_children", "arrow.array.children[int32-3x2-C]"),
    ("strange_flag", "arrow.array.flags[int32-5-C]"),
    ("ordered_without_dictionary", "arrow.array.flags[int32-5-C]"),
    ("unterminated_name", "arrow.array.name[int32-5-C]"),
    ("bad_metadata", "arrow.array.metadata[int32-5-C]"),
    ("two_extensions", "arrow.array.metadata[int32-5-C]"),
    ("float_indices", "arrow.array.dictionary[int32-5-C]"),
    ("stray_dictionary", "arrow.array.array-dictionary[int32-5-C]"),
    ("too_few_children", "arrow.array.array-children[int32-3x2-C]"),
    ("one_buffer", "arrow.array.n-buffers[int32-5-C]"),
    ("three_buffers", "arrow.array.n-buffers[int32-5-C]"),
    ("negative_length", "arrow.array.length[int32-5-C]"),
    ("negative_offset", "arrow.array.offset[int32-5-C]"),
    ("null_count_too_low", "arrow.array.null-count[int32-5-C]"),
    ("null_count_too_high", "arrow.array.null-count[int32-5-C]"),
    ("null_count_off_by_one", "arrow.array.null-count[int32-67-nulls]"),
    ("nulls_without_bitmap", "arrow.array.null-buffers[int32-5-C]"),
    ("no_data", "arrow.array.null-buffers[int32-5-C]"),
    ("no_data", "arrow.array.room[int32-5-C]"),
    ("short_child", "arrow.array.room[int32-3x2-C]"),
    ("falling_offsets", "arrow.array.offsets[int32-5-C]"),
    ("unaligned", "arrow.array.alignment[int32-5-C]"),
    ("loses_offset", "arrow.array.values[int32-67-offset]"),
    ("loses_bitmap", "arrow.array.values[int32-67-nulls]"),
    ("loses_bitmap", "arrow.stream.values[int32-67-nulls]"),
    ("stream_disagrees", "arrow.agrees-with-stream[int32-5-C]"),
    ("interface_disagrees", "arrow.agrees-with-array_interface[int32-5-C]"),
]

CONSUMER_FAULTS = [
    ("takes_nothing", "arrow.control"),
    ("ignores_offset", "arrow.array.values[int32-67-offset]"),
    ("ignores_bitmap", "arrow.stream.values[int32-67-nulls]"),
    ("bools_are_bytes", "arrow.device.values[bool-5-C]"),
    ("bools_are_numbers", "arrow.array.values[bool-5-C]"),
    ("stops_at_empty", "arrow.stream.empty-chunks"),
    ("needs_chunks", "arrow.stream.no-chunks"),
    ("never_releases", "arrow.array.values[int32-5-C]"),
    ("never_releases", "arrow.stream.values[int32-5-C]"),
    ("releases_twice", "arrow.array.values[int32-5-C]"),
    ("releases_children", "arrow.device.values[int32-3x2-C]"),
    ("releases_at_once", "arrow.array.values[int32-5-C]"),
    ("asks_for_errors", "arrow.stream.values[int32-5-C]"),
    ("calls_released_streams", "arrow.stream.values[int32-5-C]"),
    ("never_moves", "arrow.array.alive"),
    ("never_moves", "arrow.stream.alive"),
    ("releases_at_once", "arrow.device.alive"),
    ("trusts_null_count", "arrow.array.unknown-null-count"),
    ("pads_empty", "arrow.array.no-buffers"),
    ("takes_a_bitmap_for_nulls", "arrow.array.bitmap-without-nulls"),
    ("needs_name", "arrow.array.no-name"),
    ("refuses_metadata", "arrow.array.metadata"),
    ("minds_extensions", "arrow.array.unknown-extension"),
    ("forgets_list_offset", "arrow.array.offset-lists"),
    ("drops_readonly", "arrow.array.readonly"),
    ("requests_a_number", "arrow.array.requests"),
    ("passes_keywords", "arrow.device.requests"),
    ("swallows_errors", "arrow.stream.producer-error"),
    ("takes_any_name", "arrow.array.name-of-schema"),
    ("takes_any_name", "arrow.device.name-of-array"),
    ("takes_released", "arrow.array.released"),
    ("sorts_by_name", "arrow.array.swapped"),
    ("takes_anything", "arrow.array.one-capsule"),
    ("takes_anything", "arrow.stream.no-capsule"),
    ("guesses_format", "arrow.array.malformed[unknown-format]"),
    ("leaks_on_error", "arrow.array.malformed[unknown-format]"),
    ("guesses_format", "arrow.array.malformed[empty-format]"),
    ("guesses_format", "arrow.array.malformed[null-format]"),
    ("guesses_list_size", "arrow.array.malformed[no-list-size]"),
    ("guesses_list_size", "arrow.array.malformed[negative-list-size]"),
    ("assumes_children", "arrow.array.malformed[schema-without-children]"),
    ("assumes_children", "arrow.array.malformed[array-without-children]"),
    ("reads_beyond", "arrow.array.malformed[short-child]"),
    ("takes_negative", "arrow.array.malformed[negative-length]"),
    ("takes_negative", "arrow.array.malformed[negative-offset]"),
    ("caps_length", "arrow.array.malformed[huge-length]"),
    ("ignores_n_buffers", "arrow.array.malformed[one-buffer]"),
    ("zeros_for_null", "arrow.array.malformed[no-data]"),
    ("ignores_null_count", "arrow.array.malformed[too-many-nulls]"),
    ("ignores_null_count", "arrow.array.malformed[nulls-without-bitmap]"),
    ("ignores_stream_errors", "arrow.stream.fails[first-get_next]"),
    ("ignores_stream_errors", "arrow.stream.fails[second-get_next]"),
    ("ignores_stream_errors", "arrow.stream.fails[without-words]"),
    ("takes_schema_errors", "arrow.stream.fails[get_schema]"),
    ("leaks_on_error", "arrow.stream.fails[second-get_next]"),
    ("silent_errors", "arrow.stream.says-why"),
    ("takes_any_device", "arrow.device.foreign[4]"),
]

# Those that look at what others look at by the same lines.
_WITHOUT_CONTROL = {"agrees-with-dlpack", "agrees-with-buffer", "agrees-with-device"}


def kind_of(id):
    """The id without its route and without the case."""
    parts = id.removeprefix("arrow.").split("[")[0].split(".")
    name = parts[-1]
    return f"{name}[{id.split('[')[1]}" if name in ("malformed", "fails") else name


@pytest.mark.parametrize(
    ("side", "rows"), [("producer", PRODUCER_FAULTS), ("consumer", CONSUMER_FAULTS)], ids=["producer", "consumer"]
)
def test_every_check_has_a_fault_that_it_finds(side, rows):
    checks = {kind_of(check.id) for check in _tables.select(side, ["arrow"])}
    assert checks - {kind_of(check) for _, check in rows} - _WITHOUT_CONTROL == set()


@pytest.mark.usefixtures("no_waiting")
@names(CONSUMER_FAULTS)
def test_fault_of_a_consumer_is_found(fault, check):
    name = f"conformance_fake_arrow_consumer:take_{fault}"
    assert_found(check_consumer(name, protocols=["arrow"], only=[check], isolate=False), check)


def test_nothing_is_found_in_a_sound_consumer():
    report = check_consumer("conformance_fake_arrow_consumer:take_sound", protocols=["arrow"])
    assert_sound(report)
    assert len(report.having("passed")) > 150


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a callback on what is gone
@names(PRODUCER_FAULTS)
def test_fault_of_a_producer_is_found(fault, check):
    assert_found(check_producer(f"conformance_fake_arrow:make_{fault}", only=[check], isolate=False), check)


def test_nothing_is_found_in_a_sound_producer():
    report = check_producer("conformance_fake_arrow:make_sound", protocols=["arrow"])
    assert_sound(report)
    assert len(report.having("passed")) > 800


def test_memory_of_a_device_is_not_touched():
    report = check_producer("conformance_fake_arrow:make_on_cuda", protocols=["arrow"], device="cuda", isolate=True)
    assert_sound(report)
    assert len(report.having("passed")) > 150


def test_a_stream_may_fail():
    report = check_producer("conformance_fake_arrow:make_sound_failing", only=["arrow.stream.errors"])
    assert_sound(report)
    assert report.having("passed")
