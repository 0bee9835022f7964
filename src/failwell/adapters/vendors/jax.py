"""jax: the runtime's errors begin with a status word, and memory is one of them."""

import re

from failwell.adapters.classify import needed_mb, shortfall_of
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table
from failwell.adapters.sdk import text_of

_WORD = re.compile(r"\s*([A-Z][A-Z_]{3,30}):")
_KINDS = {
    "INVALID_ARGUMENT": "validation.input_invalid",
    "OUT_OF_RANGE": "validation.input_invalid",
    "UNIMPLEMENTED": "provider.capability_missing",
    "UNAVAILABLE": "worker.transient",
    "ABORTED": "worker.transient",
    "CANCELLED": "cancel.job",
    "DEADLINE_EXCEEDED": "worker.timeout",
    "INTERNAL": "worker.crashed",
    "DATA_LOSS": "worker.crashed",
    "FAILED_PRECONDITION": "internal.bug",
}


def _xla(error: BaseException) -> Reading:
    text = text_of(error)
    word = _WORD.match(text)
    status = word.group(1) if word else None
    if status == "RESOURCE_EXHAUSTED":
        # On a GPU it gives the requested size and not the free memory.
        needed = needed_mb(text)
        return Reading.from_rule(
            kind="resource.gpu_memory",
            rule="jax.RESOURCE_EXHAUSTED",
            basis="code",
            saw="RESOURCE_EXHAUSTED",
            resource_shortfall=shortfall_of("resource.gpu_memory", text),
            details={} if needed is None else {"needed_mb": needed},
        )
    kind = _KINDS.get(status or "", "internal.unknown")
    name = type(error).__name__
    return Reading.from_rule(
        kind=kind, rule=f"jax.{status or name}", basis="code" if status else "type", saw=status or name
    )


_JAX: Table = {"XlaRuntimeError": _xla, "JaxRuntimeError": _xla}

TABLES: dict[str, Table] = {"jaxlib": _JAX, "jax": _JAX, "xla_extension": _JAX}
