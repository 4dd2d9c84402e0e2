"""``python -m dlbridge conformance``: the kit on the command line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from dlbridge.tests._child import SILENCE_S
from dlbridge.tests.conformance import libraries
from dlbridge.tests.conformance._check import PROTOCOLS
from dlbridge.tests.conformance._report import Report
from dlbridge.tests.conformance._run import check_consumer, check_producer
from dlbridge.tests.conformance._tables import select


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dlbridge conformance",
        description="Checks a library's arrays and importers against the specifications of DLPack, the array "
        "interfaces, the buffer protocol and Arrow. Exit status: 0 all that must hold holds, 1 something does not, "
        "2 nothing could be run.",
    )
    add = parser.add_argument
    add("--producer", action="append", default=[], metavar="MODULE:NAME", help="a factory(spec) of arrays to check")
    add("--consumer", action="append", default=[], metavar="MODULE:NAME", help="a from_dlpack(obj) to check")
    add("--library", action="append", default=[], metavar="NAME", help=f"one of {', '.join(libraries.names())}, or all")
    add("--device", default="cpu", help="where the factory is to make its arrays (default cpu)")
    add("--protocol", action="append", metavar="NAME", choices=PROTOCOLS, help=f"only {', '.join(PROTOCOLS)}")
    add("-k", dest="only", action="append", metavar="TEXT", help="only checks that have this text in their id")
    add("--no-isolate", dest="isolate", action="store_false", help="run all checks in this process, crash or not")
    add("--timeout", type=float, default=SILENCE_S, metavar="SECONDS", help="for one check (default %(default)g)")
    add("--strict", action="store_true", help="what a specification recommends counts, too")
    add("--json", action="store_true", help="print one JSON document")
    add("--list", action="store_true", help="print the checks with their clauses, and run none")
    add("-v", "--verbose", action="store_true", help="name every check")
    return parser


def _list(options: argparse.Namespace) -> int:
    for kind in ("producer", "consumer"):
        for check in select(kind, options.protocol, options.only):
            print(f"{kind} {check.id} ({check.severity}): {check.clause} [{check.source}]")
    return 0


def _reports(options: argparse.Namespace) -> list[Report]:
    common = {
        "protocols": options.protocol,
        "only": options.only,
        "isolate": options.isolate,
        "timeout": options.timeout,
    }
    reports = [check_producer(name, device=options.device, **common) for name in options.producer]
    reports += [check_consumer(name, **common) for name in options.consumer]
    chosen = libraries.names() if "all" in options.library else options.library
    for name in chosen:
        reports += libraries.check(name, device=options.device, **common)
    return reports


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        return _list(options)
    if not (options.producer or options.consumer or options.library):
        parser.error("give --producer, --consumer or --library")
    unknown = set(options.library) - set(libraries.names()) - {"all"}
    if unknown:
        parser.error(f"no library {', '.join(sorted(unknown))}; there are {', '.join(libraries.names())}")
    reports = _reports(options)
    if options.json:
        json.dump([report.todict() for report in reports], sys.stdout, indent=1)
        print()
    else:
        print("\n\n".join(report.text(verbose=options.verbose) for report in reports))
    codes = {report.exit_code for report in reports}
    if options.strict and any(report.having("failed") for report in reports):
        codes.add(1)
    return 1 if 1 in codes else 2 if 2 in codes else 0
