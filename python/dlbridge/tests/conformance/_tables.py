"""All checks, by what is under test."""

from __future__ import annotations

from collections.abc import Iterable

from dlbridge.tests.conformance import (
    consumer_array_interface,
    consumer_arrow,
    consumer_buffer,
    consumer_cuda,
    consumer_dlpack,
    consumer_dlpack_calls,
    consumer_exchange,
    producer_array_interface,
    producer_arrow,
    producer_arrow_calls,
    producer_arrow_lifetimes,
    producer_buffer,
    producer_cuda,
    producer_dlpack,
    producer_dlpack_calls,
    producer_dlpack_copies,
    producer_exchange,
)
from dlbridge.tests.conformance._check import PROTOCOLS, Check

PRODUCER: tuple[Check, ...] = (
    *producer_dlpack_calls.CHECKS,
    *producer_dlpack_copies.CHECKS,
    *producer_dlpack.CHECKS,
    *producer_exchange.CHECKS,
    *producer_array_interface.CHECKS,
    *producer_cuda.CHECKS,
    *producer_buffer.CHECKS,
    *producer_arrow_calls.CHECKS,
    *producer_arrow_lifetimes.CHECKS,
    *producer_arrow.CHECKS,
)

CONSUMER: tuple[Check, ...] = (
    *consumer_dlpack_calls.CHECKS,
    *consumer_dlpack.CHECKS,
    *consumer_exchange.CHECKS,
    *consumer_array_interface.CHECKS,
    *consumer_cuda.CHECKS,
    *consumer_buffer.CHECKS,
    *consumer_arrow.CHECKS,
)

TABLES: dict[str, tuple[Check, ...]] = {"producer": PRODUCER, "consumer": CONSUMER}


def select(kind: str, protocols: Iterable[str] | None = None, only: Iterable[str] | None = None) -> list[Check]:
    """The checks of these protocols whose id holds one of the texts in `only`; a ValueError for an unknown protocol."""
    chosen = set(PROTOCOLS if protocols is None else protocols)
    unknown = chosen - set(PROTOCOLS)
    if unknown:
        raise ValueError(f"no protocol {', '.join(sorted(unknown))}; there are {', '.join(PROTOCOLS)}")
    texts = None if only is None else tuple(only)
    return [
        check
        for check in TABLES[kind]
        if check.protocol in chosen and (texts is None or any(text in check.id for text in texts))
    ]
