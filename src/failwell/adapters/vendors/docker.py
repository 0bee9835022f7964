"""docker: the daemon answers over HTTP; a container that failed is read by its exit code."""

from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, text_of
from failwell.adapters.vendor_tables import carries, cause_of, rows
from failwell.adapters.vendors.process import read_exit
from failwell.errors.foreign_objects import int_attr, str_attr

_NAMED = frozenset({404, 409})


def _refine(error: BaseException, facts: Facts) -> None:
    facts.message = str_attr(error, "explanation", limit=2_000) or facts.message


_reply = adapter("docker", "docker", _refine)


def _answered(error: BaseException) -> Classification:
    facts = _reply.facts(error)
    reading = classify(facts)
    if facts.status in _NAMED:
        # A name that is missing or taken. An image is something that had to be there before.
        kind = "provider.rejected" if type(error).__name__ == "ImageNotFound" else "provider.bad_request"
        return reading.by(f"docker.status_{facts.status}", kind)
    return reading


def _failed(error: BaseException) -> Classification:
    """The client's own error: most often the daemon cannot be reached, which its causes tell."""
    text = text_of(error)
    # The socket of the daemon is a file.
    if "PermissionError" in text or "Permission denied" in text:
        return Classification.from_rule(
            kind="provider.permission", rule="docker.PermissionError", provider="docker"
        )
    if "FileNotFoundError" in text or "ConnectionRefusedError" in text or "Connection refused" in text:
        return Classification.from_rule(
            kind="extension.dependency_missing", rule="docker.daemon", provider="docker"
        )
    inner = cause_of(error)
    return carries(inner, f"docker.{type(error).__name__}", otherwise="provider.unknown", provider="docker")


def _container(error: BaseException) -> Classification | None:
    code = int_attr(error, "exit_status")
    return None if code is None else read_exit(code)


TABLES: dict[str, Table] = {
    "docker": {
        "APIError": _answered,
        "DockerException": _failed,
        "ContainerError": _container,
        **rows(
            "docker",
            {
                "internal.script_error": "BuildError",
                "validation.input_invalid": (
                    "InvalidArgument InvalidRepository NullResource DeprecatedMethod ImageLoadError "
                    "MissingContextParameter"
                ),
                "validation.config_invalid": (
                    "InvalidVersion InvalidConfigFile TLSParameterError ContextException ContextNotFound "
                    "ContextAlreadyExists"
                ),
                "provider.auth": "CredentialsNotFound StoreError InitializationError",
                "provider.output_invalid": "StreamParseError",
            },
            provider="docker",
        ),
    }
}
