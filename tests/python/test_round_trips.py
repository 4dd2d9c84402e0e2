"""Thousands of round trips of each kind leave no object, reference or memory behind."""

import array
import gc
import mmap
import sys
import tracemalloc

import pytest
from dlbridge import _core, asdlpack

TRIPS = 20_000


def _round_trips():
    exporter_data = bytearray(24)
    typed = array.array("d", range(3))
    bytes_tensor = asdlpack(b"read only")
    trips = {
        "buffer": lambda: asdlpack(exporter_data),
        "buffer of an array": lambda: asdlpack(typed),
        "dlpack": lambda: asdlpack(asdlpack(exporter_data).__dlpack__(max_version=(1, 0))),
        "legacy": lambda: asdlpack(asdlpack(exporter_data).__dlpack__()),
        "copied dlpack": lambda: asdlpack(asdlpack(exporter_data).__dlpack__(max_version=(1, 0), copy=True)),
        "unconsumed": lambda: asdlpack(exporter_data).__dlpack__(max_version=(1, 0)),
        "copy": lambda: asdlpack(exporter_data, copy=True),
        "memoryview": lambda: memoryview(asdlpack(typed)),
        "array_interface": lambda: asdlpack(asdlpack(typed), protocol="array_interface"),
        "array_struct": lambda: asdlpack(typed).__array_struct__,
        "refused": lambda: _refuse(lambda: bytes_tensor.__dlpack__()),
        "consumed twice": lambda: _refuse(lambda: _consume_twice(exporter_data)),
        "nine dimensions": lambda: asdlpack(memoryview(exporter_data).cast("B", (1,) * 8 + (24,))),
    }
    return trips, [exporter_data, typed, bytes_tensor]


def _consume_twice(data):
    capsule = asdlpack(data).__dlpack__(max_version=(1, 0))
    asdlpack(capsule)
    asdlpack(capsule)


def _refuse(call):
    with pytest.raises((BufferError, ValueError)):
        call()


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * mmap.PAGESIZE


@pytest.mark.no_sanitizer
@pytest.mark.parametrize("trip", list(_round_trips()[0]))
def test_round_trips_leave_nothing_behind(trip):
    trips, objects = _round_trips()
    run = trips[trip]
    count = TRIPS // 10 if trip in ("refused", "consumed twice") else TRIPS
    for _ in range(300):
        run()
    gc.collect()
    counts, references = _core.live_counts(), [sys.getrefcount(one) for one in objects]
    resident = resident_bytes()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(500):
            run()
        gc.collect()
        traced = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    for _ in range(count):
        run()
    gc.collect()
    assert _core.live_counts() == counts
    assert [sys.getrefcount(one) for one in objects] == references
    assert traced < 4096, f"{traced} bytes of Python memory stay after 500 trips"
    assert resident_bytes() - resident < 1 << 20  # 20,000 times 52 bytes
