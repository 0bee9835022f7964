"""How to reach a Temporal server: address, namespace, task queue, TLS and API key.

What is not set comes from Temporal's own environment variables and configuration file, as for Temporal's command
line: `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, `TEMPORAL_TLS_CLIENT_CERT_PATH`, `TEMPORAL_PROFILE`, …
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.fault import Fault
from failwell.errors.missing_extra import need

if TYPE_CHECKING:
    from temporalio.client import Client
    from temporalio.converter import PayloadCodec

ADDRESS = "127.0.0.1:7233"
_ADDRESS = re.compile(r"\S+:\d{1,5}")
NAMESPACE = "default"
TASK_QUEUE = "failwell"
TASK_QUEUE_VARIABLE = "FAILWELL_TASK_QUEUE"
CODEC_VARIABLE = "FAILWELL_TEMPORAL_CODEC"
_FILES = {
    "tls_ca": "server_root_ca_cert",
    "tls_cert": "client_cert",
    "tls_key": "client_private_key",
}
"""Field with a file → the field of `temporalio.envconfig.ClientConfigTLS` that it fills."""


class ServerUnreachable(Fault, kind="provider.connection"):
    """No Temporal server answers at the address."""

    address: str


class InvalidConnection(Fault, kind="validation.config_invalid"):
    """The options of a connection cannot be used."""


class CredentialsRefused(Fault, kind="provider.auth"):
    """The server does not accept the API key or the certificate."""


@dataclass(frozen=True, kw_only=True)
class ConnectionOptions:
    """How to reach a Temporal server. `connection_options` fills in what the environment says."""

    address: str = ADDRESS
    """`HOST:PORT`."""
    namespace: str = NAMESPACE
    task_queue: str = TASK_QUEUE
    """The queue of workflow runs. Each capability has a queue of its own beside it."""
    tls: bool | None = None
    """Whether the connection is encrypted; by default if there is a certificate or an API key."""
    tls_ca: str | None = None
    """A file with the certificate of the authority that signed the server's; the system's authorities by default."""
    tls_cert: str | None = None
    """A file with the certificate of this client."""
    tls_key: str | None = None
    """A file with the private key of `tls_cert`."""
    tls_server_name: str | None = None
    """The name in the server's certificate, where it is not that of the address."""
    codec: str | None = None
    """`module:object` of a payload codec, for example one that encrypts: an instance of
    `temporalio.converter.PayloadCodec`, or a function without parameters that returns one."""
    api_key: str | None = field(default=None, repr=False)
    rpc_metadata: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    async def connect(self) -> "Client":
        """Open a connection.

        Raises:
            MissingExtra: temporalio is not installed.
            InvalidConnection: the address is not HOST:PORT, a certificate or the codec cannot be loaded, or the namespace
                does not exist.
            ServerUnreachable: no server answers, or it refuses the connection.
            CredentialsRefused: the server does not accept the API key or the certificate.
        """
        client_class = need("temporalio.client", "temporal").Client
        if not _ADDRESS.fullmatch(self.address):
            raise InvalidConnection(
                message=f"`{self.address}` is not the address of a server: write HOST:PORT"
            )
        options: dict[str, Any] = {"namespace": self.namespace, "tls": self.tls_config()}
        if self.codec is not None:
            converters = need("temporalio.converter", "temporal")
            options["data_converter"] = replace(
                converters.DataConverter.default,
                payload_codec=load_codec(self.codec),
                # Messages of failures would be stored as they are.
                failure_converter_class=converters.DefaultFailureConverterWithEncodedAttributes,
            )
        try:
            client = await client_class.connect(
                self.address, api_key=self.api_key, rpc_metadata=dict(self.rpc_metadata), **options
            )
        except (RuntimeError, ValueError) as error:
            raise ServerUnreachable.wrap(
                error,
                f"no Temporal server answers at {self.address}",
                address=self.address,
                caller_facing=True,
                user_action=UserAction(
                    ActionKind.FIX_CONFIGURATION,
                    "check `--address` and the TLS options, or start a server with `failwell temporal dev`",
                ),
            ) from error

        await self._check_namespace(client)
        return client

    async def _check_namespace(self, client: "Client") -> None:
        """Refuse a namespace that does not exist and credentials that are not valid. Workers would poll it in vain."""
        service = need("temporalio.service", "temporal")
        requests = need("temporalio.api.workflowservice.v1", "temporal")
        request = requests.DescribeNamespaceRequest(namespace=self.namespace)
        try:
            await client.workflow_service.describe_namespace(request)
        except service.RPCError as error:
            if error.status is service.RPCStatusCode.NOT_FOUND:
                raise InvalidConnection.wrap(
                    error,
                    f"the server at {self.address} has no namespace `{self.namespace}`",
                    caller_facing=True,
                    user_action=UserAction(
                        ActionKind.FIX_CONFIGURATION,
                        "check `--namespace`, or create it with `temporal operator namespace create`",
                    ),
                ) from error
            if error.status is service.RPCStatusCode.UNAUTHENTICATED:
                raise CredentialsRefused.wrap(
                    error, f"the server at {self.address} refuses the credentials", caller_facing=True
                ) from error
            # Whoever may not describe a namespace may be allowed to use it.

    def tls_config(self) -> Any:
        """What `temporalio` takes as `tls`: a switch, or the content of the files."""
        tls_class = need("temporalio.service", "temporal").TLSConfig
        files = {name: getattr(self, name) for name in _FILES if getattr(self, name) is not None}
        if self.tls is False:
            return False
        if (self.tls_cert is None) is not (self.tls_key is None):
            raise InvalidConnection(
                message="a client certificate needs its key: give `tls_cert` and `tls_key`"
            )
        if not files and self.tls_server_name is None:
            return bool(self.tls or self.api_key is not None)
        return tls_class(
            domain=self.tls_server_name, **{_FILES[name]: _read(name, path) for name, path in files.items()}
        )


def connection_options(
    *, address: str | None = None, namespace: str | None = None, task_queue: str | None = None, **others: Any
) -> ConnectionOptions:
    """The options for a connection; what is `None` comes from the environment, else it is the default.

    Args:
        address: `HOST:PORT`; else `TEMPORAL_ADDRESS`.
        namespace: Else `TEMPORAL_NAMESPACE`.
        task_queue: Else `FAILWELL_TASK_QUEUE`.
        others: Further fields of `ConnectionOptions`.

    Raises:
        MissingExtra: temporalio is not installed.
        InvalidConnection: Temporal's configuration file is not valid.
    """
    given: dict[str, Any] = {"address": address, "namespace": namespace, "task_queue": task_queue, **others}
    values = {name: value for name, value in given.items() if value is not None}
    return ConnectionOptions(**{**_environment(), **values})


def _environment() -> dict[str, Any]:
    """What Temporal's environment variables and configuration file say."""
    profile_class = need("temporalio.envconfig", "temporal").ClientConfigProfile
    try:
        profile = profile_class.load()
    except RuntimeError as error:
        raise InvalidConnection.wrap(
            error, f"Temporal's configuration cannot be read: {error}", caller_facing=True
        ) from error
    values: dict[str, Any] = {
        "address": profile.address,
        "namespace": profile.namespace,
        "api_key": profile.api_key,
        "rpc_metadata": profile.grpc_meta or None,
        "task_queue": environ.get(TASK_QUEUE_VARIABLE),
        "codec": environ.get(CODEC_VARIABLE),
    }
    if profile.tls is not None:
        values["tls"] = None if profile.tls.disabled is None else not profile.tls.disabled
        values["tls_server_name"] = profile.tls.server_name
        values |= {name: _source(getattr(profile.tls, source)) for name, source in _FILES.items()}
    return {name: value for name, value in values.items() if value not in (None, "")}


def _source(source: object) -> object:
    """A certificate of the configuration: a path stays one, its text becomes bytes."""
    if isinstance(source, Path):
        return str(source)
    return source.encode() if isinstance(source, str) else source


def _read(name: str, path: object) -> bytes:
    if isinstance(path, bytes):
        return path
    try:
        return Path(str(path)).read_bytes()
    except OSError as error:
        option = f"--{name.replace('_', '-')}"
        reason = (error.strerror or type(error).__name__).lower()
        raise InvalidConnection.wrap(
            error, f"`{option}`: cannot read {path}: {reason}", caller_facing=True
        ) from error


def load_codec(name: str) -> "PayloadCodec":
    """The payload codec called `module:object`.

    Raises:
        InvalidConnection: it cannot be imported, or is no codec.
    """
    codec_class = need("temporalio.converter", "temporal").PayloadCodec
    module, sign, attribute = name.partition(":")
    if not sign or not module or not attribute:
        raise InvalidConnection(message=f"`--codec {name}` is not MODULE:OBJECT")
    try:
        value: object = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidConnection.wrap(
            error, f"`--codec {name}` cannot be imported: {error}", caller_facing=True
        ) from error
    if not isinstance(value, codec_class) and callable(value):
        value = cast("Callable[[], object]", value)()
    if not isinstance(value, codec_class):
        raise InvalidConnection(message=f"`--codec {name}` is no `temporalio.converter.PayloadCodec`")
    return cast("PayloadCodec", value)
