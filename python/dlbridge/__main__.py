"""``python -m dlbridge``: the self-test runner."""

from __future__ import annotations

import argparse
import sys


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m dlbridge",
        description="Sends real arrays of every installed producer to every installed consumer, and prints which "
        "exchanges work. Exit status: 0 all is well, 1 a wrong value, pointer or a leak, 2 nothing could be run.",
    )
    parser.add_argument("--only", metavar="NAME,...", help="only these modules, e.g. stdlib,numpy,torch")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every exchange with its reason")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    try:
        from dlbridge import tests
    except ImportError as error:
        print(f"python -m dlbridge: the extension cannot be loaded: {error}", file=sys.stderr)
        return 2
    only = options.only.split(",") if options.only else None
    return tests.run(only, verbose=options.verbose, json=options.json).exit_code


if __name__ == "__main__":
    sys.exit(main())
