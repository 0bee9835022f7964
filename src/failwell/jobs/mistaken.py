"""One error for all the mistakes in a manifest or a configuration: each is named, and none hides another."""

from collections.abc import Sequence

from failwell.fault.capability import CapabilityConfigError


def mistaken(
    what: str, wrong: Sequence[tuple[str, str]], *, config_class_name: str = ""
) -> CapabilityConfigError:
    """The error that says of `what` every field that is wrong, and what is wrong with it."""
    each = [f"`{place}` {words}" for place, words in wrong]
    return CapabilityConfigError(
        f"{what}: {'; '.join(each)}",
        fields_invalid=sorted({place for place, _ in wrong}),
        config_class_name=config_class_name,
        details={"mistakes": each},
    )
