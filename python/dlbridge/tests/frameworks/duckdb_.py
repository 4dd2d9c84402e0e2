"""DuckDB. A relation is a table, which is read by columns(): here it only takes arrays."""

from __future__ import annotations

from dlbridge.tests.frameworks._base import Framework, Look

FRAMEWORK = Framework(
    "duckdb",
    "duckdb",
    convert="duckdb",
    look=Look("[row[0] for row in x.fetchall()]"),
    only_devices=("cpu",),
)
