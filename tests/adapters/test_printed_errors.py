"""What other languages and commands printed is described like a failure that was met here."""

import json

import pytest

from failwell import Category
from failwell.adapters.log_records.pasted import describe_pasted
from failwell.errors.faults import Validation

JAVA = """\
Exception in thread "main" java.lang.RuntimeException: could not load the orders of customer 4711
	at com.acme.Main.run(Main.java:12)
Caused by: java.io.UncheckedIOException: java.net.ConnectException: Connection refused
	at com.acme.Http.get(Http.java:40)
Caused by: java.net.ConnectException: Connection refused
	... 3 more
"""
NODE = """\
TypeError: fetch failed
    at node:internal/deps/undici/undici:12345:11
    at async main (/app/x.js:3:5) {
  [cause]: Error: getaddrinfo ENOTFOUND api.example.com
      at GetAddrInfoReqWrap.onlookup (node:dns:107:26) {
    code: 'ENOTFOUND'
  }
}
"""
DOTNET = """\
System.Net.Http.HttpRequestException: Response status code does not indicate success: 429 (Too Many Requests).
   at System.Net.Http.HttpResponseMessage.EnsureSuccessStatusCode()
   at Acme.Orders.Load() in /src/Orders.cs:line 44
"""


@pytest.mark.parametrize(
    ("text", "kind", "types"),
    [
        (
            JAVA,
            "provider.connection",
            ["RuntimeException", "UncheckedIOException", "ConnectException"],
        ),
        (NODE, "provider.connection", ["TypeError", "Error"]),
        (DOTNET, "provider.rate_limited", ["HttpRequestException"]),
        ("curl: (60) SSL certificate problem: certificate has expired", "provider.tls_failed", ["curl"]),
        ("dial tcp 10.0.0.1:443: connect: connection refused", "provider.connection", ["PrintedError"]),
    ],
)
def test_a_printed_chain_keeps_its_order_and_its_root_cause_decides(
    text: str, kind: str, types: list[str]
) -> None:
    report = describe_pasted(text)

    assert report.kind == kind
    assert [report.error_type, *[cause.type for cause in report.causes]] == types


def test_the_evidence_says_what_of_the_text_decided() -> None:
    report = describe_pasted("npm error code E401\nnpm error Incorrect or missing password.")

    assert report.kind == "provider.auth"
    assert report.provider_metadata is not None
    assert (report.provider_metadata.status_code, report.provider_metadata.sdk) == (401, "npm")


def test_a_wait_in_printed_headers_is_kept() -> None:
    text = "Azure.RequestFailedException: no\nStatus: 429 (Too Many Requests)\n\nHeaders:\nRetry-After: 12\n"

    report = describe_pasted(text)

    assert report.not_before is not None
    assert report.not_before.after == 12


@pytest.mark.parametrize("policy", ["strict", "none", "repr_only", "full"])
def test_secrets_in_printed_errors_are_masked_under_every_policy(policy: str) -> None:
    secret = "sk-proj-" + "a1B2" * 10
    texts = [
        f"fatal: Authentication failed for 'https://user:{secret}@git.example.com/a.git/'",
        f"java.io.IOException: HTTP 401 for key {secret}\nCaused by: java.lang.Error: {secret}",
        f'curl: (22) The requested URL returned error: 403 {{"key": "{secret}"}}',
    ]

    written = [describe_pasted(text, policy=policy).to_json() for text in texts]

    assert all(secret not in document for document in written)


def test_words_of_a_printed_error_stay_away_from_users_and_models() -> None:
    report = describe_pasted(JAVA, policy="full")

    assert "4711" in json.dumps(report.view("operator"))
    assert "4711" not in json.dumps(report.view("user"))
    assert "4711" not in json.dumps(report.view("model"))


def test_a_python_traceback_around_another_language_s_words_stays_python_s() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/app/x.py", line 3, in f\n'
        "    g()\n"
        "RuntimeError: java.net.ConnectException: Connection refused\n"
    )

    report = describe_pasted(text)

    assert (report.error_type, report.category) == ("RuntimeError", Category.TRANSIENT)


def test_a_pasted_line_has_the_kind_of_the_live_exception() -> None:
    text = "RuntimeError: Error code: 429 - {'error': {'code': 'insufficient_quota'}}"

    assert describe_pasted(text).kind == "provider.quota_exhausted"


@pytest.mark.parametrize(
    "text", ["all 404 tests passed", "build finished in 500 ms", "listening on port 8429"]
)
def test_output_without_a_failure_is_refused(text: str) -> None:
    with pytest.raises(Validation, match="shows no status or code of an error"):
        describe_pasted(text)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", None),
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total capacity; 1.00 GiB free)",
            (2048.0, 1024.0),
        ),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 20.00 MiB.", None),
        (
            "RuntimeError: MPS backend out of memory (MPS allocated: 9.05 GB, other allocations: 2.00 MB)",
            None,
        ),
        ("[rank0]: OutOfMemoryError: XPU out of memory, please use `empty_cache`", None),
    ],
)
def test_a_full_gpu_is_not_the_memory_of_the_machine(text: str, short: tuple[float, float] | None) -> None:
    report = describe_pasted(text)

    assert report.kind == "resource.gpu_memory"
    shortfall = report.resource_shortfall
    assert short == (None if shortfall is None else (shortfall.needed, shortfall.available))
