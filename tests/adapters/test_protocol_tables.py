"""The tables of protocols: each code decides alone, and each kind that they name exists."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

import failwell
from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts, codes_of, message_of
from failwell.adapters.log_records.pasted import describe_pasted
from failwell.adapters.protocols import devices, sql, stores, vendor_codes, wire
from failwell.adapters.protocols.system_errors import NAME_BY_TRANSLATION
from failwell.adapters.registry import find
from failwell.adapters.text.protocol_words import database_kind_in, errno_in
from failwell.errors.kind_registry import kind
from tests.specimens import each, failures

DENIED = {
    "provider.auth",
    "provider.permission",
    "provider.rejected",
    "provider.bad_request",
    "provider.quota_exhausted",
}


@each(
    ("code", "meaning"),
    [
        ("08001", "provider.connection"),
        ("08006", "provider.outcome_unknown"),
        ("22P02", "provider.bad_request"),
        ("23505", "provider.bad_request"),
        ("25006", "provider.rejected"),
        ("28P01", "provider.auth"),
        ("3D000", "provider.rejected"),
        ("40001", "tool.busy"),
        ("40P01", "tool.busy"),
        ("40003", "provider.outcome_unknown"),
        ("42501", "provider.permission"),
        ("42601", "provider.bad_request"),
        ("42P01", "provider.rejected"),
        ("53100", "resource.disk"),
        ("53200", "resource.system_memory"),
        ("53300", "provider.overloaded"),
        ("55P03", "tool.busy"),
        ("57014", "provider.timeout"),
        ("57P01", "provider.unavailable"),
        ("57P03", "provider.unavailable"),
        ("XX001", "session.store_corrupt"),
    ],
)
def test_a_sqlstate_decides_by_its_row_or_by_its_class(code: str, meaning: str) -> None:
    assert sql.kind_of_sqlstate(code) == meaning


@pytest.mark.parametrize(
    ("dotted", "code"),
    [
        ("psycopg.errors.UniqueViolation", "23505"),
        ("psycopg2.errors.SerializationFailure", "40001"),
        ("asyncpg.exceptions.UniqueViolationError", "23505"),
        ("asyncpg.exceptions.SerializationError", "40001"),
        ("asyncpg.exceptions.PostgresSyntaxError", "42601"),
        ("asyncpg.exceptions.InFailedSQLTransactionError", "25P02"),
    ],
)
def test_a_class_that_is_named_after_a_sqlstate_is_known_by_its_name_alone(dotted: str, code: str) -> None:
    module, _, name = dotted.rpartition(".")
    entry = find(module, name)
    assert callable(entry)

    reading = entry(type(name, (Exception,), {"__module__": module})("a text that says nothing"))

    assert reading is not None
    assert reading.evidence[0].rule == f"postgresql.{code}"


def test_a_sqlstate_of_an_unknown_class_or_shape_decides_nothing() -> None:
    assert [sql.kind_of_sqlstate(code) for code in (None, "", "ZZ999", "2350", "23505x", "00000")] == [
        None
    ] * 6


def test_every_named_sqlstate_has_a_kind_and_is_found_by_the_class_of_both_drivers() -> None:
    names: dict[str, str] = dict(re.findall(r"([0-9A-Z]{5}) ([a-z_]+)", sql.CONDITION_NAMES))

    assert len(names) > 100
    assert [code for code in names if sql.kind_of_sqlstate(code) is None] == []
    for code, name in names.items():
        camel = "".join(word.title() for word in name.split("_"))
        assert sql.sqlstate_of(camel) == code
        assert sql.sqlstate_of(camel.removesuffix("Error") + "Error") == code


@pytest.mark.parametrize(
    ("number", "meaning"),
    [
        (1040, "provider.overloaded"),
        (1045, "provider.auth"),
        (1049, "provider.rejected"),
        (1062, "provider.bad_request"),
        (1064, "provider.bad_request"),
        (1142, "provider.permission"),
        (1205, "tool.busy"),
        (1213, "tool.busy"),
        (2003, "provider.connection"),
        (2006, "provider.outcome_unknown"),
        (2013, "provider.outcome_unknown"),
        (3024, "provider.timeout"),
        (1176, "provider.bad_request"),
        (3730, "provider.bad_request"),
        (2999, None),
        (999_999, None),
        (None, None),
    ],
)
def test_a_number_of_mysql_decides(number: int | None, meaning: str | None) -> None:
    assert sql.kind_of_mysql(number) == meaning


def test_a_sqlstate_beside_a_number_of_mysql_without_a_row_says_more() -> None:
    assert sql.kind_of_mysql(1999, "40001") == "tool.busy"
    assert sql.kind_of_mysql(1205, "HY000") == "tool.busy"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("mysql.connector.errors.ProgrammingError: 1064 (42000): You have an error in your SQL syntax", "provider.bad_request"),
        ("mysql.connector.errors.DatabaseError: 1205 (HY000): Lock wait timeout exceeded", "tool.busy"),
        ("ProgrammingError: 1045 (28000): Access denied for user", "provider.auth"),
        ("InterfaceError: 2003: Can't connect", None),
        ("Database Error in model orders\n  000904 (42000): SQL compilation error: error line 11", "provider.bad_request"),
        ("listened on 10.0.4200 (42000): ok", None),
        ("AssertionError: 1205 (half) of the rows", None),
    ],
)  # fmt: skip
def test_a_number_is_read_in_the_form_that_connector_python_prints(text: str, meaning: str | None) -> None:
    found = database_kind_in(text)

    assert (found and found[0]) == meaning


def test_every_word_of_grpc_and_every_registered_close_code_has_a_kind() -> None:
    assert wire.GRPC_WORDS[8] == "RESOURCE_EXHAUSTED"
    assert wire.GRPC_WORDS[16] == "UNAUTHENTICATED"
    assert [word for word in wire.GRPC_WORDS[1:] if wire.kind_of_grpc(word) is None] == []
    registered = [*range(1000, 1004), *range(1005, 1016), 3000, 3003, 3008]
    assert [code for code in registered if wire.kind_of_close_code(code) is None] == []
    assert wire.kind_of_close_code(4429) is None
    assert wire.http_of_close_code(4429) == 429
    assert wire.http_of_close_code(4900) is None


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'.", "resource.system_memory"),
        ("NOAUTH Authentication required.", "provider.auth"),
        ("WRONGPASS invalid username-password pair or user is disabled.", "provider.auth"),
        ("NOPERM this user has no permissions to run the 'get' command", "provider.permission"),
        ("LOADING Redis is loading the dataset in memory", "provider.unavailable"),
        ("READONLY You can't write against a read only replica.", "provider.rejected"),
        ("MOVED 3999 127.0.0.1:6381", "provider.rejected"),
        ("TRYAGAIN Multiple keys request during rehashing of slot", "tool.busy"),
        ("ERR max number of clients reached", "provider.overloaded"),
        ("ERR value is not an integer or out of range", "provider.bad_request"),
        ("-WRONGTYPE Operation against a key holding the wrong kind of value", "provider.bad_request"),
        ("Something else", None),
    ],
)
def test_a_reply_of_redis_decides_by_its_prefix(text: str, meaning: str | None) -> None:
    assert stores.kind_of_redis(text) == meaning


def test_a_code_of_mongodb_decides_before_its_labels() -> None:
    assert stores.kind_of_mongodb(11000) == "provider.bad_request"
    assert stores.kind_of_mongodb(18, ["RetryableWriteError"]) == "provider.auth"
    assert stores.kind_of_mongodb(112, ["TransientTransactionError"]) == "tool.busy"
    assert stores.kind_of_mongodb(None, ["TransientTransactionError"]) == "tool.busy"
    assert stores.kind_of_mongodb(99_999, ["RetryableWriteError"]) == "provider.unavailable"
    assert stores.kind_of_mongodb(99_999) is None


def test_a_block_of_elasticsearch_is_read_by_its_reason() -> None:
    block = "cluster_block_exception"
    full = "index [a] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark];"

    assert stores.kind_of_elasticsearch(block, full) == "resource.disk"
    assert (
        stores.kind_of_elasticsearch(block, "blocked by: [SERVICE_UNAVAILABLE/1/state not recovered];")
        == "provider.unavailable"
    )
    assert (
        stores.kind_of_elasticsearch(block, "blocked by: [FORBIDDEN/8/index write (api)];")
        == "provider.rejected"
    )
    assert (
        stores.kind_of_elasticsearch("security_exception", "unable to authenticate user [x]")
        == "provider.auth"
    )
    assert (
        stores.kind_of_elasticsearch("security_exception", "action is unauthorized") == "provider.permission"
    )
    assert stores.kind_of_elasticsearch("circuit_breaking_exception") == "provider.overloaded"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("CUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA`", "internal.bug"),
        ("CUDA error: an illegal memory access was encountered (cudaErrorIllegalAddress)", "internal.bug"),
        ("CUDA error: invalid device ordinal", "validation.config_invalid"),
        ("CUDA error: no kernel image is available for execution on the device", "extension.dependency_missing"),
        ("CUDA driver error: out of memory", "resource.gpu_memory"),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "resource.gpu_memory"),
        ("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasGemmEx`", "validation.input_invalid"),
        ("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "internal.bug"),
        ("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "resource.gpu_memory"),
        ("NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled cuda error\nncclUnhandledCudaError: Call to CUDA function failed.", "worker.crashed"),
        ("NCCL error: ncclInvalidUsage: This usually reflects invalid usage", "validation.config_invalid"),
        ("HIP error: no ROCm-capable device\nhipErrorNoDevice", "extension.dependency_missing"),
        ("CUDA_ERROR_OUT_OF_MEMORY: out of memory", "resource.gpu_memory"),
        ("Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU", "extension.dependency_missing"),
        ("The sizes of tensors must match", None),
    ],
)  # fmt: skip
def test_a_status_of_a_gpu_runtime_decides(text: str, meaning: str | None) -> None:
    device = devices.device_status(text)

    assert (device and device[0]) == meaning


def test_every_kind_in_a_table_is_registered_and_no_denial_is_retried() -> None:
    tables: dict[str, Mapping[Any, str]] = {
        "sqlstate": {**sql.SQLSTATE_CLASSES, **sql.SQLSTATES},
        "mysql": dict(sql.MYSQL_ERRORS),
        "mongodb": dict(stores.MONGODB_CODES),
        "redis": dict(stores.REDIS_PREFIXES),
        "elasticsearch": dict(stores.ELASTICSEARCH_TYPES),
        "close codes": dict(wire.CLOSE_CODES),
        "services": dict(vendor_codes.CODES),
        **{name: dict(own) for name, own in vendor_codes.CODES_OF.items()},
    }

    def check(name: str) -> None:
        for code, meaning in tables[name].items():
            category = kind(meaning).category
            assert not (meaning in DENIED and category.retryable), (name, code)

    assert failures(tables, check) == []


def test_a_code_that_means_two_things_is_read_by_its_provider() -> None:
    def read(provider: str | None, code: str) -> str:
        return classify(Facts(provider=provider, status=400, codes=(code,))).kind

    assert read("zhipu", "1301") == "provider.content_refused"
    assert read("zhipuai", "1113") == "provider.quota_exhausted"
    assert read("minimax", "1008") == "provider.quota_exhausted"
    assert read("zhipu", "1008") == "provider.bad_request"
    assert read("cloudflare-workers-ai", "5007") == "provider.model_not_found"
    assert read(None, "1301") == "provider.bad_request"


def test_a_budget_of_calls_in_flight_is_waited_for_and_an_empty_account_is_not() -> None:
    waiting = {
        "error": {"code": 402, "message": "…", "metadata": {"limit_source": "openrouter_in_flight_budget"}}
    }
    empty = {"error": {"code": 402, "message": "…", "metadata": {"limit_source": "openrouter_credits"}}}

    def read(body: object, **headers: str) -> Classification:
        return classify(
            Facts(provider="openrouter", status=402, body=body, codes=codes_of(body), headers=headers)
        )

    reading = read(waiting, **{"retry-after": "7"})
    assert reading.kind == "provider.rate_limited"
    assert reading.not_before is not None
    assert read(empty).kind == "provider.quota_exhausted"


def test_a_problem_type_is_read_by_its_last_word() -> None:
    base = "https://iana.org/assignments/http-problem-types#"

    def read(word: str, status: int) -> str:
        body = {"type": base + word, "title": "…", "status": status}
        return classify(Facts(status=status, body=body, codes=codes_of(body))).kind

    assert read("quota-exceeded", 429) == "provider.rate_limited"
    assert read("temporary-reduced-capacity", 503) == "provider.overloaded"
    assert read("abnormal-usage-detected", 429) == "provider.permission"
    assert codes_of({"type": "https://example.com/errors/token-limit-exceeded"})[0] == "token-limit-exceeded"


def test_a_reason_of_a2a_is_read_out_of_its_details() -> None:
    body = {
        "error": {
            "code": 400, "status": "FAILED_PRECONDITION", "message": "…",
            "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "VERSION_NOT_SUPPORTED",
                         "domain": "a2a-protocol.org"}],
        }
    }  # fmt: skip

    assert classify(Facts(status=400, body=body, codes=codes_of(body))).kind == "provider.rejected"


@pytest.mark.parametrize(
    ("status", "page", "meaning"),
    [
        (429, "error code: 1015", "provider.rate_limited"),
        (403, "error code: 1020", "provider.permission"),
        (530, "error code: 1033", "provider.unavailable"),
        (530, "<!DOCTYPE html><title>Origin DNS error | x | Cloudflare</title><h1><span>Error</span> <span>1016</span>", "provider.connection"),
        (429, "<!DOCTYPE html><title>x | Cloudflare</title> Error 1027: daily request limit", "provider.quota_exhausted"),
        (503, "Error 1015 of somebody else", "provider.overloaded"),
        (446, "", "provider.content_refused"),
    ],
)  # fmt: skip
def test_a_page_of_the_edge_is_read_by_its_code(status: int, page: str, meaning: str) -> None:
    reading = classify(Facts(status=status, body=page, codes=codes_of(page), message=page))

    assert reading.kind == meaning


@pytest.mark.parametrize(
    ("status", "code", "name", "message", "meaning"),
    [
        (401, "unauthorized", "unauthorizederror", "", "provider.auth"),
        (403, "", "permissiondeniederror", "your input was flagged in violation of its content policy", "provider.content_refused"),
        (403, "", "modelauthenticationerror", "", "provider.permission"),
    ],
)  # fmt: skip
def test_a_class_that_repeats_the_status_decides_nothing_beside_it(
    status: int, code: str, name: str, message: str, meaning: str
) -> None:
    facts = Facts(status=status, codes=(code,) if code else (), names=(name,), message=message)

    assert classify(facts).kind == meaning


@each(
    ("provider", "status", "body", "meaning"),
    [
        # vLLM and NVIDIA NIM answer in OpenAI's form, older releases without the outer object
        ("vllm", 400, {"object": "error", "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", "type": "BadRequestError", "code": 400}, "provider.context_too_long"),
        ("vllm", 404, {"object": "error", "message": "The model `x` does not exist.", "type": "NotFoundError", "code": 404}, "provider.model_not_found"),
        ("nvidia", 402, {"status": 402, "title": "Payment Required", "detail": "Account 'x': Cloud credits expired"}, "provider.quota_exhausted"),
        ("nvidia", 403, {"status": 403, "title": "Forbidden", "detail": "Authorization failed"}, "provider.permission"),
        ("llama.cpp", 400, {"error": {"code": 400, "message": "…", "type": "exceed_context_size_error", "n_ctx": 4096}}, "provider.context_too_long"),
        ("llama.cpp", 503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, "provider.overloaded"),
        ("llama.cpp", 501, {"error": {"code": 501, "message": "…", "type": "not_supported_error"}}, "provider.capability_missing"),
        ("vercel", 429, {"error": {"message": "…", "type": "rate_limit_exceeded"}}, "provider.rate_limited"),
        ("vercel", 404, {"error": {"message": "Model 'x' not found", "type": "model_not_found"}}, "provider.model_not_found"),
        ("vercel", 401, {"error": {"message": "…", "type": "authentication_error"}}, "provider.auth"),
        ("litellm", 400, {"error": {"message": "Budget has been exceeded! Current cost: 1, Max budget: 1", "type": "budget_exceeded", "code": "400"}}, "provider.quota_exhausted"),
        ("litellm", 401, {"error": {"message": "…", "type": "key_model_access_denied", "code": "401"}}, "provider.permission"),
        ("a2a", 200, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "Task not found"}}, "provider.bad_request"),
        ("a2a", 200, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}, "provider.rejected"),
        ("openrouter", 403, {"error": {"code": 403, "message": "…", "metadata": {"limit_source": "openrouter_key_limit"}}}, "provider.quota_exhausted"),
        ("openrouter", 502, {"error": {"code": 502, "message": "…", "metadata": {"error_type": "provider_overloaded"}}}, "provider.overloaded"),
        ("exa", 402, {"requestId": "r", "error": "…", "tag": "NO_MORE_CREDITS"}, "provider.quota_exhausted"),
        ("firecrawl", 500, {"success": False, "code": "SCRAPE_TIMEOUT", "error": "…"}, "provider.outcome_unknown"),
        ("dashscope", 400, {"code": "InvalidApiKey", "message": "…", "request_id": "r"}, "provider.auth"),
        ("dashscope", 403, {"code": "AccessDenied.Unpurchased", "message": "…"}, "provider.permission"),
        ("dashscope", 403, {"code": "AllocationQuota.FreeTierOnly", "message": "…"}, "provider.quota_exhausted"),
    ],
)  # fmt: skip
def test_a_service_without_a_file_of_its_own_is_read_by_its_codes(
    provider: str, status: int, body: dict[str, Any], meaning: str
) -> None:
    reading = classify(
        Facts(provider=provider, status=status, body=body, codes=codes_of(body), message=message_of(body))
    )

    assert reading.kind == meaning


PRINTED_CODES = {
    "ORA-06512: at line 3\nORA-00001: unique constraint violated": "provider.bad_request",
    "SqlException: Login failed for user 'x'. Error Number:18456,State:1,Class:14": "provider.auth",
    "temporary delivery error\n451 4.7.1 Try again later": "provider.unavailable",
    "550 5.7.1 Relaying denied": "provider.permission",
    "550 5.4.5 Daily user sending quota exceeded": "provider.quota_exhausted",
    "TOPIC_AUTHORIZATION_FAILED": "provider.permission",
    "MongoError: not master and slaveOk=false": "provider.unavailable",
    "E: Unable to locate package squashfs-tools": "extension.dependency_missing",
    "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4407": "tool.busy",
    "AbortError: This operation was aborted\n    at node:internal/deps/undici/undici:11576:11": "cancel.run",
    "Error Code: 1045. Access denied for user 'app'@'db' (using password: YES)": "provider.auth",
    "SQLSTATE[42S02]: Base table or view not found: 1146 Table 'app.jobs' doesn't exist": "provider.rejected",
    "SQLSTATE[HY000]: General error: 1040 Too many connections": "provider.overloaded",
    "[08S01] [MySQL][ODBC 8.0(w) Driver]Lost connection": "provider.outcome_unknown",
    "('28000', '[28000] [unixODBC][FreeTDS][SQL Server]Login failed')": "provider.auth",
    "[HYT00] [Oracle][ODBC] Login timeout expired (0) (SQLConnect)": "provider.connection",
    "[HYT00] [Oracle][ODBC] Query timeout expired (0) (SQLExecDirectW)": "provider.outcome_unknown",
    "Mongo::Error::OperationFailure: [112:WriteConflict]: please retry (on db:27017)": "tool.busy",
    "MongoServerError: caught\n  ok: 0,\n  code: 13,\n  codeName: 'Unauthorized'": "provider.permission",
    "java.sql.SQLIntegrityConstraintViolationException: ORA something": "provider.bad_request",
    "java.sql.SQLTransactionRollbackException: rolled back": "tool.busy",
    "java.sql.SQLTimeoutException: too late": "provider.outcome_unknown",
    'Error: Code="RequestDisallowedByPolicy" Message="Resource \'vm\' was disallowed by policy."': "provider.permission",
    "Error: Code=AllocationFailed; Message=There is none of this size now.": "provider.overloaded",
    "googleapi: Error 403: Project p is asked too often, rateLimitExceeded": "provider.rate_limited",
    "googleapi: Error 403: See the console for this project., accessNotConfigured": "provider.permission",
    "Channel error: (403) ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN.": "provider.permission",
    "psql: error: could not send: SSL SYSCALL error: EOF detected": "provider.outcome_unknown",
    'psql: error: connection to server at "db", port 5432 failed: SSL SYSCALL error: EOF detected': "provider.connection",
    'psql: error: connection to server at "db", port 5432 failed: FATAL:  role "app" does not exist': "provider.auth",
    "error: could not start the tool: program not found": "internal.file_unavailable",
    "org.asynchttpclient.exception.RemotelyClosedException: Remotely closed": "provider.outcome_unknown",
    "rpc error: code = Unknown desc = write /var/lib/x: no space left on device": "resource.disk",
    "rpc error: code = Unknown desc = Get https://r.example/v2/: dial tcp 10.1.1.1:443: i/o timeout": "provider.connection",
}


def test_the_codes_that_servers_print_decide_in_a_text() -> None:
    wrong = {
        text: failwell.classify({"message": text}).kind
        for text, meaning in PRINTED_CODES.items()
        if failwell.classify({"message": text}).kind != meaning
    }

    assert wrong == {}


BROKERS = (
    "Channel closed by server: {number} ({dashed}) with message x",
    "protocol method: #method<channel.close>(reply-code={number}, reply-text={name} - x, class-id=50)",
    "ChannelClosedByBroker: ({number}, \"{name} - x in vhost '/'\")",
)
"""How the clients for Node, Java and Python print a broker's number and its name."""


def kind_in(text: str) -> str | None:
    found = database_kind_in(text)
    return None if found is None else found[0]


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        ("invalid_model", "provider.model_not_found"),
        ("InvalidModelName", "provider.model_not_found"),
        ("InvalidTemplateDeployment", "provider.bad_request"),
        ("invalid_version_string", "provider.bad_request"),
        ("LinkedAuthorizationFailed", "provider.permission"),
        ("AuthorizationFailure", "provider.permission"),
        ("OperationTimedOut", "provider.outcome_unknown"),
    ],
)
def test_a_code_is_read_by_all_its_words(code: str, meaning: str) -> None:
    assert classify(Facts(status=400, codes=(code.lower(),))).kind == meaning


def test_the_innermost_code_of_a_deployment_says_why_it_failed() -> None:
    inner = {"code": "SubscriptionIsOverQuotaForSku", "message": "none left"}
    body = {
        "error": {
            "code": "InvalidTemplateDeployment",
            "message": "See inner errors for details.",
            "details": [{"code": "ValidationForResourceFailed", "message": "one", "details": [inner]}],
        }
    }

    reading = classify(Facts(status=400, body=body, codes=codes_of(body), message=message_of(body)))

    assert reading.kind == "provider.quota_exhausted"


def test_a_system_error_means_the_same_in_every_language() -> None:
    wrong = {
        sentence: errno_in(f"tool: /some/thing: {sentence.capitalize()}")
        for sentence, name in NAME_BY_TRANSLATION.items()
        if errno_in(f"tool: /some/thing: {sentence.capitalize()}") != name
    }

    assert wrong == {}
    assert failwell.classify({"message": "tar: a.bin: 设备上没有空间"}).kind == "resource.disk"
    assert failwell.classify({"message": "ssh: connect to host a port 22: Connexion refusée"}).retryable
    assert errno_in("Niemand hat hier eine Keine Berechtigung genannte Meldung gesehen") is None


@pytest.mark.parametrize(
    ("text", "kind_read"),
    [
        ("ConnectionError: Error 111 connecting to cache:6379. Connection refused.", "provider.connection"),
        ("ConnectionError: Error 24 connecting to cache:6379. Too many open files.", "resource.file_handles"),
        ("ConnectionError: it went away", "provider.outcome_unknown"),
        (
            "TypeError: fetch failed\n  [cause]: ConnectTimeoutError: late\n    code: 'UND_ERR_CONNECT_TIMEOUT'",
            "provider.connection",
        ),
    ],
)
def test_a_class_that_two_libraries_share_is_read_by_its_message_when_it_is_pasted(
    text: str, kind_read: str
) -> None:
    assert describe_pasted(text).kind == kind_read


def test_numbers_that_are_no_codes_decide_nothing() -> None:
    innocent = (
        "page 550 of 5.7 chapters", "took 451 ms", "Msg from Bob", "the order 12514 was sent", "Local: Time is up", "Code: 60. See above",
        "the part P1001 is out of stock", "[08001] is a key", "Broker: Smith and Sons",
    )  # fmt: skip

    assert {text: found for text in innocent if (found := database_kind_in(text)) is not None} == {}


def test_a_class_of_another_language_is_known_without_its_package() -> None:
    assert failwell.classify({"exception_class": "AbortError", "message": "aborted"}).kind == "cancel.run"
    assert failwell.classify({"exception_class": "NullPointerException"}).kind == "internal.bug"
    loading = {
        "exception_class": "redis.clients.jedis.exceptions.JedisDataException",
        "message": "LOADING Redis is loading",
    }
    assert failwell.classify(loading).kind == "provider.unavailable"


def test_a_status_that_no_registry_knows_is_refined_by_words() -> None:
    assert failwell.classify({"http_status": 456, "message": "failed"}).kind == "provider.quota_exhausted"
    assert failwell.classify({"http_status": 460, "message": "invalid api key"}).kind == "provider.auth"
