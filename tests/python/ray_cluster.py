"""A Ray of this machine for tests, which goes with them."""

import contextlib
import shutil
import tempfile

import pytest
import ray
from child_process import HANG_S
from ray._private import ray_constants


@contextlib.contextmanager
def started(**options):
    """The folder of a Ray that runs within it. options: of ray.init()."""
    folder = tempfile.mkdtemp(prefix="ray")  # short: there are sockets in it
    with pytest.MonkeyPatch.context() as patch:
        # How long actors, and this process, wait for what another sends: 60 s by default.
        patch.setenv("RAY_rdt_fetch_fail_timeout_milliseconds", str(HANG_S * 1000))
        patch.setattr(ray_constants, "RDT_FETCH_FAIL_TIMEOUT_SECONDS", HANG_S)
        ray.init(
            address="local",  # not that of another test, which runs beside this one
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            _temp_dir=folder,
            _system_config={"worker_niceness": 0},  # of 15, beside two busy processes, they import torch for a minute
            **options,
        )
        try:
            yield folder
        finally:
            ray.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
