"""docker, paramiko and botocore against loopback servers."""

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from failwell import ErrorReport, describe
from tests.adapters.raisers import CANARY, caught
from tests.sdks.stores.dialects import answering, speaking
from tests.sdks.stores.servers import free_port

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def report_of(run: Callable[[], object]) -> ErrorReport:
    report = describe(caught(run))
    assert CANARY not in report.to_json()
    return report


def by_docker(address: str) -> None:
    docker: Any = pytest.importorskip("docker")
    client = docker.DockerClient(base_url=address.replace("http://", "tcp://"), version="1.43", timeout=2)
    try:
        client.containers.get(CANARY)
    finally:
        client.close()


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "bad parameter", "provider.bad_request"),
        (404, f"No such container: {CANARY}", "provider.bad_request"),
        (404, f"No such image: {CANARY}:latest", "provider.rejected"),
        (409, f'Conflict. The container name "/{CANARY}" is already in use', "provider.bad_request"),
        (500, "driver failed programming external connectivity", "provider.unavailable"),
    ],
)
def test_the_daemon_of_docker_answers(status: int, message: str, kind: str) -> None:
    with answering(status, {"message": message}) as address:
        report = report_of(lambda: by_docker(address))

    assert report.kind == kind


def test_a_daemon_that_is_not_there() -> None:
    docker: Any = pytest.importorskip("docker")

    missing = report_of(lambda: docker.DockerClient(base_url="unix:///tmp/no-such-docker.sock"))
    refused = report_of(lambda: docker.DockerClient(base_url=f"tcp://127.0.0.1:{free_port()}"))

    assert [(report.kind, report.retryable) for report in (missing, refused)] == [
        ("extension.dependency_missing", False)
    ] * 2


def test_a_container_that_failed_is_read_by_its_exit_code() -> None:
    docker: Any = pytest.importorskip("docker")

    def failed(code: int) -> ErrorReport:
        error = docker.errors.ContainerError("container", code, ["command", CANARY], "image", CANARY.encode())
        return describe(error)

    assert [failed(code).kind for code in (1, 127, 137)] == [
        "internal.script_error",
        "internal.spawn_failed",
        "worker.oom",
    ]


@contextmanager
def ssh_server(*, password: str = "right", channel: int | None = None) -> Generator[int]:
    """An SSH server that knows one password and answers every channel with one refusal."""
    paramiko: Any = pytest.importorskip("paramiko")
    key = paramiko.RSAKey.generate(2048)
    transports: list[Any] = []

    class Door(paramiko.ServerInterface):
        def check_auth_password(self, username: str, password_: str) -> int:
            del username
            return paramiko.AUTH_SUCCESSFUL if password_ == password else paramiko.AUTH_FAILED

        def get_allowed_auths(self, username: str) -> str:
            del username
            return "password"

        def check_channel_request(self, kind: str, chanid: int) -> int:
            del kind, chanid
            return paramiko.OPEN_SUCCEEDED if channel is None else channel

    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError, EOFError, paramiko.SSHException):
            line, _ = listening.accept()
            transport = paramiko.Transport(line)
            transports.append(transport)
            transport.add_server_key(key)
            transport.start_server(server=Door())

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.close()
        thread.join(10)
        for transport in transports:
            transport.close()


def by_paramiko(port: int, password: str = "right") -> None:
    paramiko: Any = pytest.importorskip("paramiko")
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
    try:
        client.connect(
            "127.0.0.1",
            port,
            "user",
            password,
            allow_agent=False,
            look_for_keys=False,
            timeout=5,
            banner_timeout=2,
        )
        client.exec_command(f"echo {CANARY}")
    finally:
        client.close()


def test_a_shell_that_cannot_be_reached() -> None:
    with ssh_server() as port:
        wrong = report_of(lambda: by_paramiko(port, "wrong"))
    with ssh_server(channel=1) as port:
        forbidden = report_of(lambda: by_paramiko(port))
    with ssh_server(channel=4) as port:
        full = report_of(lambda: by_paramiko(port))
    with speaking(lambda line: line.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port:
        other = report_of(lambda: by_paramiko(port))
    refused = report_of(lambda: by_paramiko(free_port()))

    assert [report.kind for report in (wrong, forbidden, full, other, refused)] == [
        "provider.auth", "provider.permission", "provider.overloaded", "provider.connection", "provider.connection",
    ]  # fmt: skip
    assert {report.certainty for report in (wrong, forbidden, full, other, refused)} == {"not_sent"}


def test_a_host_key_that_nobody_knows_is_not_accepted() -> None:
    paramiko: Any = pytest.importorskip("paramiko")
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.RejectPolicy())

    with ssh_server() as port:
        report = report_of(
            lambda: client.connect("127.0.0.1", port, "user", "right", allow_agent=False, look_for_keys=False)
        )
    client.close()

    assert (report.kind, report.retryable) == ("provider.tls_failed", False)


def by_aws(service: str, call: Callable[[Any], object], address: str) -> object:
    session: Any = pytest.importorskip("botocore.session")
    config: Any = pytest.importorskip("botocore.config")
    client = session.get_session().create_client(
        service, region_name="eu-west-1", endpoint_url=address, aws_access_key_id="a", aws_secret_access_key="b",
        config=config.Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )  # fmt: skip
    return call(client)


def _xml(code: str) -> str:
    return f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{CANARY}</Message><RequestId>r</RequestId></Error>'


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "NoSuchKey", "provider.bad_request"),
        (404, "NoSuchBucket", "provider.rejected"),
        (403, "AccessDenied", "provider.permission"),
        (403, "SignatureDoesNotMatch", "provider.auth"),
        (403, "RequestTimeTooSkewed", "provider.auth"),
        (400, "ExpiredToken", "provider.auth"),
        (400, "EntityTooLarge", "provider.context_too_long"),
        (409, "OperationAborted", "tool.busy"),
        (503, "SlowDown", "provider.rate_limited"),
        (500, "InternalError", "provider.unavailable"),
    ],
)
def test_a_code_of_s3(status: int, code: str, kind: str) -> None:
    with answering(status, _xml(code), {"content-type": "application/xml"}) as address:
        report = report_of(
            lambda: by_aws("s3", lambda client: client.get_object(Bucket="held", Key=CANARY), address)
        )

    assert (report.kind, report.provider) == (kind, "aws")


@pytest.mark.parametrize(
    ("service", "code", "status", "kind"),
    [
        ("dynamodb", "ConditionalCheckFailedException", 400, "provider.bad_request"),
        ("dynamodb", "ProvisionedThroughputExceededException", 400, "provider.rate_limited"),
        ("dynamodb", "ThrottlingException", 400, "provider.rate_limited"),
        ("dynamodb", "TransactionConflictException", 400, "tool.busy"),
        ("dynamodb", "ResourceInUseException", 400, "tool.busy"),
        ("dynamodb", "UnrecognizedClientException", 400, "provider.auth"),
        ("dynamodb", "ItemCollectionSizeLimitExceededException", 400, "provider.bad_request"),
        ("sqs", "AWS.SimpleQueueService.NonExistentQueue", 400, "provider.rejected"),
        ("sqs", "OverLimit", 403, "provider.rate_limited"),
        ("sqs", "RequestThrottled", 403, "provider.rate_limited"),
    ],
)
def test_a_code_of_dynamodb_and_sqs(service: str, code: str, status: int, kind: str) -> None:
    body = {"__type": f"com.amazonaws.{service}.v20120810#{code}", "message": CANARY}
    calls: dict[str, Callable[[Any], object]] = {
        "dynamodb": lambda client: client.put_item(TableName="held", Item={"id": {"S": CANARY}}),
        "sqs": lambda client: client.send_message(QueueUrl="http://127.0.0.1/1/held", MessageBody=CANARY),
    }
    with answering(status, body, {"content-type": "application/x-amz-json-1.0"}) as address:
        report = report_of(lambda: by_aws(service, calls[service], address))

    assert report.kind == kind


def test_an_endpoint_that_is_not_there() -> None:
    address = f"http://127.0.0.1:{free_port()}"

    report = report_of(lambda: by_aws("s3", lambda client: client.list_buckets(), address))

    assert (report.kind, report.certainty) == ("provider.connection", "not_sent")
