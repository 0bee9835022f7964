"""Reports that were written once are read for ever.

The files in `v1` are never edited: they stand for what lies in other people's queues, databases and
logs. A new form of report is a new file; a reader that no longer takes an old one is a defect.
"""

import hashlib
import json
from dataclasses import fields, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import failwell
from failwell import ErrorReport, adapters
from failwell.errors.wire import schema
from failwell.errors.wire_fields import REPORT
from tests.specimens import each

FOLDER = Path(__file__).with_name("v1")
GOLDEN = sorted(FOLDER.glob("*.json"))
SUMS = FOLDER / "SHA256SUMS"


@cache
def validator() -> Any:
    import jsonschema

    return jsonschema.Draft202012Validator(schema())


def name_of(path: Path) -> str:
    return path.stem


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8").removesuffix("\n")


def test_no_golden_report_was_edited_added_or_removed_unnoticed() -> None:
    recorded = {
        name: digest for digest, name in (line.split() for line in SUMS.read_text("utf-8").splitlines())
    }

    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in GOLDEN}

    assert found == recorded, (
        "golden reports are never edited; for a new one: (cd tests/errors/wire/v1 && sha256sum *.json > SHA256SUMS)"
    )


@pytest.mark.parametrize("path", GOLDEN, ids=name_of)
def test_the_strict_reader_takes_it_and_writes_it_back_byte_for_byte(path: Path) -> None:
    report = ErrorReport.from_json(path.read_bytes())

    assert report.to_json() == text_of(path)


@pytest.mark.parametrize("path", GOLDEN, ids=name_of)
def test_the_tolerant_reader_reads_the_same(path: Path) -> None:
    assert ErrorReport.read(text_of(path)) == ErrorReport.from_json(text_of(path))


@pytest.mark.parametrize("path", GOLDEN, ids=name_of)
def test_it_fits_the_schema(path: Path) -> None:
    validator().validate(json.loads(text_of(path)))


@pytest.mark.parametrize("path", GOLDEN, ids=name_of)
def test_it_can_be_raised_and_described_as_itself(path: Path) -> None:
    report = ErrorReport.from_json(text_of(path))

    assert failwell.describe(adapters.revive(report)) == report


@each("path", GOLDEN, ids=name_of)
@each("audience", ["user", "model", "operator", "audit"])
def test_every_audience_can_be_shown_it(path: Path, audience: Any) -> None:
    shown = ErrorReport.from_json(text_of(path)).view(audience)

    assert shown["kind"] == json.loads(text_of(path))["kind"]


@pytest.mark.parametrize("path", GOLDEN, ids=name_of)
def test_a_newer_peers_additions_to_it_are_passed_on(path: Path) -> None:
    newer = {**json.loads(text_of(path)), "schema": "failwell.error/2", "weather": "rain"}

    report = ErrorReport.read(newer)

    assert json.loads(report.to_json()) == newer
    assert replace(report, schema="failwell.error/1", extra={}) == ErrorReport.from_json(text_of(path))


def test_together_they_use_every_field_of_a_report_and_of_its_parts() -> None:
    written = [json.loads(text_of(path)) for path in GOLDEN]

    assert {name for one in written for name in one} == set(schema()["properties"])
    for name, part in REPORT.optional:
        if part is None:
            continue
        held: list[Any] = [one[name] for one in written if name in one]
        records: list[dict[str, Any]] = list(chain.from_iterable(held)) if part.is_list else held
        used = {key for record in records for key in record}
        assert used == {field.name for field in fields(part.record_type)}, name
