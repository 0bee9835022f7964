"""jax: the runtime's errors begin with a status word, and memory is one of them."""

from failwell.adapters.classification import Classification
from failwell.adapters.classify import needed_mb, shortfall_of
from failwell.adapters.protocols.devices import device_status, kind_of_xla, xla_word
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import text_of


def _xla(error: BaseException) -> Classification:
    text = text_of(error)
    status = xla_word(text)
    if status == "RESOURCE_EXHAUSTED":
        # On a GPU it gives the requested size and not the free memory.
        needed = needed_mb(text)
        return Classification.from_rule(
            kind="resource.gpu_memory",
            rule="jax.RESOURCE_EXHAUSTED",
            basis="code",
            saw="RESOURCE_EXHAUSTED",
            resource_shortfall=shortfall_of("resource.gpu_memory", text),
            details={} if needed is None else {"needed_mb": needed},
        )
    device = device_status(text)
    if device is not None:
        kind, saw = device
        return Classification.from_rule(kind=kind, rule=f"jax.{saw}", basis="code", saw=saw)
    # A Python function that the program handed to jax failed inside it.
    called_back = status == "INTERNAL" and "callback" in text[:200].lower()
    kind = "internal.bug" if called_back else kind_of_xla(status) or "internal.unknown"
    name = type(error).__name__
    return Classification.from_rule(
        kind=kind, rule=f"jax.{status or name}", basis="code" if status else "type", saw=status or name
    )


_JAX: Table = {"XlaRuntimeError": _xla, "JaxRuntimeError": _xla}

TABLES: dict[str, Table] = {"jaxlib": _JAX, "jax": _JAX, "xla_extension": _JAX}
