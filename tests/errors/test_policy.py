"""How much of an exception's own words is kept, under each policy."""

from typing import Any

import pytest

import failwell
from failwell import errors
from failwell.capability import TracebackPolicy
from failwell.errors.report import ENVIRONMENT_VARIABLE, default_policy
from failwell.testing.builders import make_fault

SECRET = "the patient is called Ada"


def raised() -> BaseException:
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as below:
            raise ValueError(f"could not read: {SECRET}") from below
    except ValueError as error:
        error.add_note(SECRET)
        return error


def test_full_keeps_message_repr_and_traceback_with_its_causes() -> None:
    report = failwell.describe(raised(), policy="full")

    assert report.message == f"could not read: {SECRET}"
    assert report.causes[0].message == repr(SECRET)
    assert report.internal is not None
    assert report.internal.repr == f"ValueError('could not read: {SECRET}')"
    text = report.internal.traceback or ""
    assert text.index("KeyError") < text.index("direct cause") < text.index("ValueError: could not read")
    assert "in raised" in text
    assert text.count(SECRET) >= 3


def test_repr_only_keeps_message_and_repr() -> None:
    report = failwell.describe(raised(), policy="repr_only")

    assert report.message == f"could not read: {SECRET}"
    assert report.internal is not None
    assert report.internal.repr == f"ValueError('could not read: {SECRET}')"
    assert SECRET not in (report.internal.traceback or SECRET)


def test_none_keeps_the_repr_alone() -> None:
    report = failwell.describe(raised(), policy="none")

    assert report.message == errors.kind("internal.bug").summary
    assert [c.message for c in report.causes] == [None]
    assert report.internal is not None
    assert (SECRET in report.internal.repr, SECRET in (report.internal.traceback or SECRET)) == (True, False)


def test_strict_keeps_types_and_places_and_nothing_that_was_said() -> None:
    report = failwell.describe(raised(), policy="strict")

    assert SECRET not in report.to_json()
    assert (report.error_type, report.causes[0].type) == ("ValueError", "KeyError")
    assert report.internal is not None
    assert report.internal.repr == "ValueError"
    code = raised.__code__
    first, second = code.co_firstlineno + 3, code.co_firstlineno + 5
    assert report.internal.traceback == (
        "Traceback (most recent call last):\n"
        f'  File "{code.co_filename}", line {first}, in raised\n'
        "KeyError: [withheld]\n"
        "\nThe above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        f'  File "{code.co_filename}", line {second}, in raised\n'
        "ValueError: [withheld]\n"
    )


def test_strict_is_the_default() -> None:
    report = failwell.describe(raised())

    assert report.internal == failwell.describe(raised(), policy="strict").internal
    assert SECRET not in report.to_json()


def test_what_was_never_raised_has_no_traceback() -> None:
    assert failwell.describe(KeyError(SECRET)).internal is None


@pytest.mark.parametrize("policy", ["strict", "full"])
def test_every_member_of_a_group_keeps_its_own_frames_and_causes(policy: str) -> None:
    group = ExceptionGroup("two", [raised(), ExceptionGroup("more", [ConnectionResetError(SECRET)])])  # pyright: ignore[reportArgumentType]

    internal = failwell.describe(group, policy=policy).internal

    text = (internal and internal.traceback) or ""
    assert text.startswith("ExceptionGroup: ")
    assert text.count("  |   File ") == 2
    assert text.index("  | KeyError") < text.index("  | The above exception") < text.index("  | ValueError")
    assert "\n  |   | ConnectionResetError: " in text
    assert (SECRET in text) == (policy == "full")


def test_a_secret_that_is_registered_later_is_masked_in_a_stack_that_was_seen_before() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile("1 / 0", "/run/tenant-of-the-bakery/job.py", "exec"))
    before = failwell.describe(caught.value).internal

    failwell.register_secret("tenant-of-the-bakery")
    after = failwell.describe(caught.value).internal

    assert "/run/tenant-of-the-bakery/job.py" in str(before)
    assert "/run/[redacted]/job.py" in str(after)
    assert "bakery" not in str(after)


def test_a_class_whose_metaclass_raises_and_a_class_without_a_module_have_a_stack() -> None:
    class Meta(type):
        @property
        def __module__(cls) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
            raise RuntimeError

    class Lying(Exception, metaclass=Meta):
        pass

    bare: Any = {}
    exec("class Bare(Exception): pass", {"__builtins__": __builtins__}, bare)
    for cls, name in ((Lying, "Lying"), (bare["Bare"], "Bare")):
        with pytest.raises(cls) as caught:
            raise cls

        report = failwell.describe(caught.value)

        assert (report.error_type, report.evidence[0].rule == "describe_failed") == (name, False)
        assert f"{name}: [withheld]\n" in str(report.internal and report.internal.traceback)


def test_a_secret_in_a_file_name_is_masked() -> None:
    key = "sk-" + "q1w2e3r4t5y6u7i8o9"
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile("1 / 0", f"/run/{key}/job.py", "exec"))

    internal = failwell.describe(caught.value).internal

    assert "/job.py" in str(internal)
    assert key not in str(internal)


def test_strict_never_calls_a_foreign_str_or_repr() -> None:
    called: list[str] = []

    class Nosy(Exception):
        def __str__(self) -> str:
            called.append("str")
            return "x"

        def __repr__(self) -> str:
            called.append("repr")
            return "x"

    failwell.describe(Nosy())

    assert called == []


@pytest.mark.parametrize("policy", list(TracebackPolicy))
def test_our_own_words_are_kept_under_every_policy(policy: TracebackPolicy) -> None:
    report = failwell.describe(make_fault(message="the queue is full"), policy=policy)

    assert report.message == "the queue is full"


@pytest.mark.parametrize("policy", list(TracebackPolicy))
@pytest.mark.parametrize("audience", ["user", "model"])
def test_foreign_words_reach_neither_user_nor_model_under_any_policy(
    policy: TracebackPolicy, audience: str
) -> None:
    report = failwell.describe(raised(), policy=policy)

    assert SECRET not in str(report.view(audience))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("asked", ["full", "FULL", " full "])
def test_the_environment_sets_the_default(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, asked)

    assert default_policy() is TracebackPolicy.FULL
    assert SECRET in failwell.describe(raised()).to_json()
    assert SECRET not in failwell.describe(raised(), policy="strict").to_json()


def test_a_change_of_the_environment_counts_for_the_next_report(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    for policy in ("full", "strict", "repr_only", None, "full"):
        if policy is None:
            monkeypatch.delenv(ENVIRONMENT_VARIABLE)
        else:
            monkeypatch.setenv(ENVIRONMENT_VARIABLE, policy)
        messages.append(failwell.describe(raised()).message)

    assert [SECRET in message for message in messages] == [True, False, True, False, True]


@pytest.mark.parametrize("asked", ["", "everything", "ful"])
def test_a_mistake_in_the_environment_means_strict(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, asked)

    assert default_policy() is TracebackPolicy.STRICT


def test_a_mistake_in_a_call_means_strict_and_costs_no_classification() -> None:
    report = failwell.describe(raised(), policy="everything")

    assert report.kind == "internal.bug"
    assert SECRET not in report.to_json()


def test_what_sdks_keep_in_attributes_is_masked_in_their_messages() -> None:
    class ApiError(Exception):
        body = {"error": {"message": "Ada Lovelace, born 1815"}}
        prompt = b"write to Ada Lovelace, born 1815"

    report = failwell.describe(ApiError("400 - Ada Lovelace, born 1815"), policy="full")

    assert report.message == "400 - [redacted]"
    assert "Lovelace, born" not in str(report.internal)


def test_an_exception_that_will_not_speak_is_described_by_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

        def __repr__(self) -> str:
            raise GeneratorExit("no")

    report = failwell.describe(Mute(), policy="full")

    assert report.message == errors.kind("internal.unknown").summary
    assert report.internal is not None
    assert report.internal.repr == "Mute()"


def test_an_exception_with_a_huge_argument_is_not_printed() -> None:
    report = failwell.describe(ValueError("x" * 1_000_000), policy="none")

    assert report.internal is not None
    assert report.internal.repr == "ValueError(… [arguments too large])"


@pytest.mark.parametrize(
    ("policy", "said"), [("full", "maximum recursion depth exceeded"), ("strict", "[withheld]")]
)
def test_a_deep_recursion_keeps_the_last_frames_and_stays_small(policy: str, said: str) -> None:
    def dive() -> None:
        dive()

    with pytest.raises(RecursionError) as caught:
        dive()
    report = failwell.describe(caught.value, policy=policy)

    assert report.internal is not None
    text = report.internal.traceback or ""
    assert text.rstrip().endswith(f"RecursionError: {said}")
    assert len(text) <= 12_000


def test_members_of_a_group_are_listed_below_its_traceback() -> None:
    report = failwell.describe(ExceptionGroup("two", [KeyError("a"), OSError("b")]), policy="full")

    assert report.internal is not None
    assert "  | KeyError: 'a'\n  | OSError: b\n" in (report.internal.traceback or "")
