"""A traceback that was copied as text is described like the exception it was printed from."""

import traceback
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from failwell.adapters.describe import describe
from failwell.adapters.log_records.pasted import describe_pasted
from failwell.errors.faults import Validation
from failwell.errors.report import ErrorReport

PLAIN = """\
Traceback (most recent call last):
  File "/srv/app/shop/checkout.py", line 12, in pay
    charge(card)
    ~~~~~~^^^^^^
  File "/usr/lib/python3.13/site-packages/stripe/api.py", line 90, in charge
    raise TimeoutError("slow")
TimeoutError: slow
"""


def raised(error: Exception) -> Exception:
    """`error`, after it has really been raised, so that it has a stack."""
    try:
        raise error
    except Exception as caught:
        return caught


def printed(error: Exception) -> str:
    return "".join(traceback.format_exception(error))


def tree(report: ErrorReport) -> list[tuple[str, str | None, str, int]]:
    return [(cause.type, cause.kind, cause.via, cause.level) for cause in report.causes]


def a_chain() -> Exception:
    try:
        try:
            raise KeyError("missing")
        except KeyError as below:
            raise RuntimeError("wrapped\nin two lines") from below
    except RuntimeError:
        try:
            raise ConnectionResetError(104, "Connection reset by peer")
        except OSError as outer:
            outer.add_note("while paying")
            return outer


def a_group() -> Exception:
    inner = ExceptionGroup("inner", [raised(OSError(28, "No space left on device")), TypeError("bad")])
    return raised(ExceptionGroup("outer", [raised(a_chain()), raised(inner), ValueError("1\n2")]))


@pytest.mark.parametrize("make", [a_chain, a_group], ids=["chain", "group"])
def test_a_printed_exception_is_described_like_the_live_one(make: Callable[[], Exception]) -> None:
    error = make()

    pasted = describe_pasted(printed(error))

    live = describe(error)
    assert (pasted.kind, pasted.error_type, pasted.category) == (live.kind, live.error_type, live.category)
    assert tree(pasted) == tree(live)


LEAVES = st.sampled_from([ValueError, KeyError, OSError, TimeoutError, ZeroDivisionError, MemoryError])
WORDS = st.sampled_from(["", "x", "a: b", "two\nlines", "[Errno 2] gone", "  indented"])


def _joined(parts: tuple[Exception, Exception | None, bool]) -> Exception:
    error, below, as_cause = parts
    if below is not None and as_cause:
        error.__cause__ = below
    elif below is not None:
        error.__context__ = below
    return raised(error)


def _linked(below: st.SearchStrategy[Exception]) -> st.SearchStrategy[Exception]:
    leaf = st.tuples(LEAVES, WORDS).map(lambda made: made[0](made[1]))
    group = st.lists(below, min_size=1, max_size=3).map(lambda members: ExceptionGroup("several", members))
    return st.tuples(leaf | group, st.none() | below, st.booleans()).map(_joined)


TREES = st.recursive(
    st.tuples(LEAVES, WORDS).map(lambda made: raised(made[0](made[1]))), _linked, max_leaves=8
)


@given(TREES)
def test_any_tree_of_exceptions_comes_back_with_its_shape(error: Exception) -> None:
    pasted = describe_pasted(printed(error))

    types = [(kind, via, level) for kind, _, via, level in tree(describe(error))]
    assert [(kind, via, level) for kind, _, via, level in tree(pasted)] == types
    assert pasted.error_type == type(error).__name__


@given(
    st.lists(
        st.sampled_from(
            [
                "Traceback (most recent call last):",
                "  + Exception Group Traceback (most recent call last):",
                "  | ExceptionGroup: x (2 sub-exceptions)",
                "  +-+---------------- 1 ----------------",
                "    | ValueError: x",
                "    +---------------- 2 ----------------",
                "    +------------------------------------",
                '  File "x.py", line 3, in f',
                "    source()",
                "ValueError: x",
                "During handling of the above exception, another exception occurred:",
                "The above exception was the direct cause of the following exception:",
                "╭─ Traceback (most recent call last) ─╮",
                "app-1 | Traceback (most recent call last):",
                "",
            ]
        )
        | st.text(max_size=40),
        max_size=30,
    ).map("\n".join)
)
@example("  +-+---------------- 1 ----------------\n    | ValueError: x")
def test_no_text_whatsoever_breaks_the_reader(text: str) -> None:
    try:
        named = describe_pasted(text).error_type
    except Validation as refused:
        named = refused.kind

    assert named


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.replace("    ~~~~~~^^^^^^\n", "    ^^^^^^^^^^^^\n"),
        PLAIN.split("\n", 1)[1],
        "2026-01-01 10:00:00 ERROR shop: " + PLAIN,
        "".join(f"2026-01-01 10:00:0{n} web-1  | {line}\n" for n, line in enumerate(PLAIN.splitlines())),
        "".join(f"> {line}\n" for line in PLAIN.splitlines()),
        "".join(f"    {line}\n" for line in PLAIN.splitlines()),
        PLAIN + "2026-01-01 10:00:00 INFO next request\n",
        PLAIN.replace("TimeoutError", "\x1b[1;35mTimeoutError\x1b[0m"),
        PLAIN.replace("\n", "\r\n"),
        "ValueError: an older one\n\n" + PLAIN,
        "Traceback (most recent call last):\nValueError: an older one\n" + PLAIN,
    ],
    ids=[
        "new markers", "old markers", "head cut off", "prefix on the first line", "container log", "quoted mail",
        "indented", "log goes on", "colours", "windows lines", "stray line before", "older traceback before",
    ],
)  # fmt: skip
def test_one_traceback_reads_the_same_however_it_was_copied(text: str) -> None:
    report = describe_pasted(text, policy="repr_only")

    expected = describe_pasted(PLAIN, policy="repr_only")
    assert report.error_type == "TimeoutError"
    assert report.message == "slow"
    assert report.causes == ()
    assert report.fingerprint == expected.fingerprint


def test_the_fingerprint_stands_on_the_applications_own_frame() -> None:
    moved = PLAIN.replace("line 12", "line 99").replace("stripe/api.py", "stripe/v2/client.py")
    elsewhere = PLAIN.replace("in pay", "in refund")

    fingerprints = [describe_pasted(text).fingerprint for text in (PLAIN, moved, elsewhere)]

    assert fingerprints[0] == fingerprints[1]
    assert fingerprints[0] != fingerprints[2]


def test_a_function_of_ones_own_has_the_fingerprint_it_has_live() -> None:
    error = a_failure_in_a_function()

    assert describe_pasted(printed(error)).fingerprint == describe(error).fingerprint


def a_failure_in_a_function() -> Exception:
    try:
        raise LookupError("x")
    except LookupError as caught:
        return caught


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("OSError: [Errno 28] No space left on device: '/data/x'", "resource.disk"),
        ("E   ConnectionRefusedError: [Errno 111] Connection refused", "provider.connection"),
        ("FAILED tests/test_x.py::test_y - MemoryError: out", "resource.system_memory"),
        ("json.decoder.JSONDecodeError: Expecting value: line 3 column 7 (char 20)", "internal.unknown"),
        ("subprocess.CalledProcessError: Command 'x' returned non-zero exit status 127.", "internal.spawn_failed"),
        ("failwell.errors.faults.WorkerOOMError: the worker died", "worker.oom"),
        ("KeyboardInterrupt", "cancel.run"),
        ("some.module.Unheard: of", "internal.unknown"),
        ("failwell.elsewhere.UnheardError: of", "internal.unknown"),
        ("acme.client.ApiError: Error code: 503 - try later", "provider.overloaded"),
        ("acme.client.ApiError: Error code: 429 - {'error': {'code': 'insufficient_quota'}}",
         "provider.quota_exhausted"),
        ("urllib.error.HTTPError: HTTP Error 401: Unauthorized", "provider.auth"),
    ],
)  # fmt: skip
def test_the_last_line_alone_is_enough(line: str, kind: str) -> None:
    assert describe_pasted(line).kind == kind


def test_what_follows_a_group_is_not_taken_for_the_words_of_its_last_member() -> None:
    report = describe_pasted(printed(a_group()) + "the server is up again\n", policy="repr_only")

    assert report.causes[-1].message == "1\n2"
    assert report.message == "outer (3 sub-exceptions)"


@pytest.mark.parametrize("name", ["pkg.Outer.Boom", "pkg.mod.make.<locals>.Boom", "make.<locals>.Boom"])
def test_a_class_inside_a_class_or_a_function_is_called_by_its_own_name(name: str) -> None:
    report = describe_pasted(f'  File "x.py", line 1, in f\n{name}: it broke\n')

    assert report.error_type == "Boom"


def test_a_missing_module_is_named() -> None:
    report = describe_pasted("ModuleNotFoundError: No module named 'pandas'")

    assert report.message == "The Python module `pandas` is not installed."


def test_a_syntax_error_is_read_past_its_source() -> None:
    text = "  File \"f.py\", line 1\n    foo(\n       ^\nSyntaxError: '(' was never closed\n"

    assert describe_pasted(text).error_type == "SyntaxError"


def test_a_chain_whose_outer_part_was_cut_off_gives_what_is_left() -> None:
    text = printed(a_chain()).split("ConnectionResetError")[0]

    report = describe_pasted(text)

    assert report.error_type == "RuntimeError"
    assert [cause.type for cause in report.causes] == ["KeyError"]


def test_a_richly_printed_traceback_is_read() -> None:
    text = (
        "╭──────── Traceback (most recent call last) ────────╮\n"
        "│ /srv/app/shop/checkout.py:12 in pay               │\n"
        "│                                                   │\n"
        "│ ❱ 12 │   charge(card)                             │\n"
        "╰───────────────────────────────────────────────────╯\n"
        "TimeoutError: slow\n"
    )

    report = describe_pasted(text)

    assert report.error_type == "TimeoutError"
    assert report.fingerprint == describe_pasted(PLAIN).fingerprint


def test_a_remote_traceback_inside_a_message_becomes_the_cause() -> None:
    text = (
        'concurrent.futures.process._RemoteTraceback: \n"""\n' + PLAIN + '"""\n\n'
        "The above exception was the direct cause of the following exception:\n\n" + PLAIN
    )

    report = describe_pasted(text)

    assert [cause.type for cause in report.causes] == ["TimeoutError"]


SECRET = "openai.APIError: no key sk-abcdefghijklmnop1234 for prompt 'my diagnosis'"


def test_nothing_the_exception_said_is_kept_by_default() -> None:
    report = describe_pasted(SECRET)

    assert "diagnosis" not in report.to_json()
    assert report.internal is None


@pytest.mark.parametrize(
    "text", [SECRET, "failwell.errors.faults.Validation: my diagnosis sk-abcdefghijklmnop1234"]
)
def test_words_that_may_be_kept_are_redacted_and_for_operators_alone(text: str) -> None:
    report = describe_pasted(text, policy="repr_only")

    assert "diagnosis" in report.message
    assert "sk-abcdefghijklmnop1234" not in report.to_json()
    for audience in ("user", "model"):
        assert "diagnosis" not in str(report.view(audience))


def test_the_whole_text_is_kept_only_on_request() -> None:
    brief, full = describe_pasted(PLAIN, policy="repr_only"), describe_pasted(PLAIN, policy="full")

    assert brief.internal is not None
    assert brief.internal.repr == "TimeoutError: slow"
    assert brief.internal.traceback is None
    assert full.internal is not None
    assert full.internal.traceback == PLAIN.strip()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("error: the value of column birthday is not a valid date", "provider.bad_request"),
    ],
)  # fmt: skip
def test_a_text_that_says_that_it_failed_is_read_by_its_words(text: str, kind: str) -> None:
    assert describe_pasted(text).kind == kind


@pytest.mark.parametrize(
    "text",
    [
        "The quick start explains how the monthly plan works and where to find your invoices.", "12 passed, 0 errors", "no errors found in 7 files",
        "tests: 7, failures: 0", "Server is starting on port 8080", "The config is loaded from /etc/app.toml", "the meeting is already in progress",
        "cache hit for request 5 of 6 per minute", "The user reached maximum level 5",
    ],
)  # fmt: skip
def test_prose_is_no_failure(text: str) -> None:
    with pytest.raises(Validation):
        describe_pasted(text)


@pytest.mark.parametrize(
    "text", ["", "hello", "ERROR: it broke\nError: really", "Note: see Warning: x", "a: b"]
)
def test_a_text_that_names_no_exception_is_refused(text: str) -> None:
    with pytest.raises(Validation, match="no line of the text names an exception"):
        describe_pasted(text)


def test_a_class_of_which_no_frame_is_shown_may_be_the_programs_own() -> None:
    text = "Traceback (most recent call last):\nmyapp.errors.PaymentFailed: service is busy"

    assert describe_pasted(text).kind == "internal.unknown"


def test_a_record_that_only_informs_does_not_decide() -> None:
    text = (
        "2026-05-06 21:02:17 ERROR spawn python ENOENT\n"
        "2026-05-06 21:02:18 INFO bye; write more with `console.error` if the connection was refused"
    )

    assert describe_pasted(text).kind == "internal.file_unavailable"


def test_a_panic_decides_and_not_what_was_logged_before() -> None:
    text = (
        "2026/06/05 12:28:32 start: 404 Not Found\n"
        "panic: runtime error: invalid memory address or nil pointer dereference\n\ngoroutine 1 [running]:\n"
    )

    assert describe_pasted(text).kind == "internal.bug"


def test_a_report_from_a_paste_survives_the_wire() -> None:
    report = describe_pasted(printed(a_group()), policy="full")

    assert ErrorReport.from_json(report.to_json()) == report


def test_a_huge_line_and_a_huge_chain_are_read_in_bounds() -> None:
    long_line = "a." * 2_000_000 + "Error: x"
    link = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    deep = "".join(f"      {'  ' * n}| " for n in range(50))

    report = describe_pasted(long_line + "\n" + deep + "\n" + link.join(["ValueError: x"] * 5_000))

    assert report.error_type == "ValueError"
    assert len(report.causes) < 40


def test_stand_ins_import_no_vendor() -> None:
    import sys

    before = set(sys.modules)

    describe_pasted("antigravity.SomeError: no\n\nthis.Thing: x")

    loaded: set[Any] = set(sys.modules) - before
    assert not loaded & {"antigravity", "this"}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("openai.RateLimitError: Error code: 429 - {'error': {'message': 'x', 'code': 'insufficient_quota'}}",
         "provider.quota_exhausted"),
        ("openai.RateLimitError: Error code: 429 - {'error': {'message': 'x', 'code': 'rate_limit_exceeded'}}",
         "provider.rate_limited"),
        ("openai.BadRequestError: Error code: 400 - {'error': {'message': 'x', 'code': 'context_length_exceeded'}}",
         "provider.context_too_long"),
        ("anthropic.APIStatusError: {'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'Overloaded'}}",
         "provider.overloaded"),
        ('anthropic.BadRequestError: Error code: 400 - {"error": {"message": "Your credit balance is too low"}}',
         "provider.quota_exhausted"),
        (("google.genai.errors.ClientError: 429 RESOURCE_EXHAUSTED. {'error': {'code': 429, 'status': "
         "'RESOURCE_EXHAUSTED', 'details': [{'violations': [{'quotaId': 'GenerateRequestsPerDayPerProject'}]}]}}"),
         "provider.quota_exhausted"),
        (("botocore.errorfactory.ThrottlingException: An error occurred (ThrottlingException) when calling the "
         "Converse operation (reached max retries: 4): Too many tokens"), "provider.rate_limited"),
        ("mistralai.models.sdkerror.SDKError: API error occurred: Status 401. Body: {'detail': 'Unauthorized'}",
         "provider.auth"),
        ("cohere.errors.too_many_requests_error.TooManyRequestsError: headers: {}, status_code: 429, body: x",
         "provider.rate_limited"),
        ("httpx2.ReadTimeout: timed out", "provider.outcome_unknown"),
        ("httpx.ConnectError: [Errno 111] Connection refused", "provider.connection"),
    ],
)  # fmt: skip
def test_what_a_providers_client_printed_is_judged_like_its_exception(line: str, kind: str) -> None:
    report = describe_pasted(line)

    assert report.kind == kind
    assert report.evidence[0].rule.startswith("provider.")


def test_a_printed_connection_error_is_judged_by_the_causes_printed_above_it() -> None:
    above = "httpx.ConnectError: [Errno 111] Connection refused"
    link = "\n\nThe above exception was the direct cause of the following exception:\n\n"

    report = describe_pasted(f"{above}{link}openai.APIConnectionError: Connection error.")

    assert (report.kind, report.error_type) == ("provider.connection", "APIConnectionError")
    assert [cause.type for cause in report.causes] == ["ConnectError"]


def test_a_wait_in_the_printed_words_is_read() -> None:
    report = describe_pasted("groq.RateLimitError: Error code: 429 - Please try again in 7m12s.")

    assert report.not_before is not None
    assert report.not_before.after == 432
