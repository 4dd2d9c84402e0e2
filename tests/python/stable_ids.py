"""Ids of parametrised tests that are the same in every process: workers that share a run compare them."""

import re


def of(value):
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def of_field(value):
    """Of a dictionary with one key; other parameters have none."""
    return "=".join((next(iter(value)), of(next(iter(value.values()))))) if isinstance(value, dict) else ""
