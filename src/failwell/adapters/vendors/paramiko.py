"""paramiko: a connection that was not made, a login that was refused, or a channel that broke.

SFTP raises `OSError` with the number of the remote system's error, which is read like a local one.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import text_of
from failwell.adapters.vendor_tables import rows
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import int_attr

_CHANNEL: dict[int, str] = {
    1: "provider.permission",
    2: "provider.connection",
    3: "provider.capability_missing",
    4: "provider.overloaded",
}
"""RFC 4254 section 5.1: why a channel was not opened."""
_NOT_SENT = (
    "protocol banner", "no existing session", "timeout opening channel", "unable to connect", "not a valid ssh",
    "negotiation failed", "no authentication methods", "ssh session not active",
)  # fmt: skip


def _ssh(error: BaseException) -> Classification:
    low = text_of(error).lower()
    if "authentication methods" in low:
        return _row("provider.auth", "SSHException", Certainty.NOT_SENT)
    if "known_hosts" in low:
        return _row("provider.tls_failed", "SSHException", Certainty.NOT_SENT)
    if any(words in low for words in _NOT_SENT):
        return _row("provider.connection", "SSHException", Certainty.NOT_SENT)
    return _row("provider.outcome_unknown", "SSHException")


def _channel(error: BaseException) -> Classification:
    kind = _CHANNEL.get(int_attr(error, "code") or 0, "provider.unknown")
    return _row(kind, "ChannelException", Certainty.NOT_SENT)


def _row(kind: str, name: str, certainty: Certainty | None = None) -> Classification:
    return Classification.from_rule(kind=kind, rule=f"paramiko.{name}", saw=name, certainty=certainty)


TABLES: dict[str, Table] = {
    "paramiko": {
        "SSHException": _ssh,
        "ChannelException": _channel,
        **rows(
            "paramiko",
            {
                "provider.auth": "AuthenticationException",
                "provider.tls_failed": "BadHostKeyException",
                "provider.connection": "NoValidConnectionsError ProxyCommandFailure",
                "validation.config_invalid": "IncompatiblePeer ConfigParseError CouldNotCanonicalize UnknownKeyType",
            },
            certainty=Certainty.NOT_SENT,
        ),
        **rows("paramiko", {"provider.output_invalid": "MessageOrderError SFTPError"}),
    }
}
