"""Words are read by concept: rewordings say the same, negations turn, names say nothing."""

import pytest

from failwell.adapters.log_records.reading import read_saved
from failwell.adapters.words import reader
from failwell.adapters.words.grammar import LEXICON, Hit, concepts_of_code
from failwell.adapters.words.reader import forget, statement_of
from failwell.errors.kind_registry import kind as registered_kind


def kind_of(text: str) -> str | None:
    cells = statement_of(text.lower()).cells
    return cells[0].kind if cells else None


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (
            "provider.model_not_found",
            [
                "The model `x-9` does not exist",
                "model not found: x-9",
                "Could not find model x-9",
                "No such deployment",
                "Unknown model x-9",
                "The engine was removed last year",
                "x-9 is a model that has been retired",
                "模型不存在",
                "The model is in deprecating state",
                "x-9 is a model that was discontinued",
                "This deployment has been decommissioned",
                "该模型已下线",
            ],
        ),
        (
            "provider.auth",
            [
                "Invalid API key",
                "The API key is not valid",
                "No credentials found",
                "Could not authenticate the request",
                "Your token has expired",
                "api key must be provided",
                "Incorrect username or password",
            ],
        ),
        (
            "provider.quota_exhausted",
            [
                "Your credit balance is too low",
                "You have depleted your monthly credits",
                "You do not have enough quota",
                "The account ran out of funds: balance exhausted",
                "余额不足",
                "The daily limit was reached",
                "Your free trial has ended",
                "Your subscription has expired",
                "You are out of extra usage",
                "已达今日调用次数限额",
            ],
        ),
        (
            "provider.context_too_long",
            [
                "prompt is too long",
                "The input exceeds the context window",
                "Maximum context length is 8192 tokens",
                "Please reduce the length of the messages",
                "too many tokens",
                "The number of tokens to keep is greater than the context length",
                "Token sequence length is longer than the specified maximum",
                "输入长度超过限制",
            ],
        ),
        (
            "provider.content_refused",
            [
                "Blocked by our safety system",
                "It violates the usage policy",
                "Content exists risk",
                "Potential NSFW content was detected",
                "The prompt was deemed harmful",
                "Your image was flagged",
                "This text is not allowed by the content policy",
                "内容违规",
            ],
        ),
        (
            "provider.capability_missing",
            ["This model does not support images", "logprobs are unsupported here"],
        ),
        (
            "provider.permission",
            [
                "Your organization has been disabled",
                "This location is not supported",
                "The tool use was rejected",
                "Declined by the user",
                "You have not granted the permission yet",
                "Nobody approved it: not approved",
                "Insufficient privileges",
                "The resource is not accessible",
                "Missing Permissions",
                "Missing Access",
            ],
        ),
        ("provider.rate_limited", ["You are sending messages too quickly", "请求过于频繁"]),
        ("provider.overloaded", ["We see high demand at the moment", "系统繁忙"]),
        ("provider.bad_request", ["temperature must be between 0 and 2"]),
        ("provider.connection", ["Failed to connect to the daemon", "Connection refused"]),
    ],
)
def test_rewordings_say_the_same(kind: str, texts: list[str]) -> None:
    assert {text: kind_of(text) for text in texts} == dict.fromkeys(texts, kind)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Field 'x' not found in model", "provider.bad_request"),
        ("tensor not found in the model", "provider.bad_request"),
        ("The column 'x' was not found in model 'orders'.", "provider.bad_request"),
        ("x-9 was not found in the model registry", "provider.model_not_found"),
        ("x-9 is not found in model list", "provider.model_not_found"),
        ("not found in models", "provider.model_not_found"),
    ],
)
def test_what_is_looked_for_in_a_model_is_another_thing(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("code", "concept"),
    [
        ("room_not_found", "out_of_memory"),
        ("zoomapierror", "out_of_memory"),
        ("too_much_data", "out_of_memory"),
        ("invalidloadbalanceraction", "money"),
        ("rebalancefailed", "money"),
        ("invalid_refund", "money"),
        ("tokenizererror", "key"),
        ("explanation_required", "plan"),
        ("conversion_not_found", "version"),
    ],
)
def test_a_word_inside_another_word_of_a_code_is_not_read(code: str, concept: str) -> None:
    assert concept not in {hit[2] for hit in concepts_of_code(code)}
    assert not LEXICON.covers(code)


@pytest.mark.parametrize(
    ("code", "concept"),
    [
        ("workeroomerror", "out_of_memory"),
        ("containeroomkilled", "out_of_memory"),
        ("oom", "out_of_memory"),
        ("store_balance_too_low", "money"),
        ("token_is_expired", "key"),
        ("plan_expired", "plan"),
        ("min_version_required", "version"),
    ],
)
def test_a_word_of_a_code_is_read_whatever_stands_before_it(code: str, concept: str) -> None:
    assert concept in {hit[2] for hit in concepts_of_code(code)}


def test_a_clock_or_a_calendar_says_that_a_window_is_long() -> None:
    long = [
        "resets 8pm (America/New_York)",
        "try again at 3:42 PM",
        "resets on Monday",
        "in 3 days",
        "until June 3",
    ]
    short = ["resets in 20s", "try again in 5 minutes", "resets at 1712345678", "may 5 retries"]

    assert [text for text in long if not statement_of(text.lower()).names_long_window] == []
    assert [text for text in short if statement_of(text.lower()).names_long_window] == []


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"message": "You've hit your limit · resets 8pm"}, "provider.quota_exhausted"),
        ({"message": "Cannot truncate prompt with n_keep (42) >= n_ctx (40)"}, "provider.context_too_long"),
        ({"message": "prompt tokens 9000 > 8192", "http_status": 400}, "provider.context_too_long"),
        ({"message": "expected dim: 1536, got 768"}, "provider.bad_request"),
        ({"message": "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"}, "provider.bad_request"),
        ({"message": "[Request interrupted by user]"}, "cancel.run"),
        ({"message": "The user aborted a request."}, "cancel.run"),
        (
            {"message": "Your 9132 tokens are above the limit of 8192", "http_status": 400},
            "provider.context_too_long",
        ),
        ({"message": "Limit of 40000 tokens per minute"}, "provider.rate_limited"),
        ({"message": "Unsupported country, region, or territory", "http_status": 403}, "provider.permission"),
        ({"message": "Input should be greater than 128", "http_status": 422}, "provider.bad_request"),
        ({"message": "the prompt is invalid: 5 > 2", "http_status": 400}, "provider.bad_request"),
    ],
)
def test_numbers_that_are_compared_and_people_that_stop_work_are_read(
    row: dict[str, object], kind: str
) -> None:
    assert read_saved(row).kind == kind


def test_what_a_thing_is_called_says_nothing() -> None:
    assert kind_of("Wrote 'model-not-found-handler.py'") is None
    assert kind_of("see https://example.invalid/model/not/found for more") is None
    assert kind_of("loaded `quota_exceeded`") is None


def test_without_the_negation_the_same_words_mean_nothing() -> None:
    assert kind_of("The model was found and is supported, enabled and available") is None


def test_a_subject_and_a_state_of_different_clauses_are_not_put_together() -> None:
    assert kind_of("Your model is ready. The picture does not exist") != "provider.model_not_found"


@pytest.mark.parametrize(
    ("code", "concepts"),
    [
        ("deploymentnotfound", {"model", "missing"}),
        ("insufficient_quota", {"exhausted", "quota"}),
        ("ServiceQuotaExceededException".lower(), {"quota", "exceeded"}),
        ("context_length_exceeded", {"context", "exceeded"}),
        ("linkupinsufficientcrediterror", {"exhausted", "money"}),
    ],
)
def test_a_code_is_read_by_its_words(code: str, concepts: set[str]) -> None:
    assert concepts <= {hit[2] for hit in concepts_of_code(code)}


def test_texts_that_differ_in_numbers_are_read_once_and_none_is_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget()
    read: list[str] = []
    original = LEXICON.read

    def counted(low: str) -> list[Hit]:
        read.append(low)
        return original(low)

    monkeypatch.setattr(LEXICON, "read", counted)

    for number in range(100, 999):
        statement_of(f"limit {number}, used {number}: secret words of a user")

    assert len(read) == 1
    assert all(isinstance(key, int) for key in vars(reader)["_statements"])
    forget()


def test_one_word_in_brackets_interrupts_no_clause() -> None:
    hits = LEXICON.read("memory limit (total) exceeded: would use 56 gib (of 64)")

    assert {clause for _, clause, concept in hits if concept in ("memory", "exceeded")} == {0}


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (
            "extension.dependency_missing",
            [
                "The acme package is not installed",
                "Please install acme to read this file",
                "No suitable driver found",
                "The library could not be found",
                "acme requires Python 3.12 or newer",
                "Driver and library version mismatch",
                "This build only supports GPUs of another generation",
                "these package versions have conflicting dependencies",
                "Your version of acme is out of date",
            ],
        ),
        (
            "provider.bad_request",
            [
                "Could not parse the document",
                "cannot convert string to float",
                "unable to decode the body",
                "The archive is corrupt",
                "Unexpected token < at position 0",
                "mismatched types",
                "a duplicate name",
                "that name is already taken",
                "index out of range",
            ],
        ),
        (
            "provider.context_too_long",
            [
                "The file exceeds the size that is allowed",
                "received message larger than max",
                "request body too large",
                "exceeded model token limit",
            ],
        ),
        ("provider.auth", ["Login failed", "no api key", "The signature is invalid", "login required"]),
        ("provider.permission", ["Authorization violation", "You do not have permission for that"]),
        (
            "validation.config_invalid",
            ["the configuration is missing", "no DISPLAY environment variable", "unknown directive"],
        ),
        ("provider.outcome_unknown", ["The script ran into its time limit", "it took longer", "time out"]),
    ],
)
def test_what_is_not_installed_too_large_or_malformed_is_said_in_many_ways(
    kind: str, texts: list[str]
) -> None:
    assert {text: kind_of(text) for text in texts} == dict.fromkeys(texts, kind)


@pytest.mark.parametrize(
    "text",
    [
        "The public key is not available",
        "No available formula with that name",
        "Nothing is available here",
        "You have exceeded your limit of networks",
        "these tensors have already been freed",
    ],
)
def test_what_is_not_available_or_at_its_limit_is_not_repeated(text: str) -> None:
    kind = read_saved({"message": text, "transport": "local"}).kind

    assert not registered_kind(kind).category.retryable


@pytest.mark.parametrize("text", ["Can't connect to the server", "Couldn't reach the server"])
def test_a_negation_may_be_the_first_word(text: str) -> None:
    assert kind_of(text) == "provider.connection"


def test_a_sentence_that_was_wrapped_is_one_sentence() -> None:
    wrapped = "The identity does not have\npermissions for that action"

    assert read_saved({"message": wrapped, "transport": "http"}).kind == "provider.permission"


@pytest.mark.parametrize(
    "text",
    [
        "Error: The operation was canceled.",
        "*** JOB 12 ON n1 CANCELLED AT 2026-01-02T03:04:05 ***",
        "The workflow was cancelled",
        "terminated by the administrator",
    ],
)
def test_what_somebody_stopped_is_cancelled(text: str) -> None:
    assert read_saved({"message": text, "transport": "local"}).kind == "cancel.run"


def test_a_job_that_its_time_limit_ended_was_not_cancelled() -> None:
    text = "*** JOB 12 ON n1 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***"

    assert read_saved({"message": text, "transport": "local"}).kind == "provider.outcome_unknown"
