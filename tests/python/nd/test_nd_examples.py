"""The scripts in examples/ run: every snippet of each, or it is skipped by name."""

import importlib.util
import pathlib
import sys

import pytest
from dlbridge import nd

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"
# Snippets that need nothing but NumPy: these must run everywhere.
ALWAYS = {
    "cupy_interoperability": {"NumPy: __array_ufunc__ and __array_function__", "DLPack: to a capsule and back"},
    "cupy_interoperability_newer": {
        "DLPack: a capsule given to from_dlpack()",
        "Device memory: the pointer of an array",
    },
    "sharing_is_caring": set(),
    "pydlpack_readme": {"dlpack.tests.run()"},
    "cupy_basics": {
        "basics of ndarray: the norm on both sides",
        "data transfer: to the current device",
        "data transfer: an uninitialised array",
        "data transfer: to the host",
        "agnostic code: softplus of either array",
        "agnostic code: both sides in one expression",
    },
}


def load(name, monkeypatch):
    return module_of(name, monkeypatch).script


def module_of(name, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(ALWAYS))
def test_example(name, monkeypatch, capfd):
    before = {key: sys.modules.get(key) for key in ("dlpack", "dlpack.tests")}
    try:
        outcomes = load(name, monkeypatch).run()
    finally:
        for key, module in before.items():
            if module is None:
                sys.modules.pop(key, None)
            else:
                sys.modules[key] = module
    failed = [snippet for snippet, outcome in outcomes.items() if outcome.startswith("FAILED")]
    assert failed == [], capfd.readouterr().err
    assert {snippet for snippet in ALWAYS[name] if outcomes[snippet] != "ok"} == set()
    if nd.cuda.is_available():
        lacking = [outcome for outcome in outcomes.values() if "needs 1 CUDA device" in outcome]
        assert lacking == []


TWO_GPUS = [
    pytest.mark.gpu,
    pytest.mark.skipif(nd.cuda.device_count() < 2, reason=f"needs two GPUs; there are {nd.cuda.device_count()}"),
]


@pytest.mark.parametrize("devices", [("cpu", "cpu"), pytest.param(("cuda:0", "cuda:1"), marks=TWO_GPUS)])
def test_two_gpus(devices, monkeypatch):
    both, alone = module_of("two_gpus", monkeypatch).main(devices, size=64)
    n = range(64)
    assert both == alone == sum((i * 64 + k) % 7 * ((k * 64 + j) % 5) for i in n for k in n for j in n)


def test_every_script_is_run():
    assert {path.stem for path in EXAMPLES.glob("*.py")} - {"snippets"} == {*ALWAYS, "two_gpus"}
