"""The errors of the job world: four categories, and none of them a `ValueError`."""

import pickle

import pytest

import failwell
from failwell.capability import (
    CapabilityCancelledError,
    CapabilityConfigError,
    CapabilityDisabledError,
    CapabilityError,
    CapabilityFatalError,
    CapabilityInputError,
    CapabilityNotLoadedError,
    CapabilityResourceError,
    CapabilityTimeoutError,
    CapabilityTransientError,
    ResourceShortfall,
    WorkerOOMError,
    classify_exception,
)

SHORT = ResourceShortfall(resource="gpu_vram_mb", needed=16_000, available=8_000)


def one_of_each() -> list[CapabilityError]:
    return [
        CapabilityError("odd"),
        CapabilityInputError("bad", fields_invalid=["size"]),
        CapabilityTransientError("slow", retry_after_seconds=5.0),
        CapabilityResourceError("full", resource_shortfall=SHORT),
        CapabilityFatalError("broken"),
        CapabilityDisabledError("whisper"),
        CapabilityConfigError("bad key", fields_invalid=["model"], config_class_name="WhisperConfig"),
        CapabilityNotLoadedError("whisper"),
        CapabilityTimeoutError("whisper", 30.0, retry_after_seconds=60.0),
        CapabilityCancelledError("whisper"),
        WorkerOOMError("whisper", process_returncode=-9),
    ]


def name_of(error: CapabilityError) -> str:
    return type(error).__name__


@pytest.mark.acceptance("cjm-substrate 1")
@pytest.mark.parametrize("error", one_of_each(), ids=name_of)
def test_no_capability_error_can_be_caught_as_a_value_error(error: CapabilityError) -> None:
    with pytest.raises(CapabilityError):
        try:
            raise error
        except ValueError:
            pytest.fail("a capability error was caught as a ValueError")


@pytest.mark.acceptance("cjm-substrate 2")
@pytest.mark.parametrize(
    ("made", "category", "may_be_resubmitted"),
    [
        (CapabilityInputError, "user_input", True),
        (CapabilityTransientError, "transient", True),
        (CapabilityResourceError, "resource", True),
        (CapabilityFatalError, "fatal", False),
    ],
)
def test_each_base_class_fixes_its_category_and_whether_a_resubmit_makes_sense(
    made: type[CapabilityError], category: str, may_be_resubmitted: bool
) -> None:
    assert (made.category, made.default_retriable) == (category, may_be_resubmitted)
    assert (made("x").category, made("x").default_retriable) == (category, may_be_resubmitted)


@pytest.mark.acceptance("cjm-substrate 3")
def test_a_disabled_capability_is_an_input_error_that_names_it() -> None:
    error = CapabilityDisabledError("w")

    assert isinstance(error, CapabilityInputError)
    assert (error.capability_name, error.category) == ("w", "user_input")
    assert "'w'" in str(error)


@pytest.mark.acceptance("cjm-substrate 4")
def test_a_capability_that_is_not_loaded_is_fatal() -> None:
    error = CapabilityNotLoadedError("w")

    assert isinstance(error, CapabilityFatalError)
    assert (error.category, error.default_retriable, error.capability_name) == ("fatal", False, "w")


@pytest.mark.acceptance("cjm-substrate 5")
def test_a_timeout_keeps_its_limit_and_its_hint_and_says_the_seconds() -> None:
    error = CapabilityTimeoutError("w", timeout_seconds=30, retry_after_seconds=60)

    assert isinstance(error, CapabilityTransientError)
    assert (error.timeout_seconds, error.retry_after_seconds, error.category) == (30, 60, "transient")
    assert "30.0" in str(error)


def test_a_timeout_without_a_hint_has_none() -> None:
    assert CapabilityTimeoutError("w", 30).retry_after_seconds is None


@pytest.mark.acceptance("cjm-substrate 6")
def test_a_cancelled_job_is_transient_in_name_and_never_repeated() -> None:
    error = CapabilityCancelledError("w")

    report = failwell.describe(error)

    assert isinstance(error, CapabilityTransientError)
    assert (error.category, error.default_retriable) == ("transient", False)
    assert "cancelled by operator" in str(error)
    assert (report.kind, report.category, report.retryable) == ("cancel.job", "cancelled", False)


@pytest.mark.acceptance("cjm-substrate 7")
def test_a_worker_killed_for_memory_names_worker_and_return_code() -> None:
    error = WorkerOOMError("w", process_returncode=-9)

    assert isinstance(error, CapabilityResourceError)
    assert (error.default_retriable, error.resource_shortfall, error.process_returncode) == (True, None, -9)
    assert "'w'" in str(error)
    assert "returncode=-9" in str(error)


@pytest.mark.acceptance("cjm-substrate 7")
def test_a_worker_killed_without_a_known_code_says_none_and_its_own_message_replaces_all() -> None:
    assert "returncode" not in str(WorkerOOMError("w"))
    assert str(WorkerOOMError("w", process_returncode=-9, message="gone")) == "gone"


@pytest.mark.acceptance("cjm-substrate 8")
@pytest.mark.parametrize(
    "error", [WorkerOOMError("w"), CapabilityResourceError("CUDA", resource_shortfall=SHORT)], ids=name_of
)
def test_one_except_clause_catches_kills_and_declared_shortages(error: CapabilityError) -> None:
    with pytest.raises(CapabilityResourceError) as caught:
        raise error

    assert caught.value is error


@pytest.mark.acceptance("cjm-substrate 9")
def test_a_config_error_keeps_every_bad_key_and_the_name_of_the_class() -> None:
    error = CapabilityConfigError("unknown keys", fields_invalid=["foo", "bar"], config_class_name="Whisper")

    assert isinstance(error, CapabilityInputError)
    assert (error.fields_invalid, error.config_class_name) == (["foo", "bar"], "Whisper")


@pytest.mark.acceptance("cjm-substrate 10")
def test_without_bad_fields_the_list_is_empty_and_its_own() -> None:
    first, second = CapabilityInputError("bad"), CapabilityInputError("bad")
    assert first.fields_invalid == []

    assert first.fields_invalid is not second.fields_invalid


@pytest.mark.acceptance("cjm-substrate 10")
def test_the_list_of_bad_fields_is_not_shared_with_the_caller() -> None:
    named = ["size"]
    error = CapabilityInputError("bad", fields_invalid=named)

    named.append("colour")

    assert error.fields_invalid == ["size"]


@pytest.mark.acceptance("cjm-substrate 12")
def test_a_declared_category_beats_a_builtin_class_mixed_in_beside_it() -> None:
    class Flaky(CapabilityTransientError, ValueError):
        """A lost connection that somebody also called a bad value."""

    error = Flaky("the line dropped")  # pyright: ignore[reportCallIssue]

    assert isinstance(error, ValueError)
    assert classify_exception(error) == "transient"
    assert failwell.describe(error).kind == "worker.transient"


@pytest.mark.acceptance("cjm-substrate 13")
def test_the_bare_base_class_has_a_category_too() -> None:
    error = CapabilityError("odd")

    assert classify_exception(error) == "fatal"
    assert failwell.describe(error).category == "fatal"


@pytest.mark.parametrize(
    ("resource", "kind"),
    [
        ("gpu_vram_mb", "resource.gpu_memory"),
        ("system_ram_mb", "resource.system_memory"),
        ("disk_mb", "resource.disk"),
    ],
)
def test_the_resource_that_is_short_decides_the_kind(resource: str, kind: str) -> None:
    short = ResourceShortfall(resource, needed=2, available=1)  # pyright: ignore[reportArgumentType]

    assert CapabilityResourceError("full", resource_shortfall=short).kind == kind
    assert CapabilityResourceError("full").kind == "resource.exhausted"


@pytest.mark.parametrize("error", one_of_each(), ids=name_of)
def test_the_reports_category_projects_onto_the_declared_one(error: CapabilityError) -> None:
    assert failwell.describe(error).category.job == error.category


@pytest.mark.parametrize("error", one_of_each(), ids=name_of)
def test_what_must_not_be_resubmitted_is_never_retried(error: CapabilityError) -> None:
    report = failwell.describe(error)

    assert error.default_retriable or not report.retryable


def test_an_authors_subclass_needs_no_constructor() -> None:
    class Unreadable(CapabilityInputError):
        """The audio file is damaged."""

    error = Unreadable("bad header", fields_invalid=["audio"])  # pyright: ignore[reportCallIssue]

    assert failwell.describe(error).error_type == "Unreadable"
    assert (error.category, error.args) == ("user_input", ("bad header",))


@pytest.mark.acceptance("cjm-substrate 20")
@pytest.mark.parametrize("error", one_of_each(), ids=name_of)
def test_every_typed_error_survives_pickling(error: CapabilityError) -> None:
    received = pickle.loads(pickle.dumps(error))

    assert type(received) is type(error)
    assert received == error
    assert (str(received), received.args) == (str(error), error.args)
    assert received.own_fields() == error.own_fields()
    assert received.resource_shortfall == error.resource_shortfall
    assert received.fields_invalid == error.fields_invalid
