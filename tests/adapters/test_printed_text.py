"""Errors that were printed, by any language and tool: the facts that the reader takes from them, and their kinds."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

import failwell
from failwell.adapters.system_errors import NAME_BY_SENTENCE
from failwell.adapters.text.class_names import PHASE_BY_SENTENCE
from failwell.adapters.text.commands import SIGNS
from failwell.adapters.text.first_look import may_hold_facts
from failwell.adapters.text.reader import TextFacts, read_text
from failwell.adapters.text.verdict import read_printed
from failwell.report.saved_failures.pasted import describe_pasted

TEXTS = Path(__file__).parent / "texts"
TABLES = sorted(path.stem for path in TEXTS.glob("*.toml") if path.stem != "innocent")
PROTOCOL_FACTS = ("status", "grpc", "errno", "exit_code", "phase")


def specimens(table: str) -> list[dict[str, Any]]:
    return tomllib.loads((TEXTS / f"{table}.toml").read_text(encoding="utf-8"))["text"]


def innocent(name: str = "texts") -> list[str]:
    return tomllib.loads((TEXTS / "innocent.toml").read_text(encoding="utf-8"))[name]


def facts_missed(specimen: dict[str, Any], facts: TextFacts) -> list[str]:
    """What the reader did not take from a specimen as its row says."""
    missed = [
        f"{name}: {getattr(facts, name)!r}, expected {specimen[name]!r}"
        for name in PROTOCOL_FACTS
        if name in specimen and getattr(facts, name) != specimen[name]
    ]
    if "code" in specimen and specimen["code"] not in facts.codes:
        missed.append(f"codes: {facts.codes}, expected {specimen['code']!r}")
    names = [error.name for error in facts.errors if error.name]
    if "names" in specimen and names != specimen["names"]:
        missed.append(f"names: {names}, expected {specimen['names']}")
    if "body_has" in specimen and specimen["body_has"] not in (facts.body or ()):
        missed.append(f"body: {facts.body!r}, expected a member {specimen['body_has']!r}")
    for name, value in specimen.get("headers", {}).items():
        if facts.headers.get(name) != value:
            missed.append(f"headers: {facts.headers}, expected {name}: {value}")
    return [f"{specimen['tool']}: {specimen['text'][:80]!r}: {problem}" for problem in missed]


@pytest.mark.parametrize("table", TABLES)
def test_the_facts_of_every_printed_error_are_read(table: str) -> None:
    missed = [
        problem
        for specimen in specimens(table)
        for problem in facts_missed(specimen, read_text(specimen["text"]))
    ]

    assert missed == []


@pytest.mark.parametrize("table", TABLES)
def test_every_printed_error_has_its_kind_from_the_text_alone(table: str) -> None:
    wrong: list[str] = []
    for specimen in specimens(table):
        report = failwell.classify({"message": specimen["text"]})
        if "kind" in specimen and report.kind != specimen["kind"]:
            wrong.append(
                f"{specimen['tool']}: {specimen['text'][:80]!r}: {report.kind}, expected {specimen['kind']}"
            )
        if report.retryable != specimen.get("retryable", report.retryable):
            wrong.append(f"{specimen['tool']}: {specimen['text'][:80]!r}: retryable {report.retryable}")

    assert wrong == []


@pytest.mark.parametrize("table", TABLES)
def test_every_printed_error_has_the_same_kind_when_it_is_pasted(table: str) -> None:
    wrong: list[str] = []
    for specimen in specimens(table):
        report = describe_pasted(specimen["text"], origin="call")
        if report.kind != specimen.get("kind", report.kind):
            wrong.append(f"{specimen['tool']}: {specimen['text'][:80]!r}: {report.kind}")

    assert wrong == []


def test_the_first_look_misses_no_printed_error() -> None:
    texts = [specimen["text"] for table in TABLES for specimen in specimens(table)]
    sentences = [*NAME_BY_SENTENCE, *PHASE_BY_SENTENCE, *(word for word, _, _ in SIGNS)]

    assert [text for text in (*texts, *sentences) if not may_hold_facts(text)] == []


def test_innocent_numbers_and_words_are_no_facts() -> None:
    wrong: list[str] = []
    for text in innocent():
        facts = read_text(text)
        if not facts.errors and read_printed(facts) is not None:
            wrong.append(f"{text!r}: {facts}")
        if any(
            getattr(facts, name) is not None for name in (*PROTOCOL_FACTS, "database", "close_code", "tool")
        ):
            wrong.append(f"{text!r}: {facts}")

    assert wrong == []


def test_what_a_program_says_about_itself_stays_its_own_bug() -> None:
    kinds = {text: failwell.describe(RuntimeError(text)).kind for text in innocent("messages")}

    assert {text: kind for text, kind in kinds.items() if kind != "internal.bug"} == {}


def test_there_are_enough_specimens_of_enough_tools() -> None:
    rows = [specimen for table in TABLES for specimen in specimens(table)]

    assert len(rows) >= 150
    assert len({row["tool"] for row in rows}) >= 60
    assert len({row["text"] for row in rows}) == len(rows)
    assert len(set(innocent())) >= 80
