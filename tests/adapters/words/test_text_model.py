"""The classifier for what no rule reads: what it makes of sentences that it was not counted from, and how sure it is."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from failwell.adapters.saved.log_record import classify
from failwell.adapters.words import text_model
from failwell.adapters.words.text_model import CLEAR_LEAD, WEIGHTS, Guess, guess
from failwell.errors.kind_registry import kind as registered_kind
from tools.word_weights import EXAMPLES, Example, all_examples, digest, examples, train

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
    message = "syntax error at or near select: unexpected keyword in the statement, line 3"
    found = guess(message, said=("provider.unknown", "default"))
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


def test_the_weights_were_trained_from_the_examples() -> None:
    assert WEIGHTS.read_text(encoding="utf-8").startswith(f"{digest(all_examples())}\n")


def test_every_kind_has_examples_and_no_example_stands_twice() -> None:
    rows = list(examples())
    kinds = [kind for kind, _, _ in rows]

    assert len(rows) == len({row[1:] for row in rows})
    assert min(kinds.count(kind) for kind in set(kinds)) >= 60
    assert {path.suffix for path in EXAMPLES.iterdir()} == {".tsv"}


@pytest.mark.slow
def test_training_gives_the_weights_that_are_shipped() -> None:
    _, *lines = train(all_examples()).splitlines()
    _, *shipped = WEIGHTS.read_text(encoding="utf-8").splitlines()

    # Another machine may round the last digit differently.
    same = sum(one == other for one, other in zip(lines, shipped, strict=False))
    assert same >= 0.9 * len(shipped)


@pytest.mark.slow
def test_examples_that_were_left_out_are_read_by_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = list(zip(examples(), all_examples(), strict=True))
    monkeypatch.setattr(text_model, "WEIGHTS", tmp_path / "weights.tsv")
    text_model.WEIGHTS.write_text(
        train(read for place, (_, read) in enumerate(rows) if place % FOLDS), encoding="utf-8"
    )
    text_model.forget()
    right: list[bool] = []
    clear: list[bool] = []
    for (kind, name, text), read in rows[::FOLDS]:
        found = guess(text, name.rpartition(".")[2], verdict_of(read))
        is_right = found is not None and category_of(found) == str(registered_kind(kind).category)
        right.append(is_right)
        if found is not None and found.lead >= CLEAR_LEAD:
            clear.append(is_right)
    monkeypatch.undo()
    text_model.forget()

    assert sum(right) / len(right) >= 0.75
    assert sum(clear) / len(clear) >= 0.95
    assert len(clear) / len(right) >= 0.3


def verdict_of(read: Example) -> tuple[str, str]:
    """The kind and the basis that the rules gave an example."""
    longest = max(read.verdict, key=lambda feature: (feature.count(":"), "." in feature))
    _, kind, basis = longest.split(":")
    return kind, basis
