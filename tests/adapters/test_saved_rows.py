"""Failures that were written down: what runtimes print around a message, and names of classes beside a generic status."""

import builtins

import pytest

from failwell.adapters.log_records.log_record import classify

THROUGHPUT = "com.example.dynamodb.model.ProvisionedThroughputExceededException"


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"exception_class": THROUGHPUT, "http_status": 400, "message": "the level of the table was exceeded"}, "provider.rate_limited"),
        ({"exception_class": "com.example.NonTransientException", "http_status": 404,
          "message": "com.example.NonTransientException: 404 page not found"}, "provider.rejected"),
        ({"exception_class": "tensorflow.python.framework.errors_impl.ResourceExhaustedError",
          "message": "OOM when allocating tensor with shape[8,16]"}, "resource.system_memory"),
        ({"message": "Code: 202. DB::Exception: Too many simultaneous queries. Maximum: 100"}, "provider.rate_limited"),
        ({"http_status": 400, "body": {"error": {"message": "Exceeded rate limits: the table exceeded its quota for updates",
                                               "errors": [{"reason": "rateLimitExceeded"}]}}}, "provider.rate_limited"),
        ({"exception_class": "TypeError", "message": "TypeError: terminated\n    at Fetch.onAborted (node:internal/deps/undici/undici:1:5)"},
         "provider.outcome_unknown"),
        ({"exception_class": "TypeError", "message": "x is undefined\n    at main (file:///app/index.js:3:7)"}, "internal.bug"),
        ({"message": "curl: (52) Empty reply from server"}, "provider.outcome_unknown"),
        ({"exception_class": "System.TypeInitializationException", "message": "The type initializer for 'A' threw an exception.",
          "cause_chain": [{"class": "System.DllNotFoundException", "message": "Unable to load shared library 'b'."}]}, "extension.dependency_missing"),
        ({"http_status": 500, "message": '500 Server Error ("toomanyrequests: You have reached your pull rate limit.")'}, "provider.rate_limited"),
        ({"http_status": 424, "body": {"error": "Request failed during generation: CUDA out of memory"}}, "provider.unavailable"),
        ({"http_status": 507, "message": "the drive is at its threshold"}, "provider.quota_exhausted"),
        ({"http_status": 404, "message": "Dataset acme:books was not found in location EU"}, "provider.rejected"),
        ({"http_status": 404, "message": "Order 7 was not found"}, "provider.bad_request"),
        ({"http_status": 403, "body": {"error": {"type": "feature-disabled", "message": "Monthly usage hard limit exceeded"}}},
         "provider.quota_exhausted"),
        ({"exception_class": "acme.ApiError", "message": "Rate limit reached on tokens per minute: Limit 60, Used 50, Requested 14. Need more tokens? Upgrade."},
         "provider.rate_limited"),
        ({"http_status": 400, "message": "length of prompt_tokens (68957) must be less than max_seq_len (65536)."}, "provider.context_too_long"),
        ({"message": "Commit conflict for version 66: Failed to commit the transaction after 20 retries."}, "tool.busy"),
        ({"message": "sent 1009 (message too big); no close frame received", "exception_class": "websockets.exceptions.ConnectionClosedError"},
         "provider.context_too_long"),
        ({"message": "A client error (RequestTimeTooSkewed) occurred when calling the UploadPart operation: the difference is too large"}, "provider.auth"),
        ({"message": 'ReplyBodyError: { ErrorCode: "ErrorQuotaExceeded", ErrorMessage: "The mailbox is larger than its maximum size." }'}, "provider.quota_exhausted"),
        ({"http_status": 400, "message": "The level of provisioned throughput of the table was exceeded"}, "provider.rate_limited"),
        ({"message": "Failed to install the chart: timed out waiting for the condition"}, "provider.outcome_unknown"),
        ({"exception_class": "ImportError", "message": "cannot import name 'Old' from 'openai' (unknown location)"}, "extension.dependency_missing"),
        ({"exception_class": "ImportError", "message": "cannot import name 'Old' from 'openai.types'"}, "extension.dependency_missing"),
        ({"exception_class": "ImportError", "message": "cannot import name 'Old' from 'shop'"}, "internal.bug"),
        ({"exception_class": "ImportError", "message": "cannot import name 'Old' from partially initialized module 'openai' (most likely due to a circular import)"},
         "internal.bug"),
        ({"http_status": 415, "body": {"status": {"error": "Content type error"}}}, "provider.bad_request"),
        ({"message": "Failed to put item: An error occurred (ProvisionedThroughputExceededException) on request (A) on table (b) when calling PutItem"},
         "provider.rate_limited"),
        ({"message": "Process finished with exit code -1073741819 (0xC0000005)"}, "internal.bug"),
        ({"message": "task ended with exit code 3221225781"}, "extension.dependency_missing"),
        ({"exception_class": "subprocess.CalledProcessError", "message": "Command 'a.exe' returned non-zero exit status 3221225786."}, "cancel.run"),


        ({"message": "Error: Error acquiring the state lock\n\nError message: resource temporarily unavailable\nLock Info:\n  ID: 1"}, "tool.busy"),
        ({"message": "Error: Error acquiring the state lock\n\nError message: AccessDenied: no"}, "provider.permission"),
        ({"message": "ERROR: Couldn't connect to Docker daemon at http+docker://localunixsocket - is it running?"}, "validation.config_invalid"),
        ({"exception_class": "psycopg.OperationalError", "message": 'connection failed: connection to server at "db", port 5432 failed: FATAL:  Max client connections reached'},
         "provider.connection"),
        ({"http_status": 404, "exception_class": "JiraError", "message": "JiraError HTTP 404 url: https://x.example/rest/api/2/issue/KEY-9 text: Issue Does Not Exist"},
         "provider.bad_request"),
        ({"http_status": 404, "message": "404 Client Error: Not Found for url: https://x.example/v1/none"}, "provider.rejected"),
        ({"http_status": 403, "message": "googleapi: Error 403: User rate limit exceeded, userRateLimitExceeded - retrying 2/10"}, "provider.rate_limited"),
        ({"exception_class": "TypeError", "sdk": "pymysql", "message": "a bytes-like object is required, not 'int'"}, "internal.bug"),
        ({"exception_class": "ValueError", "sdk": "acme", "message": "not enough values to unpack (expected 2, got 1)"}, "internal.bug"),
        ({"message": "runner ended: exit status 0xc0000005"}, "internal.bug"),
        ({"transport": "stream", "provider": "openai", "message": ""}, "provider.stream_interrupted"),
        ({"exception_class": "sqlalchemy.exc.OperationalError", "sdk": "sqlalchemy", "message": "(sqlite3.OperationalError) no such table: orders"}, "provider.rejected"),
        ({"message": "An update process is already in progress."}, "tool.busy"),
        ({"message": "page.goto: net::ERR_EMPTY_RESPONSE at https://example.org"}, "provider.outcome_unknown"),
        ({"message": "Announcement failed: gateway closed (1006 abnormal closure): no close reason"}, "provider.stream_interrupted"),

        ({"message": "TypeError: Cannot read properties of undefined (reading '0')", "exception_class": "TypeError"}, "internal.bug"),
        ({"message": "You have exceeded a secondary rate limit and are temporarily blocked from content creation."}, "provider.rate_limited"),
        ({"message": "The service gets too many requests: Read requests per minute of the images sheet"}, "provider.rate_limited"),
        # Nobody has to wait for a window that the request does not fit into.
        ({"http_status": 429, "message": "Rate limit reached on tokens per minute (TPM): Limit 7000, Used 0, Requested ~12903. Please try again in 50s."},
         "provider.context_too_long"),
        ({"http_status": 429, "message": "Rate limit reached on tokens per minute (TPM): Limit 7000, Used 6000, Requested 1290. Please try again in 5s."},
         "provider.rate_limited"),
        ({"message": "curl: (35) OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number"}, "provider.tls_failed"),
        ({"message": "Error: Missing lock for job 84"}, "provider.outcome_unknown"),
        ({"exception_class": "acme.engine.InternalTaskException", "message": "event 84"}, "provider.unknown"),
        ({"exception_class": "openai.APIStatusError", "message": "The requested model (x-9) is not available on Acme Cloud."}, "provider.model_not_found"),
        ({"exception_class": "openai.APIStatusError", "message": "The requested model (x-9) is currently not available."}, "provider.overloaded"),

        # What a runtime wrapped says less than the reply beside it.
        ({"http_status": 401, "exception_class": "java.util.concurrent.ExecutionException",
          "cause_chain": [{"class": "java.net.SocketTimeoutException", "message": "connect timed out"}]}, "provider.auth"),
        ({"message": "Your prompt was rejected. Repeated violations will be rate limited."}, "provider.content_refused"),
        ({"http_status": 424, "message": "could not list the tools. Status code: 401 (Unauthorized)"}, "provider.auth"),
        ({"http_status": 500, "message": "could not process the item {'promo': {'code': '404'}}"}, "provider.unavailable"),
        ({"message": "<Error><Code>InvalidAccessKeyId</Code><Message>x</Message></Error>"}, "provider.auth"),
        # FTP numbers its replies as HTTP and SMTP do, with another meaning.

        ({"message": "550 Permission denied on this server."}, "provider.permission"),

        ({"http_status": 550, "message": "550"}, "provider.unavailable"),
        # A reply without a status is read by its words and codes, under whatever key they stand.
        ({"exception_class": "Error", "message": "it ended", "body": {"code": "ECONNRESET"}}, "provider.outcome_unknown"),
        ({"body": {"error": "Model acme/x is currently loading", "estimated_time": 35.1}}, "provider.overloaded"),
        ({"body": {"outcome": {"number": 2049, "said": "the api key is invalid"}}}, "provider.auth"),
        ({"body": {"status_code": 429, "said": "wait"}}, "provider.rate_limited"),
        ({"http_status": 400, "message": "Invalid input argument for the model 'acme/x'"}, "provider.bad_request"),
        ({"http_status": 403, "body": {"message": 'pods "x" is forbidden: exceeded quota: acme, requested: cpu=20, used: cpu=32575m', "reason": "Forbidden", "code": 403}},
         "provider.quota_exhausted"),
        ({"message": "rpc error: code = Canceled desc = context canceled"}, "cancel.run"),

        ({"exception_class": "TypeError", "message": "Failed to fetch"}, "provider.outcome_unknown"),
        ({"message": "ERROR #40001 restart transaction: acme"}, "tool.busy"),
        ({"message": 'MysqlError { code: 1114, message: "The table is full", state: "HY000" }'}, "resource.disk"),
        ({"message": 'reqwest::Error { kind: Request, url: "https://acme.example", source: TimedOut }'}, "provider.outcome_unknown"),


        ({"exception_class": "System.Net.Sockets.SocketException",
          "message": "No se puede establecer una conexión ya que el equipo de destino denegó expresamente dicha conexión."}, "provider.connection"),
        ({"exception_class": "GuzzleHttp\\Exception\\ConnectException", "message": "cURL error 28: Operation timed out after 90000 milliseconds with 0 bytes received"},
         "provider.outcome_unknown"),
        ({"exception_class": "replicate.exceptions.ModelError", "message": "NSFW content detected. Try a different prompt."}, "provider.content_refused"),
        ({"message": "PutObject: not allowed by the security policy of the bucket"}, "provider.permission"),
        ({"message": "HTTP client failed: Server returned nothing (no headers, no data)"}, "provider.outcome_unknown"),
    ],
)  # fmt: skip
def test_a_row_is_read_as_what_it_says(row: dict[str, object], kind: str) -> None:
    assert classify(row).kind == kind


@pytest.mark.parametrize(
    "message",
    [
        "Download in progress... 45%",
        "Merge failed: see the change that closes #1013",
        "Position closed 3000 shares",
        "systemd: caught SIGCHLD",
        "nginx: received SIGHUP, reloading",
        "Error: index 5 not found in list",
    ],
)
def test_words_that_mean_something_else_are_not_repeated(message: str) -> None:
    assert not classify({"message": message}).retryable


@pytest.mark.parametrize("code", ["DataLimitExceeded", "PayloadLimitExceeded"])
def test_how_large_one_thing_may_be_is_no_quota(code: str) -> None:
    assert classify({"body": {"error": code}}).kind != "provider.quota_exhausted"


def test_wrappers_in_wrappers_are_taken_off_once() -> None:
    chain = [{"class": "System.AggregateException", "message": "more"}] * 11

    row = {
        "exception_class": "System.AggregateException",
        "message": "one",
        "cause_chain": [*chain, {"class": "System.DllNotFoundException"}],
    }

    assert classify(row).kind == "extension.dependency_missing"


def test_a_class_that_only_repeats_a_bad_request_changes_no_status() -> None:
    row = {
        "exception_class": "acme.InvalidRequestError",
        "http_status": 400,
        "message": "the field `n` is wrong",
    }

    assert classify(row).kind == "provider.bad_request"


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, cls in vars(builtins).items()
        if isinstance(cls, type) and issubclass(cls, BaseException)
    ],
)
def test_a_row_of_every_class_of_python_is_read(name: str) -> None:
    row = {"sdk": "python", "exception_class": name, "message": "it went wrong"}

    assert classify(row).evidence


def test_a_saved_group_is_what_its_member_is() -> None:
    row = {
        "sdk": "python",
        "exception_class": "ExceptionGroup",
        "message": "unhandled errors in a TaskGroup (1 sub-exception)",
        "cause_chain": [{"class": "httpx.ConnectError", "message": "All connection attempts failed"}],
    }

    assert classify(row).kind == "provider.connection"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("FAILED_PRECONDITION: DNN library initialization failed.", "validation.config_invalid"),
        ("UNAVAILABLE: the device was reset", "worker.transient"),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.", "resource.gpu_memory"),
    ],
)  # fmt: skip
def test_a_saved_error_of_a_device_is_none_of_a_service_that_uses_the_same_words(
    message: str, kind: str
) -> None:
    row = {"exception_class": "jaxlib.xla_extension.XlaRuntimeError", "message": message}

    assert classify(row).kind == kind
    assert classify({**row, "exception_class": "grpc.RpcError"}).kind != kind


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("provider.rate_limited", [
            {"message": "Slow mode is on. Retry in 41 seconds"},
            {"message": "Exceeded 4 calls per second for this client"},
            {"message": "an error occurred: too_many_requests"},
            {"message": "could not read the name of the exception; please lower your request rate"},
            {"http_status": 400, "body": {"errors": [{"message": "no", "extensions": {"code": "RATELIMITED"}}]}},
            {"http_status": 403, "message": "googleapi: Error 403: User asked too often, userRateLimitExceeded"},
        ]),
        ("provider.quota_exhausted", [
            {"http_status": 409, "message": "creating the pool failed with error: InsufficientQuota: 4 cores are needed"},
            {"http_status": 409, "body": {"code": "OperationNotAllowed", "message": "The operation exceeds the quota of cores"}},
            {"http_status": 400, "message": "These service limits were exceeded: subnets"},
        ]),
        ("provider.model_not_found", [
            {"message": "The requested model (lab-9) is not available in this workspace"},
            {"http_status": 400, "body": {"error": {"code": "model_not_supported", "message": "This one is not supported."}}},
        ]),
        ("provider.context_too_long", [
            {"message": "Assertion failed: Input length 9001 must be less than max sequence length 4096"},
            {"http_status": 400, "message": "max_total_tokens (9001) must be less than or equal to max_seq_len (4096)"},
        ]),
        ("provider.content_refused", [{"http_status": 400, "message": "Two prompts contain words that were filtered"}]),




        ("provider.overloaded", [{"exception_class": "psycopg.errors.TooManyConnections", "message": "all are taken"}]),
        ("provider.connection", [
            {"message": "request failed, reason: Client network socket disconnected before secure TLS connection was established"},
            {"message": "The SSL connection could not be established, see inner exception. An existing connection was forcibly closed"},
            {"message": "connection not available, the request was dropped from the queue after 538ms"},
        ]),
        ("provider.timeout", [{"exception_class": "psycopg2.errors.QueryCanceled", "message": "canceling statement"}]),
        ("tool.busy", [{"message": "Operation cannot be fulfilled: the object has been modified; please apply your changes to the newest"}]),
        ("resource.gpu_memory", [
            {"message": "The sequence length (9001) is larger than the number of tokens that fit into the KV cache (4096)"},
            {"message": "Faiss assertion 'err == cudaSuccess' failed in alloc.cpp:31; details: CUDA error 2 out of memory"},
        ]),
        ("resource.system_memory", [{"message": "Container killed for exceeding memory limits. 8.3 GB of 8 GB used\nexit status 1"}]),

        ("cancel.run", [{"message": "rsync error: received SIGINT, SIGTERM, or SIGHUP (code 20) at rsync.c(644)"}]),
    ],
)  # fmt: skip
def test_a_row_is_what_its_sentence_says(kind: str, rows: list[dict[str, object]]) -> None:
    assert {str(row): classify(row).kind for row in rows} == {str(row): kind for row in rows}


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"message": "The model is 552 MB, and 600 are allowed"}, "provider.unavailable"),
        ({"message": "Not Found in cache, loading"}, "provider.rejected"),
        ({"http_status": 400, "message": "The model lab-9 with a temperature of 0.2 is not supported."}, "provider.model_not_found"),
        ({"message": "limit=40 offset=2 retry_in=7"}, "provider.rate_limited"),
        ({"message": "Execution exceeded 30s"}, "provider.rate_limited"),
        ({"message": "Assertion failed: the queue is longer than it was"}, "provider.context_too_long"),
    ],
)  # fmt: skip
def test_what_only_looks_like_it_is_not_read_so(row: dict[str, object], kind: str) -> None:
    assert classify(row).kind != kind
