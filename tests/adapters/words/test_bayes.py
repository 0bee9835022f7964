"""The classifier for what no rule reads: what it makes of sentences that it was not counted from, and how sure it is."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from failwell.adapters.saved import read_saved
from failwell.adapters.words import bayes
from failwell.adapters.words.bayes import CLEAR_LEAD, Guess, guess, weigh
from failwell.fault.registry import kind as registered_kind
from failwell.report.saved_failures.saved_row import classify
from tools.word_weights import EXAMPLES, LEAST, examples, features, table

FOLDS = 5


def category_of(found: Guess) -> str:
    return str(registered_kind(found.kind).category)


@pytest.mark.parametrize(
    ("category", "texts"),
    [
        ("configuration", ["the signing secret you configured was rotated last night and is dead now",
                           "ask an owner of the workspace to give the bot the right to post there"]),
        ("transient", ["two editors saved the page at once and yours lost, fetch it again and reapply your edit",
                       "all of our transcoding nodes have their hands full, come back in a moment"]),
        ("capacity", ["you have burned through this month's allowance of transcription hours"]),
        ("user_input", ["column 'birthday' holds '31.02.2020', which is no date", "the option --colour was given a value that it does not take"]),
        ("fatal", ["reached a branch that should be impossible, the parser state is inconsistent"]),
        ("cancelled", ["stopping early because the operator pressed ctrl-c"]),
        ("ambiguous", ["we wrote the whole request and then the line went dead before any answer"]),
    ],
)  # fmt: skip
def test_what_no_rule_reads_is_guessed_by_all_its_words(category: str, texts: Sequence[str]) -> None:
    assert [category_of(found) for text in texts if (found := guess(text)) is not None] == [category] * len(
        texts
    )


@pytest.mark.parametrize(
    ("category", "message"),
    [
        ("user_input", "Expected a single string for :contains(), got 'x'"),
        ("user_input", "Either channel_id or invite_id must be provided."),
        ("user_input", "path failed validation: path.id should be a valid uuid"),
        ("fatal", "cannot reuse already awaited coroutine"),
        ("fatal", "Cannot send a request, as the client has been closed."),
        ("fatal", "called fit twice on a model object that is already closed"),
        # What a concept says is not overturned by a guess that is not clear.
        ("ambiguous", "Connection to the server must be re-established: connection reset"),
        ("configuration", "The API key that was provided is not valid"),
    ],
)
def test_a_row_of_a_log_is_read_to_its_end(category: str, message: str) -> None:
    row = {"sdk": "acme", "exception_class": "acme.AcmeError", "message": message}

    assert str(classify(row).category) == category


def test_the_class_counts_too() -> None:
    plain, named = guess("it went wrong"), guess("it went wrong", "QuotaExceededError")

    assert named is not None
    assert named.kind == "provider.quota_exhausted"
    assert plain is None or plain.kind != named.kind


def test_numbers_change_nothing() -> None:
    assert guess("shard 17 of 90 is being moved") == guess("shard 3 of 12 is being moved")


def test_a_text_of_unknown_words_is_not_guessed() -> None:
    assert guess("zzyx qwrt") is None
    assert classify({"message": "zzyx qwrt"}).kind == "provider.unknown"


def test_a_guess_holds_no_word_of_the_text() -> None:
    report = classify(
        {"message": "the plumbus of ACME-secret-7 must be a positive whole number, and yours has a fraction"}
    )

    assert report.kind == "provider.bad_request"
    assert "ACME" not in report.to_json()
    assert report.evidence[0].saw == "all words together"


def test_a_guess_does_not_overturn_a_status() -> None:
    message = "syntax error near select: unexpected token in the statement"
    found = guess(message)
    assert found is not None
    assert found.lead > CLEAR_LEAD

    for status in (401, 403, 429, 500, 502, 503):
        alone = classify({"http_status": status, "body": {"error": {"message": "."}}})
        said = classify({"http_status": status, "body": {"error": {"message": message}}})

        assert said.kind == alone.kind


def test_a_guess_about_a_reply_is_none_about_this_machine() -> None:
    message = "the graphics card has no room left for these tensors"

    assert classify({"message": message}).kind == "resource.gpu_memory"
    assert classify({"body": {"error": {"message": message}}, "message": message}).kind == "provider.unknown"


def test_the_weights_are_those_of_the_examples() -> None:
    assert bayes.WEIGHTS.read_text(encoding="utf-8") == table()


def test_every_kind_has_examples_and_no_example_stands_twice() -> None:
    rows = list(examples())
    kinds = [kind for kind, _, _ in rows]

    assert len(rows) == len({row[1:] for row in rows})
    assert min(kinds.count(kind) for kind in set(kinds)) >= 60
    assert {path.suffix for path in EXAMPLES.iterdir()} == {".tsv"}


@pytest.mark.slow
def test_examples_that_were_left_out_are_read_by_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(kind, name, text) for kind, name, text in examples()]
    read: list[bool] = []
    clear: list[bool] = []

    for fold in range(FOLDS):
        known = [row for place, row in enumerate(rows) if place % FOLDS != fold]
        monkeypatch.setattr(bayes, "WEIGHTS", tmp_path / f"{fold}.tsv")
        counted = [(kind, features(name, text)) for kind, name, text in known]
        bayes.WEIGHTS.write_text(weigh(counted, least=LEAST), encoding="utf-8")
        bayes.forget()
        for kind, name, text in rows[fold::FOLDS]:
            reading = read_saved({"exception_class": name or None, "message": text})
            found = guess(text, name.rpartition(".")[2], (reading.kind, reading.evidence[0].basis))
            is_right = found is not None and category_of(found) == str(registered_kind(kind).category)
            read.append(is_right)
            if found is not None and found.lead >= CLEAR_LEAD:
                clear.append(is_right)
    bayes.forget()

    assert sum(read) / len(read) >= 0.75
    assert sum(clear) / len(clear) >= 0.9
    assert len(clear) / len(read) >= 0.3
