"""Libraries that know nothing of each other name the same failure alike, and so do services in their codes."""

from typing import Any

import pytest

from failwell.adapters.classify import classify
from failwell.adapters.codes import said_by_class
from failwell.adapters.facts import Facts
from failwell.adapters.log_records.log_record import classify as report_of
from failwell.adapters.log_records.reading import read_saved

CLASSES: dict[str, str] = {
    "extension.dependency_missing": (
        "PDFInfoNotInstalledError TesseractNotInstalled MissingDependencyException PackagesNotFoundError DriverNotFound "
        "CommandNotFoundError NoBackendError CudaMismatchException VersionMismatch PluginUnavailableError ModuleUnavailable"
    ),
    "validation.config_invalid": (
        "ImproperlyConfigured MisconfigurationException ConfigError InvalidSettingsError SettingsNotFound ProfileNotFound "
        "SessionNotCreatedException NoSectionError TemplateNotFound"
    ),
    "provider.auth": (
        "LoginFailure LoginRequired BadCredentialsException ExpiredSignatureError TokenExpired InvalidPassword RefreshError "
        "LangSmithAuthError MCPAuthException AuthFailureError"
    ),
    "provider.permission": (
        "MissingScope InsufficientPrivileges ChallengeRequired PrivilegedIntentsRequired IpBlocked RequestBlocked BotBlocked "
        "SSRFBlockedError AgeRestrictedError GeoRestrictedError KeyringLocked AccountLocked OperationNotPermitted"
    ),
    "provider.connection": (
        "ServerSelectionTimeoutError UnAmbiguousTimeoutException NoBrokersAvailable NoHostAvailable NoServersError HostUnreachable "
        "DNSLookupError LDAPSocketOpenError ConnectionFailure PoolTimedOut"
    ),
    "provider.outcome_unknown": "CommClosedError TargetClosedError ConnectionLost ResponseNeverReceived TimeLimitExceeded TooSlowError NetworkError TTransportException PyJWKClientConnectionError",
    "provider.rate_limited": "RetryAfter FloodWait YFRateLimitError PleaseWaitFewMinutes",
    "tool.busy": "DeadlockDetected StaleElementReferenceException DatabaseLocked RowLockedError OptimisticLockError SerializationFailure TransientError "
    "LockTimeout LockAcquisitionException CannotAcquireLockException AlreadyLocked LockWaitTimeoutException",
    "worker.crashed": "WorkerLostError KilledWorker TerminatedWorkerError ActorDiedError WorkerCrashedError",
    "provider.bad_request": (
        "ParserError TOMLDecodeError XMLSyntaxError SchemaError ConversionException IntegrityError DataIntegrityViolationException "
        "BadZipFile UnidentifiedImageError UnrecognizedPropertyException DuplicateKeyError EmptyDataError UnsupportedFileType "
        "NoSuchJobError ColumnNotFoundError WorksheetNotFound AnalysisException ProgrammingError IllegalCharacterError "
        "AmbiguousTimeError URLRequired LengthRequired"
    ),
    "resource.disk": "DiskFullError ObjectStoreFullError",
    "internal.bug": "NotLocked",
    "cancel.run": "TaskCancelled WorkflowCancelledError OperationCanceled JobCancellation",
}
CODES: dict[str, str] = {
    "provider.auth": "not_authed token_revoked session_expired bad_api_key invalid_grant invalid_client login_required AuthFailure.SignatureFailure",
    "provider.permission": "missing_scope not_in_channel insufficient_scope account_suspended user_banned restricted_resource api_plan_restricted OperationNotPermittedException KMSOptInRequired SNSNoAuthorization",
    "provider.quota_exhausted": "account_overdue free_tier_exhausted FailedOperation.FreeResourcePackExhausted credits_exhausted TooManyHostedZones TooManyDistributions MaxNumberOfConfigRulesExceededException NumberDomainsExceeded",
    "provider.rate_limited": "over_query_limit concurrency_limit_exceeded ratelimited",
    "tool.busy": (
        "lock_timeout UNABLE_TO_LOCK_ROW retry_later ConcurrentModificationException OperationInProgressException IndexNotReadyException "
        "DatabaseResumingException"
    ),
    "provider.overloaded": "ResourceInsufficient insufficient_capacity",
    "provider.context_too_long": "msg_too_long file_too_large PayloadTooBig RecordTooLargeException BatchRequestTooLong",
    "provider.bad_request": (
        "channel_not_found InvalidSnapshot.NotFound name_taken already_in_channel is_archived audio_too_short resource_missing "
        "BAD_USER_INPUT type_mismatch CertificateInUseException IllegalUpdate IncorrectKeyMaterialException CannotDelete "
        "BranchNameRequiredException UnknownResourceFault TooManyTagsException"
    ),
}


def pairs(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, kind) for kind, names in table.items() for name in names.split()]


def a_row(name: str | None = None, message: str = "", **fields: Any) -> dict[str, Any]:
    return {"sdk": "brand_new", "exception_class": name, "message": message, "transport": "local", **fields}


@pytest.mark.parametrize(("name", "kind"), pairs(CLASSES))
def test_the_name_of_a_class_says_what_failed_in_any_library(name: str, kind: str) -> None:
    assert read_saved(a_row(f"brand_new.errors.{name}")).kind == kind


@pytest.mark.parametrize(
    "name",
    [
        # Where the words are the same and the failure is not.
        "ThreadBlocked", "BlockedByServer", "UnlockedError", "ExtensionNotLoaded", "RetryRequired", "RestartRequired",
        "ApprovalRequired", "IllegalAccessException", "UndefinedFunctionError", "AmbiguousForeignKeysError",
        "OutOfResources", "ProcessNotFinished", "LoadBalancerError", "RebalanceFailedError", "TokenizationError", "ZoomApiError", "ChatRoomError",
        "BloomFilterError", "RoomFullError",
    ],
)  # fmt: skip
def test_a_class_that_only_looks_like_one_of_a_family_is_unknown_and_is_not_repeated(name: str) -> None:
    report = report_of(a_row(f"brand_new.{name}", "it went wrong"))

    assert (report.category.value, report.retryable) == ("unknown", False)


@pytest.mark.parametrize(("code", "kind"), pairs(CODES))
def test_the_words_of_a_code_say_what_failed_at_any_service(code: str, kind: str) -> None:
    assert classify(Facts(codes=(code.lower(),))).kind == kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        # A word of a code that says more comes before the way in which such codes end.
        ("incorrect_password", "provider.auth"),
        ("incorrect_api_key", "provider.auth"),
        ("password_reset_required", "provider.auth"),
        ("api_key_disabled", "provider.auth"),
        ("payment_required", "provider.quota_exhausted"),
        ("unknown_model", "provider.model_not_found"),
        ("unknown_timeout", "provider.outcome_unknown"),
        ("maximum_context_length_exceeded", "provider.context_too_long"),
        ("max_number_of_tokens_exceeded", "provider.context_too_long"),
        ("too_many_requests", "provider.rate_limited"),
        ("too_many_pending_requests", "provider.rate_limited"),
        ("unknown_failure", "provider.unknown"),
        ("unknown_host", "provider.unknown"),
        ("retry_required", "provider.unknown"),
        ("action_required", "provider.unknown"),
        ("max_retries_exceeded", "provider.unknown"),
        ("too_many_attempts", "provider.unknown"),
        ("organizations_not_in_use", "provider.unknown"),
        ("not_initialized", "provider.unknown"),
        ("StreamingDistributionNotDisabled", "provider.unknown"),
    ],
)
def test_a_code_that_only_looks_like_one_of_a_family_keeps_what_its_words_say(code: str, kind: str) -> None:
    assert classify(Facts(codes=(code.lower(),))).kind == kind


@pytest.mark.parametrize("code", ["duplicate_name", "email_taken", "already_in_use", "TopicExistsException"])
def test_what_is_there_at_the_next_try_too_is_not_repeated_because_it_is_a_conflict(code: str) -> None:
    assert classify(Facts(status=409, codes=(code.lower(),))).kind == "provider.bad_request"


@pytest.mark.parametrize("code", ["duplicate_name", "AlreadyExists", "IllegalUpdate", "TooManyTagsException"])
@pytest.mark.parametrize("status", [500, 502, 503])
def test_the_words_of_a_code_do_not_blame_the_caller_for_what_a_server_calls_its_own_fault(
    code: str, status: int
) -> None:
    report = report_of({"http_status": status, "body": {"error": {"code": code}}, "transport": "http"})

    assert (report.category.value, report.retryable) == ("transient", True)


@pytest.mark.parametrize("code", ["IndexNotReadyException", "OperationInProgress", "ConcurrentModification"])
@pytest.mark.parametrize("status", [401, 403])
def test_a_code_that_asks_for_patience_does_not_make_a_denial_repeatable(code: str, status: int) -> None:
    report = report_of({"http_status": status, "body": {"error": {"code": code}}, "transport": "http"})

    assert (report.category.value, report.retryable) == ("configuration", False)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "provider.bad_request"), (404, "provider.rejected"), (500, "provider.unavailable")],
)
@pytest.mark.parametrize("name", ["networkerror", "connectionlosterror", "channelclosed"])
def test_a_class_that_speaks_of_a_connection_says_nothing_beside_a_reply(
    name: str, status: int, kind: str
) -> None:
    assert classify(Facts(status=status, names=(name,))).kind == kind
    assert classify(Facts(names=(name,))).kind == "provider.outcome_unknown"


def test_a_class_named_after_the_connection_counts_where_nothing_else_is_known() -> None:
    name = "brand_new.BrandConnectionError"

    assert report_of(a_row(name, "it went wrong")).category.value == "ambiguous"
    assert read_saved(a_row(name, "invalid api key")).kind == "provider.auth"
    assert read_saved(a_row("brand_new.ConnectionRefused", "it went wrong")).kind == "provider.connection"


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


def test_a_class_named_not_found_may_say_that_something_is_not_installed() -> None:
    name, message = "acme.AcmeNotFoundError", "acme is not installed or it's not in your PATH"

    assert read_saved(a_row(name, message)).kind == "extension.dependency_missing"
    assert read_saved(a_row(name, "no order 17")).kind == "provider.bad_request"
    # What a service answers about its own packages is no matter of this machine.
    assert report_of({**a_row(name, message), "http_status": 404}).kind == "provider.rejected"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Unknown tool: x", "tool.not_found"),
        ("Timed out while waiting for response to ClientRequest. Waited 9.0 seconds.", "tool.timeout"),
        ("Connection closed", "provider.outcome_unknown"),
        ("it went wrong", "tool.failed"),
    ],
)
def test_the_sdk_of_mcp_is_understood_without_its_code(message: str, kind: str) -> None:
    assert read_saved(a_row("mcp.shared.exceptions.McpError", message)).kind == kind


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"http_status": 403, "message": 'You have exceeded your <a href="/x#quota">quota</a>.'}, "provider.quota_exhausted"),
        ({"http_status": 429, "message": "Your account has run out of searches"}, "provider.quota_exhausted"),
        ({"http_status": 429, "message": "request/min rate limit exceeded, remaining_limit: 0"}, "provider.rate_limited"),
        ({"http_status": 429, "message": "quota exceeded, limit: 0"}, "provider.quota_exhausted"),
        ({"body": {"message": 'new row violates row-level security policy for table "t"'}}, "provider.permission"),
        ({"exception_class": "sqlite3.OperationalError", "message": "no such module: vec0"}, "extension.dependency_missing"),
        ({"http_status": 414, "message": "Request-URI Too Large"}, "provider.bad_request"),
        ({"http_status": 500, "message": "failed: {'error': {'code': 400, 'message': 'no contents'}}"}, "provider.bad_request"),
        ({"http_status": 500, "message": "failed with 400 rows"}, "provider.unavailable"),
        ({"http_status": 404, "body": "404 page not found", "message": "headers: {'server': 'x'}, body: 404 page not found"}, "provider.rejected"),
        ({"http_status": 404, "message": "POST /v1/models/m: 404 page not found"}, "provider.rejected"),
        ({"http_status": 404, "body": {"message": "page 7 of the model was not found"}}, "provider.model_not_found"),
        ({"message": "message content can not be empty"}, "provider.bad_request"),
        ({"message": "JWT expired"}, "provider.auth"),
        ({"body": {"ok": False, "error": "no_text"}}, "provider.bad_request"),
        ({"exception_class": "acme.ApiResponseError", "message": "rate_limited"}, "provider.rate_limited"),
        ({"body": {"code": "PGRST301", "message": "-"}}, "provider.auth"),
        ({"exception_class": "redis.exceptions.ResponseError", "message": "This address is not in the allowlist."}, "provider.permission"),
        ({"exception_class": "redis.exceptions.ResponseError", "message": "wrong number of arguments"}, "provider.bad_request"),
        ({"exception_class": "redis.exceptions.ResponseError", "message": "Client sent AUTH, but no password is set"}, "provider.auth"),
        ({"exception_class": "litellm.APIConnectionError", "body": {"error": "model 'm:1b' not found"}}, "provider.model_not_found"),
        ({"exception_class": "yaml.constructor.ConstructorError", "message": "could not determine a constructor"}, "validation.shape_invalid"),
        ({"exception_class": "pydantic_core._pydantic_core.ValidationError", "message": "1 validation error for Settings\nkey"}, "validation.config_invalid"),
        ({"message": "An error occurred (InvalidPermission.Duplicate) when calling the Authorize operation: it is there"}, "provider.bad_request"),
        ({"exception_class": "httpx.ProxyError", "message": "407 Proxy Authentication Required"}, "provider.rejected"),
        ({"exception_class": "httpx.ProxyError", "message": "502 Bad Gateway"}, "provider.connection"),
    ],
)  # fmt: skip
def test_a_reply_is_read_in_the_forms_that_services_and_clients_have(row: dict[str, Any], kind: str) -> None:
    assert read_saved({"transport": "http", **row}).kind == kind


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
        ("stream was reset: REFUSED_STREAM", "provider.connection"),
        ("[AcmeSDKException] code:InvalidParameterValue.InvalidParameter \nmessage:参数错误", "provider.bad_request"),
        ("Image size (10000 pixels) exceeds limit of 20 pixels", "provider.context_too_long"),
        ("当前分组上游负载已饱和", "provider.overloaded"),
        ("本周 AI 用量已达到上限", "provider.quota_exhausted"),
        ("You have exceeded your task limit. Upgrade your plan to continue.", "provider.quota_exhausted"),
        ("This should never happen! Please open an issue.", "internal.bug"),
        ('status = StatusCode.INTERNAL\n details = "[CAST_INVALID_INPUT] it is malformed. SQLSTATE: 22018"', "provider.bad_request"),
        ("error: src refspec main does not match any\nerror: failed to push some refs to 'x'", "validation.input_invalid"),
        ("a/grammar.cpp:940: GGML_ASSERT(!stacks.empty()) failed", "internal.bug"),
        ("SENDER_ADDRESS is not set", "validation.config_invalid"),
        ("reqwest::Error { kind: Request, source: hyper_util::client::legacy::Error(SendRequest, hyper::Error(IncompleteMessage)) }", "provider.outcome_unknown"),
        ("cURL error 28: Resolving timed out after 10000 milliseconds", "provider.connection"),
        ("cURL error 28: Operation timed out after 10000 milliseconds", "provider.outcome_unknown"),
        ("The request was aborted: Could not create SSL/TLS secure channel.", "provider.tls_failed"),
        ("curl: (56) OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0", "provider.tls_failed"),
        ("curl: (56) OpenSSL SSL_read: error:0A000126:SSL routines::unexpected eof while reading, errno 0", "provider.outcome_unknown"),
        ("slurmstepd: error: Exceeded job memory limit\n*** JOB 8 CANCELLED AT 2020-05-20T09:58:05 ***", "resource.system_memory"),
        ("rpc error: code = Canceled desc = grpc: the client connection is closing", "cancel.run"),
        ("rpc error: code = Canceled desc = stopped", "provider.outcome_unknown"),
        ("upstream connect error or disconnect/reset before headers. reset reason: connection failure", "provider.connection"),
        ("reset reason: connection termination", "provider.outcome_unknown"),
        ("Received RST_STREAM with error code 2", "provider.outcome_unknown"),
        ("<urlopen error [WinError 10060] no answer>", "provider.connection"),
        ("login failed. (provider: SSL Provider, error: 0 - not trusted)", "provider.tls_failed"),
        ("unable to create thread: Resource temporarily unavailable", "resource.exhausted"),
        ("pthread_create failed (EAGAIN)", "resource.exhausted"),
        ("read failed: Resource temporarily unavailable", "tool.busy"),
        ("2 validation errors for Order\nprice\n  Field required", "validation.shape_invalid"),
        ("1 validation error for AppSettings\nkey\n  Field required", "validation.config_invalid"),
        ("The plan was interrupted; please retry (code: PA)", "provider.unavailable"),
        ("It was not written down; please try again with a shorter name", "provider.unknown"),
        ("HTTP/2 stream 1 was not closed cleanly: ENHANCE_YOUR_CALM (err 11)", "provider.rate_limited"),
        ("received 1011 (internal error) out of order", "provider.unavailable"),
        ("received 1011 (internal error) keepalive ping timeout", "provider.outcome_unknown"),
        ("(1176, \"Key 'a' doesn't exist in table 'b'\")", "provider.bad_request"),
    ],
)  # fmt: skip
def test_a_status_counts_in_the_form_that_gateways_and_drivers_print(text: str, kind: str) -> None:
    message = f"OperationalError: {text}" if text.startswith("(") else text

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
