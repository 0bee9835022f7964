"""What a user's own tests need: builders, a clock, and the fault laboratory. Standard library alone.

Nothing that is shipped for production imports this room. Being for people and not for other rooms, it
has a front door of its own: each name is loaded when it is first used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from failwell.testing.builders import a_fault as a_fault
    from failwell.testing.builders import a_report as a_report
    from failwell.testing.clock import FakeClock as FakeClock
    from failwell.testing.laboratory import lab as lab

_HOMES = {
    "FakeClock": "failwell.testing.clock",
    "a_fault": "failwell.testing.builders",
    "a_report": "failwell.testing.builders",
    "lab": "failwell.testing.laboratory",
}

__all__ = ["FakeClock", "a_fault", "a_report", "lab"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
