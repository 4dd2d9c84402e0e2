"""Waiting for what a library gives back late: on a thread of its own, or when garbage is collected."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator

LIMIT_S = 1.0  # jax and TensorFlow give memory back on threads of their own
_IN_VAIN = 3  # full waits for nothing, after which a library is known not to give back
_COLLECT_AFTER_S = 0.003  # most have given back by then; a collection with TensorFlow loaded costs more than that
_STEP_S = 0.0005


class Patience:
    """How long to wait for one library.

    A library that never answered a few times is not waited for in full again, but still many times longer than it ever
    took: a library that never deletes would otherwise cost a full wait at every check.
    """

    def __init__(self) -> None:
        self._in_vain = 0
        self._longest_s = 0.0  # of the waits that ended well

    @property
    def limit_s(self) -> float:
        if self._in_vain < _IN_VAIN:
            return LIMIT_S
        return min(LIMIT_S, max(LIMIT_S / 20, 10 * self._longest_s))

    def wait(self, done: Callable[[], bool]) -> bool:
        """Whether `done()` came true in time."""
        started = time.monotonic()
        collected = False
        while not done():
            waited_s = time.monotonic() - started
            if waited_s > self.limit_s:
                self._in_vain += 1
                return False
            if not collected and waited_s > _COLLECT_AFTER_S:
                gc.collect()
                collected = True
            time.sleep(_STEP_S)
        self._longest_s = max(self._longest_s, time.monotonic() - started)
        return True


@contextlib.contextmanager
def cheap_collections() -> Iterator[None]:
    """Leaves what is loaded by now out of garbage collections: with six frameworks each would take 0.1 s.

    Who calls may have done so, and keeps it: gc.unfreeze() would end that, too.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
