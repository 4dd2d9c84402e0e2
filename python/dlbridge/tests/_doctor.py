"""``python -m dlbridge doctor``: what is here, what is wrong with it, and what an object offers to whom."""

from __future__ import annotations

import argparse
import contextlib
import glob
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Iterator
from typing import Any

import dlbridge
from dlbridge import _core
from dlbridge.tests import _loader, _machine, frameworks
from dlbridge.tests._known import known_bad

COULD_NOT_RUN = 2

# Switch -> what its values do. Ours first, then those of frameworks that change what they exchange.
_SWITCHES = {
    "DLBRIDGE_CUDA_ARRAY_INTERFACE_SYNC": "0: do not wait on a producer's stream",
    "DLBRIDGE_CUDA_ARRAY_INTERFACE_EXPORT_VERSION": "2: export version 2, with no stream",
    "DLBRIDGE_LEARNED_LAYOUTS": "0: read arrays by public interfaces only",
    "DLBRIDGE_DLPACK_EXPORT_VERSION": "below 0.6: managed memory is exported as kDLCUDA",
    "CUPY_CUDA_ARRAY_INTERFACE_SYNC": "0: CuPy does not wait on a producer's stream",
    "CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION": "2: CuPy exports version 2, with no stream",
    "NUMBA_CUDA_ARRAY_INTERFACE_SYNC": "0: Numba does not wait on a producer's stream",
    "NUMBA_ENABLE_CUDASIM": "1: Numba simulates CUDA in host memory",
    "JAX_ENABLE_X64": "1: jax keeps 64-bit types",
    "JAX_PLATFORMS": "the devices that jax uses",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false: jax does not take most of the GPU at once",
    "CUDA_VISIBLE_DEVICES": "the GPUs that CUDA shows",
    "CUDA_LAUNCH_BLOCKING": "1: launches wait, which hides stream races",
    "LD_LIBRARY_PATH": "where libraries are looked for first",
}

# Optional libraries: distribution (or none) -> what to import to find it.
_LIBRARIES = {
    "rich": "coloured tables",
    "jinja2": "--html",
    "pytest": "the conformance plugin",
    "ml_dtypes": "bfloat16 and float8 in NumPy",
}
_DRIVER_PATTERNS = (
    "/usr/lib/x86_64-linux-gnu/libcuda.so*",
    "/usr/lib64/libcuda.so*",
    "/usr/lib/wsl/lib/libcuda.so*",
    "/usr/local/nvidia/lib64/libcuda.so*",
    "/usr/local/cuda/compat/libcuda.so*",
)


class ObjectError(Exception):
    """An --object that cannot be had."""


def _drivers() -> list[str]:
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    patterns = (*_DRIVER_PATTERNS, *(f"{folder}/libcuda.so*" for folder in folders if folder))
    return sorted({path for pattern in patterns for path in glob.glob(pattern)})


def _kernels() -> dict[str, str]:
    """The library of the ndarray's CUDA kernels, which needs no GPU to be loaded, and what is wrong with it."""
    from dlbridge.nd import _native

    return dict(zip(("path", "problem"), _native.kernel_library(), strict=True))


def _library(name: str) -> dict[str, str]:
    spec = importlib.util.find_spec(name)
    if spec is None:
        return {"path": "", "version": "", "use": _LIBRARIES[name]}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return {"path": spec.origin or "", "version": importlib.metadata.version(name), "use": _LIBRARIES[name]}
    return {"path": spec.origin or "", "version": "?", "use": _LIBRARIES[name]}


def _framework(framework: frameworks.Framework) -> dict[str, str]:
    """Where it is, without importing it: an import may fail, print, or take ten seconds."""
    top = framework.module.partition(".")[0]
    if not _loader.installed(framework):
        return {}
    spec = importlib.util.find_spec(top) if top else None
    places = list(spec.submodule_search_locations or []) if spec else []
    path = (spec.origin if spec else None) or (places[0] if places else "")
    return {"version": _loader.version_of(framework), "path": path}


def examine() -> dict[str, Any]:
    """The environment, in plain types. Imports no framework."""
    table, broken = frameworks.registry()
    there = {name: _framework(one) for name, one in table.items() if name not in ("stdlib", "nd")}
    versions = {name: found["version"] for name, found in there.items() if found}
    rows = known_bad(versions)
    return {
        "dlbridge": _core.__version__,
        "extension": _core.__file__,
        "python": f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}",
        "platform": platform.platform(),
        "cuda": dict(_core.cuda_info()),
        "kernels": _kernels(),
        "driver_files": _drivers(),
        "gpus": _machine.gpus(),
        "driver": _machine.driver(),
        "frameworks": {name: found for name, found in there.items() if found},
        "not_installed": [name for name, found in there.items() if not found],
        "broken_plugins": broken,
        "libraries": {name: _library(name) for name in _LIBRARIES},
        "switches": {name: os.environ[name] for name in _SWITCHES if name in os.environ},
        "known_bad": [
            {
                "frameworks": {n: versions[n] for n in row.versions},
                "symptom": row.symptom,
                "remedy": row.remedy,
                "source": row.source,
            }
            for row in rows
        ],
    }


def _resolve(text: str) -> Any:
    """The object that ``module:expression`` names; the expression sees the module's names, and the module."""
    module_name, separator, expression = text.partition(":")
    if not separator or not module_name or not expression:
        raise ObjectError(f"{text!r} is not of the form module:expression, as numpy:arange(6)[::-1]")
    _loader.prepare_environment()
    try:
        module = importlib.import_module(module_name)
        top = module_name.partition(".")[0]
        return eval(expression, {top: importlib.import_module(top), **vars(module)})
    except (Exception, SystemExit) as error:
        raise ObjectError(f"{text!r} cannot be evaluated: {type(error).__name__}: {error}") from error


def examine_object(obj: Any) -> dict[str, Any]:
    """What it offers, and what every consumer would make of it. Imports no consumer."""
    report = dlbridge.inspect(obj)
    answer: dict[str, Any] = {"inspect": report.todict(), "text": str(report), "consumers": {}}
    try:
        tensor = _core.asdlpack(obj)
    except Exception as error:
        answer["refused"] = f"{type(error).__name__}: {error}"
        return answer
    table, _ = frameworks.registry()
    there = {one.convert for one in table.values() if one.convert and _loader.installed(one)}
    for name in _core.consumers():
        plan = _core.plan(tensor, name)
        answer["consumers"][name] = {
            "outcome": plan.outcome,
            "reason": plan.reason,
            "remedy": plan.remedy,
            "installed": name in there,
        }
    return answer


def _environment_lines(found: dict[str, Any]) -> Iterator[str]:
    cuda = found["cuda"]
    yield f"dlbridge {found['dlbridge']} ({found['extension']})"
    yield f"{found['python']}; {found['platform']}"
    if cuda["available"]:
        nvidia = f" (NVIDIA {found['driver']})" if found["driver"] else ""
        yield f"CUDA driver {cuda['driver_version']}{nvidia}, {cuda['device_count']} device(s)"
    else:
        yield f"no CUDA: {cuda['reason']}"
    yield f"CUDA kernels of nd: {found['kernels']['problem'] or found['kernels']['path']}"
    yield from (f"  driver file: {path}" for path in found["driver_files"])
    yield from (f"  GPU: {name}" for name in found["gpus"])
    yield ""
    yield "frameworks"
    for name, where in found["frameworks"].items():
        yield f"  {name:12} {where['version']:16} {where['path']}"
    yield f"  not installed: {', '.join(found['not_installed']) or 'none'}"
    yield from (f"  {name}: {why}" for name, why in found["broken_plugins"].items())
    yield ""
    yield "optional libraries"
    for name, where in found["libraries"].items():
        yield f"  {name:12} {where['version'] or 'absent':16} for {where['use']}"
    yield ""
    yield "environment switches" if found["switches"] else "environment switches: none is set"
    yield from (f"  {name}={value}  ({_SWITCHES[name]})" for name, value in found["switches"].items())
    yield ""
    yield "known to fail" if found["known_bad"] else "known to fail: nothing that is here"
    for row in found["known_bad"]:
        names = " with ".join(f"{name} {version}" for name, version in row["frameworks"].items())
        yield f"  {names}: {row['symptom']}"
        yield f"      remedy: {row['remedy']} [{row['source']}]"


def _object_lines(found: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield found["text"]
    if "refused" in found:
        yield f"  refused by everyone: {found['refused']}"
    for name, what in found["consumers"].items():
        absent = "" if what["installed"] else " (not installed)"
        yield f"  {name:12} {what['outcome']}{absent}{': ' + what['reason'] if what['reason'] else ''}"
        if what["remedy"]:
            yield f"  {'':12} {what['remedy']}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dlbridge doctor",
        description="Says what is installed, which driver and GPUs there are, what is known to fail, and with --object "
        "what an object offers and who would refuse it. Exit status: 0; 2 where the object cannot be had.",
    )
    parser.add_argument("--object", metavar="MODULE:EXPRESSION", help="as 'numpy:arange(6)[::-1]'; it is evaluated")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def main(arguments: list[str]) -> int:
    """Prints the diagnosis; the exit status."""
    options = _parser().parse_args(arguments)
    found = examine()
    try:
        examined = examine_object(_resolve(options.object)) if options.object else None
    except ObjectError as error:
        print(f"python -m dlbridge doctor: --object {error}", file=sys.stderr)
        return COULD_NOT_RUN
    if options.json:
        print(json.dumps({**found, **({"object": examined} if examined else {})}, indent=1))
        return 0
    lines = [*_environment_lines(found), *(_object_lines(examined) if examined else ())]
    print("\n".join(lines))
    return 0
