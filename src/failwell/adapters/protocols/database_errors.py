"""What the drivers share: the reading of a server's code, and the classes that PEP 249 gives every driver."""

from typing import Any

from failwell.adapters.classification import Classification
from failwell.adapters.sdk_exceptions import names_of
from failwell.errors.axes import Blame, Certainty
from failwell.errors.facts import ProviderMetadata
from failwell.errors.kind_registry import kind as registered_kind

_OPEN = frozenset({"provider.outcome_unknown", "provider.stream_interrupted"})
"""Kinds after which nobody knows whether the work was done. For any other the server said that it was not."""

_PEP_249: dict[str, str] = {
    "dataerror": "provider.bad_request",
    "integrityerror": "provider.bad_request",
    "programmingerror": "internal.bug",
    "notsupportederror": "provider.bad_request",
    "interfaceerror": "internal.bug",
    "internalerror": "provider.unknown",
    "operationalerror": "provider.outcome_unknown",
}
"""PEP 249: what the class says of an error whose code is missing or unknown."""


def server_error(
    error: BaseException, kind: str, *, server: str, sdk: str, code: str, label: str, name: str | None = None, **facts: Any
) -> Classification:  # fmt: skip
    """The reading of an error that the server sent as `code`; `label` says what sort of code it is."""
    shown = f"{label} {code}" if name is None else f"{label} {code} {name}"
    certainty = Certainty.NOT_SENT if kind == "provider.connection" else Certainty.REJECTED
    return Classification.from_rule(
        kind=kind,
        rule=f"{server}.{code}",
        basis="code",
        saw=shown,
        message=f"{registered_kind(kind).summary.removesuffix('.')} ({server}, {shown}).",
        provider=server,
        certainty=None if kind in _OPEN else certainty,
        # A full disk or memory is the server's, and freeing some on this machine does not help.
        blame=Blame.PROVIDER if kind.startswith("resource.") else None,
        provider_metadata=ProviderMetadata(sdk=sdk, exception_type=type(error).__name__, code=name or code),
        **facts,
    )


def client_error(error: BaseException, kind: str, *, server: str, sdk: str, **facts: Any) -> Classification:
    """The reading of an error that the driver found itself, by its class."""
    name = type(error).__name__
    return Classification.from_rule(
        kind=kind,
        rule=f"{sdk}.{name}",
        saw=name,
        provider=server,
        provider_metadata=ProviderMetadata(sdk=sdk, exception_type=name),
        **facts,
    )


def by_class(error: BaseException, *, server: str, sdk: str) -> Classification:
    """What PEP 249's class of the error says, where no code is known."""
    kind = next((_PEP_249[name] for name in names_of(error) if name in _PEP_249), "provider.unknown")
    return client_error(error, kind, server=server, sdk=sdk)
