"""Libraries that know nothing of each other name the same failure alike, and so do services in their codes."""

from typing import Any

import pytest

from failwell.adapters.classify import classify
from failwell.adapters.codes import said_by_class
from failwell.adapters.facts import Facts
from failwell.adapters.saved import read_saved
from failwell.report.saved_failures.saved_row import classify as report_of

CLASSES: dict[str, str] = {
    "extension.dependency_missing": (
        "PDFInfoNotInstalledError TesseractNotInstalled MissingDependencyException PackagesNotFoundError DriverNotFound "
        "CommandNotFoundError NoBackendError CudaMismatchException VersionMismatch"
    ),
    "validation.config_invalid": (
        "ImproperlyConfigured MisconfigurationException ConfigError InvalidSettingsError SettingsNotFound ProfileNotFound "
        "SessionNotCreatedException NoSectionError TemplateNotFound"
    ),
    "provider.auth": "LoginFailure LoginRequired BadCredentialsException ExpiredSignatureError TokenExpired InvalidPassword RefreshError",
    "provider.permission": "MissingScope InsufficientPrivileges ChallengeRequired PrivilegedIntentsRequired",
    "provider.connection": (
        "ServerSelectionTimeoutError UnAmbiguousTimeoutException NoBrokersAvailable NoHostAvailable NoServersError HostUnreachable "
        "DNSLookupError LDAPSocketOpenError ConnectionFailure PoolTimedOut"
    ),
    "provider.outcome_unknown": "CommClosedError TargetClosedError ConnectionLost ResponseNeverReceived TimeLimitExceeded TooSlowError NetworkError",
    "provider.rate_limited": "RetryAfter FloodWait YFRateLimitError PleaseWaitFewMinutes",
    "tool.busy": "DeadlockDetected StaleElementReferenceException DatabaseLocked OptimisticLockError TransientError",
    "provider.bad_request": (
        "ParserError TOMLDecodeError XMLSyntaxError SchemaError ConversionException IntegrityError DataIntegrityViolationException "
        "BadZipFile UnidentifiedImageError UnrecognizedPropertyException DuplicateKeyError EmptyDataError UnsupportedFileType "
        "NoSuchJobError ColumnNotFoundError WorksheetNotFound AnalysisException"
    ),
    "resource.disk": "DiskFullError ObjectStoreFullError",
    "cancel.run": "TaskCancelled WorkflowCancelledError OperationCanceled JobCancellation",
}
CODES: dict[str, str] = {
    "provider.auth": "not_authed token_revoked session_expired bad_api_key invalid_grant invalid_client login_required AuthFailure.SignatureFailure",
    "provider.permission": "missing_scope insufficient_scope account_suspended user_banned restricted_resource api_plan_restricted",
    "provider.quota_exhausted": "account_overdue free_tier_exhausted FailedOperation.FreeResourcePackExhausted credits_exhausted",
    "provider.rate_limited": "over_query_limit concurrency_limit_exceeded ratelimited",
    "tool.busy": "lock_timeout UNABLE_TO_LOCK_ROW retry_later",
    "provider.overloaded": "ResourceInsufficient insufficient_capacity",
    "provider.context_too_long": "msg_too_long file_too_large PayloadTooBig",
    "provider.bad_request": (
        "channel_not_found InvalidSnapshot.NotFound name_taken already_in_channel is_archived audio_too_short resource_missing "
        "not_in_channel BAD_USER_INPUT type_mismatch"
    ),
}


def pairs(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, kind) for kind, names in table.items() for name in names.split()]


def a_row(name: str | None = None, message: str = "", **fields: Any) -> dict[str, Any]:
    return {"sdk": "brand_new", "exception_class": name, "message": message, "transport": "local", **fields}


@pytest.mark.parametrize(("name", "kind"), pairs(CLASSES))
def test_the_name_of_a_class_says_what_failed_in_any_library(name: str, kind: str) -> None:
    assert read_saved(a_row(f"brand_new.errors.{name}")).kind == kind


@pytest.mark.parametrize(("code", "kind"), pairs(CODES))
def test_the_words_of_a_code_say_what_failed_at_any_service(code: str, kind: str) -> None:
    assert classify(Facts(codes=(code.lower(),))).kind == kind


def test_the_nearest_class_decides_and_a_cause_does_not_overrule_it() -> None:
    assert said_by_class(("timeouterror", "cancellederror")).status == 408
    assert said_by_class(("brandnewerror", "cancellederror")).rule is not None


@pytest.mark.parametrize(
    "name", ["ValueError", "KeyError", "SyntaxError", "NotImplementedError", "AssertionError"]
)
def test_a_class_of_python_has_no_family(name: str) -> None:
    said = said_by_class((name.lower(),))

    assert (said.rule, said.status) == (None, None)


@pytest.mark.parametrize("name", ["BrandNewError", "ApiError", "RequestError", "ServiceProblem"])
def test_a_class_that_says_nothing_is_unknown_and_is_not_repeated(name: str) -> None:
    report = report_of(a_row(f"brand_new.{name}", "it went wrong"))

    assert (report.category.value, report.retryable) == ("unknown", False)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SlowDown: Please reduce your request rate", "provider.rate_limited"),
        ("QuotaExceeded: Operation results in exceeding approved cores. Limit: 4", "provider.quota_exhausted"),
        ("creating volume: VolumeLimitExceeded: the limit of 20 volumes", "provider.quota_exhausted"),
        ("ResourceExhausted: received message larger than max (6482333 vs. 4194304)", "provider.context_too_long"),
        ("apply: PermissionDenied: caller may not act as the service account", "provider.permission"),
        ("RATELIMIT: take a break for 5 minutes", "provider.rate_limited"),
        ("code:AuthFailure.SecretIdNotFound message:the id is wrong requestId:1", "provider.auth"),
        ("ActiveRecord::RecordInvalid: Validation failed: email is empty", "provider.bad_request"),
    ],
)  # fmt: skip
def test_a_code_that_is_printed_before_its_sentence_counts_like_a_code(text: str, kind: str) -> None:
    assert read_saved({"message": text, "transport": "http"}).kind == kind


@pytest.mark.parametrize("text", ["JavaScript: the good parts", "GitHub: sign up now", "NOTE: done"])
def test_a_word_before_a_colon_is_no_code(text: str) -> None:
    assert read_saved({"message": text, "transport": "http"}).kind == "provider.unknown"


def test_a_class_that_was_saved_without_its_module_is_looked_up_in_the_library_of_the_row() -> None:
    locked = read_saved(a_row("OperationalError", "database is locked", sdk="sqlite3"))
    wrong = read_saved(a_row("OperationalError", 'near "form": syntax error', sdk="sqlite3"))

    assert (locked.kind, wrong.kind) == ("tool.busy", "provider.bad_request")


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("cannot import name 'X' from 'acme' (/venv/lib/python3.12/site-packages/acme/__init__.py)", "extension.dependency_missing"),
        ("Could not import faiss. Please install it with `pip install faiss-cpu`", "extension.dependency_missing"),
        ("X requires the torch library but it was not found in your environment", "extension.dependency_missing"),
        ("cannot import name 'X' from 'app' (/srv/app/__init__.py)", "internal.bug"),
        ("cannot import name 'X' from partially initialized module 'app' (most likely due to a circular import)", "internal.bug"),
    ],
)  # fmt: skip
def test_an_import_that_asks_for_another_package_is_no_bug(message: str, kind: str) -> None:
    assert read_saved(a_row("ImportError", message)).kind == kind


def test_a_library_that_refuses_its_input_with_a_runtime_error_found_no_bug() -> None:
    shapes = "mat1 and mat2 shapes cannot be multiplied (32x512 and 768x10)"

    assert report_of(a_row("RuntimeError", shapes, sdk="torch")).category.value == "user_input"
    assert report_of(a_row("RuntimeError", shapes, sdk="python")).category.value == "fatal"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Maximum credits exceeded", "provider.quota_exhausted"),
        ("Your balance is negative", "provider.quota_exhausted"),
        ("Invalid API key or insufficient credits", "provider.auth"),
        ("The usage limit of this key is reached", "provider.auth"),
    ],
)
def test_a_401_is_an_empty_account_only_where_the_words_say_nothing_else(message: str, kind: str) -> None:
    report = report_of({"http_status": 401, "body": {"error": {"message": message}}, "transport": "http"})

    assert (report.kind, report.retryable) == (kind, False)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"code":16,"message":"no token","details":[]}', "provider.auth"),
        ('{"code":7,"message":"not yours","details":[]}', "provider.permission"),
        ('{"code":3,"message":"too odd","details":[]}', "provider.bad_request"),
        ("{'code': '42501', 'details': None, 'hint': None, 'message': 'row-level security'}", "provider.permission"),
        ("{'S': 'ERROR', 'C': '42601', 'M': 'syntax error'}", "provider.bad_request"),
        ("(9007, 'Write conflict')", "tool.busy"),
        ("received 401 HTTP response", "provider.auth"),
        ("session setup failed: NT_STATUS_LOGON_FAILURE", "provider.auth"),
        ("tree connect failed: NT_STATUS_BAD_NETWORK_NAME", "provider.rejected"),
        ("S3 error: 403 (RequestTimeTooSkewed): the clock is wrong", "provider.auth"),
        ("Failed to acquire the lock of the store (timeout)", "tool.busy"),
        ("Can't contact the directory server", "provider.connection"),
        ("the call to the service returned HTTP 503", "provider.overloaded"),
    ],
)  # fmt: skip
def test_a_status_counts_in_the_form_that_gateways_and_drivers_print(text: str, kind: str) -> None:
    message = f"OperationalError: {text}" if text.startswith("(9") else text

    assert read_saved({"message": message, "transport": "http"}).kind == kind


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("not authorized on admin to execute command", "provider.permission"),
        ("Invalid API key", "provider.auth"),
        ("it went wrong", "provider.unavailable"),
    ],
)
def test_a_class_that_only_says_that_a_server_reported_it_leaves_the_rest_to_the_words(
    message: str, kind: str
) -> None:
    assert read_saved(a_row("brand_new.BrandServerError", message)).kind == kind


@pytest.mark.parametrize("key", ["error_description", "errmsg", "error_msg", "faultstring", "Information"])
def test_the_sentence_of_a_body_is_found_under_the_names_that_services_give_it(key: str) -> None:
    body = {key: "The daily quota is exhausted"}

    assert (
        read_saved({"http_status": 200, "body": body, "transport": "http"}).kind == "provider.quota_exhausted"
    )
