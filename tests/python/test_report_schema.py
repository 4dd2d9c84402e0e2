"""The JSON report and its schema say the same, and a report of no known schema is refused."""

import dataclasses
import io
import json
from importlib import resources

import dlbridge.tests
import pytest
from dlbridge import __main__ as command
from dlbridge.tests._results import SCHEMA, Cell, Import, Results, Status
from dlbridge.tests.report import _files


def schema():
    return json.loads(_files.json_schema())


def validator(document):
    jsonschema = pytest.importorskip("jsonschema", reason="checks reports against their schema")
    kind = jsonschema.Draft202012Validator
    kind.check_schema(document)
    return kind(document, format_checker=kind.FORMAT_CHECKER)


def closed(document):
    """The schema without room for keys that it does not name."""
    if isinstance(document, dict):
        document = {key: closed(value) for key, value in document.items()}
        if "properties" in document and document.get("type") == "object":
            document["additionalProperties"] = False
    return document


def full():
    """An exchange with every key."""
    how = {"reason": "why", "protocol": "dlpack", "asked": "dlpack", "culprit": "torch", "reproducer": "print()"}
    what = {"dtype": "float32", "layout": "contiguous", "device": "cpu", "cost_ns": 5}
    return Cell("numpy", "torch", "convert", Status.WRONG, **how, **what)


def report(results):
    out = io.StringIO()
    _files.write_json(results, out)
    return json.loads(out.getvalue())


def real(**options):
    return lambda: dlbridge.tests.run(["stdlib"], file=io.StringIO(), **options)


RUNS = {
    "representative": real(),
    "full": real(full=True),
    "isolated": real(isolate=True),
    "required": real(require=["stdlib"]),
    "nothing": Results,
    "everything wrong": lambda: Results(
        {"numpy": Import("2.4.6", 0.1, 2, "hello", "/x")},
        {"cupy": "not installed"},
        [dataclasses.replace(full(), status=status) for status in Status],
        required=("cupy",),
        stopped="the limit of 1 s was reached",
        mode="full, isolated",
    ),
}


@pytest.mark.no_sanitizer  # with isolate= workers are interpreters of their own
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_report_follows_the_schema_which_names_all_of_its_keys(run):
    validator(closed(schema())).validate(report(run()))


def test_schema_names_every_field_of_an_exchange():
    fields = {field.name for field in dataclasses.fields(Cell)}
    assert schema()["$defs"]["exchange"]["properties"].keys() == fields
    assert full().todict().keys() == fields
    assert schema()["$defs"]["status"]["enum"] == [status.value for status in Status]


def test_schema_is_that_of_the_version_that_is_written():
    assert schema()["properties"]["schema"] == {"const": SCHEMA} == {"const": report(Results())["schema"]}
    assert schema()["$id"] == f"urn:dlbridge:report:{SCHEMA}"
    assert (resources.files("dlbridge.tests.report") / f"schema-{SCHEMA + 1}.json").is_file() is False


def test_later_keys_are_allowed():
    document = report(real()())
    document["weather"] = document["exchanges"][0]["mood"] = "fine"
    validator(schema()).validate(document)


def change(path, value):
    def make(document):
        *above, last = path
        for key in above:
            document = document[key]
        if value is None:
            del document[last]
        else:
            document[last] = value

    return make


FAULTS = {
    "no schema": change(["schema"], None),
    "another schema": change(["schema"], SCHEMA + 1),
    "no host": change(["host"], None),
    "no counts of a status": change(["counts", "works"], None),
    "an unknown status": change(["exchanges", 0, "status"], "splendid"),
    "counts of an unknown status": change(["counts", "splendid"], 1),
    "an exchange without a producer": change(["exchanges", 0, "producer"], None),
    "a cost in words": change(["exchanges", 0, "cost_ns"], "little"),
    "an unknown exit status": change(["exit_code"], 3),
    "an unknown kind of run": change(["mode"], "quick"),
    "a reason that is no text": change(["absent", "cupy"], 1),
}


@pytest.mark.parametrize("make", FAULTS.values(), ids=FAULTS)
def test_schema_refuses(make):
    document = report(real()())
    checks = validator(schema())
    checks.validate(document)
    make(document)
    assert not checks.is_valid(document)


def test_command_prints_the_schema(capsys):
    assert command.main(["--json-schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()


NUMBERS = {
    "a later one": (SCHEMA + 1, f"has schema {SCHEMA + 1}; this dlbridge reads reports of schema 1 to {SCHEMA}: use"),
    "none": (0, "has schema 0; "),
    "below": (-1, "has schema -1; "),
    "a fraction": (1.5, "has schema 1.5; "),
    "text": ("2", 'has schema "2"; '),
    "a truth": (True, "has schema true; "),
    "null": (None, "has schema null; "),
}


@pytest.mark.parametrize(("number", "message"), NUMBERS.values(), ids=NUMBERS)
def test_compare_refuses_a_schema_that_it_does_not_know(tmp_path, capsys, number, message):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(report(Results())))
    bad.write_text(json.dumps({**report(Results()), "schema": number}))
    assert command.main(["--compare", str(good), str(bad)]) == 2
    assert f"--compare: {bad} {message}" in capsys.readouterr().err
