"""What NumPy's lib package has that CuPy's has, too: `stride_tricks`."""

from __future__ import annotations

from dlbridge.nd.lib import stride_tricks as stride_tricks

__all__ = ["stride_tricks"]
