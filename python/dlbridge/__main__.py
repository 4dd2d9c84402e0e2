"""``python -m dlbridge``: the self-test runner; with a subcommand, the doctor, the probe or the conformance kit."""

from __future__ import annotations

import importlib
import sys

# Subcommand -> the module whose main(arguments) it is; the empty one is the runner.
_COMMANDS = {
    "": "dlbridge.tests._options",
    "--probe": "dlbridge.tests._probe",
    "doctor": "dlbridge.tests._doctor",
    "conformance": "dlbridge.tests.conformance",
}


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0 all is well, 1 something is wrong, 2 nothing could be run."""
    given = sys.argv[1:] if arguments is None else arguments
    command = given[0] if given and given[0] in _COMMANDS else ""
    try:
        module = importlib.import_module(_COMMANDS[command])
    except ImportError as error:
        print(f"python -m dlbridge: {command or 'the runner'} cannot be loaded: {error}", file=sys.stderr)
        return 2
    return int(module.main(given[1:] if command else given))


if __name__ == "__main__":
    sys.exit(main())
