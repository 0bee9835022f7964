"""How the options of a connection are found, and what is said about invalid ones. No server is needed."""

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("temporalio")

from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

from failwell.temporal.connection import (
    ConnectionOptions,
    InvalidConnection,
    ServerUnreachable,
    connection_options,
    load_codec,
)


class Reverse(PayloadCodec):
    """A codec without a secret."""

    async def encode(self, payloads: object) -> list[Payload]:
        raise NotImplementedError

    async def decode(self, payloads: object) -> list[Payload]:
        raise NotImplementedError


reverse = Reverse()
number = 3


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ADDRESS", "NAMESPACE", "API_KEY", "TLS", "PROFILE"):
        monkeypatch.delenv(f"TEMPORAL_{name}", raising=False)
    monkeypatch.delenv("FAILWELL_TASK_QUEUE", raising=False)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "temporal.toml"))


def test_options_come_from_the_call_then_the_environment_then_the_defaults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert connection_options() == ConnectionOptions()

    monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal.example.com:7233")
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "ml")
    monkeypatch.setenv("FAILWELL_TASK_QUEUE", "night")
    options = connection_options(namespace="batch")

    assert (options.address, options.namespace, options.task_queue) == (
        "temporal.example.com:7233",
        "batch",
        "night",
    )


def test_a_profile_of_temporals_configuration_file_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "temporal.toml").write_text(
        '[profile.cloud]\naddress = "cloud:7233"\n[profile.cloud.tls]\nserver_name = "cloud.example"\n'
    )
    monkeypatch.setenv("TEMPORAL_PROFILE", "cloud")

    options = connection_options()

    assert (options.address, options.tls_server_name) == ("cloud:7233", "cloud.example")


def test_an_api_key_switches_tls_on_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_API_KEY", "sekret-key-of-the-namespace")

    options = connection_options()

    assert options.api_key == "sekret-key-of-the-namespace"
    assert options.tls_config() is True
    assert "sekret" not in repr(options)


def test_files_of_tls_are_read_and_a_missing_one_is_named(tmp_path: Path) -> None:
    cert, key = tmp_path / "client.pem", tmp_path / "client.key"
    cert.write_bytes(b"certificate")
    key.write_bytes(b"key")

    tls = ConnectionOptions(tls_cert=str(cert), tls_key=str(key)).tls_config()
    assert (tls.client_cert, tls.client_private_key) == (b"certificate", b"key")

    with pytest.raises(InvalidConnection, match=r"`--tls-ca`: cannot read .*no\.pem: no such file"):
        ConnectionOptions(tls_ca=str(tmp_path / "no.pem")).tls_config()
    with pytest.raises(InvalidConnection, match="needs its key"):
        ConnectionOptions(tls_cert=str(cert)).tls_config()


def test_a_codec_is_loaded_by_name_and_anything_else_is_refused() -> None:
    assert load_codec(f"{__name__}:reverse") is reverse
    assert isinstance(load_codec(f"{__name__}:Reverse"), Reverse)
    for name, message in (
        ("reverse", "is not MODULE:OBJECT"),
        ("no_such_module:reverse", "cannot be imported"),
        (f"{__name__}:number", "is no `temporalio.converter.PayloadCodec`"),
    ):
        with pytest.raises(InvalidConnection, match=message):
            load_codec(name)


def test_a_server_that_does_not_answer_is_a_typed_error_with_the_next_step() -> None:
    with pytest.raises(ServerUnreachable, match=r"no Temporal server answers at 127\.0\.0\.1:1") as raised:
        asyncio.run(ConnectionOptions(address="127.0.0.1:1").connect())

    assert raised.value.kind == "provider.connection"
    assert raised.value.user_action is not None
    assert "failwell temporal dev" in raised.value.user_action.detail


@pytest.mark.parametrize("address", ["temporal.example.com", "", "host:port", "a b:7233"])
def test_an_address_without_a_port_is_refused_before_anything_is_sent(address: str) -> None:
    with pytest.raises(InvalidConnection, match="write HOST:PORT"):
        asyncio.run(ConnectionOptions(address=address).connect())
