"""What NumPy's polynomial package has that CuPy's has, too: `polynomial` and `polyutils`."""

from __future__ import annotations

from dlbridge.nd.polynomial import polynomial as polynomial
from dlbridge.nd.polynomial import polyutils as polyutils

__all__ = ["polynomial", "polyutils"]
