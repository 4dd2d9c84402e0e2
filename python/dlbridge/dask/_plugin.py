"""What `install(client=)` sends to the workers."""

from __future__ import annotations

from distributed import Worker, WorkerPlugin


class Install(WorkerPlugin):  # type: ignore[misc]  # Any, where distributed is not installed
    """Registers frameworks in a worker, when it starts or when the plugin comes."""

    idempotent = False  # one that comes later has more frameworks

    def __init__(self, frameworks: tuple[str, ...]) -> None:
        self.frameworks = frameworks

    def setup(self, worker: Worker) -> None:
        from dlbridge.dask import install

        install(*self.frameworks)
