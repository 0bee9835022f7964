"""For your own tests: builders of reports and faults, a fake clock, a store in memory, and the fault lab.

Nothing that is shipped for production imports this package.

Example:
    >>> from failwell.testing import FakeClock, make_report
    >>> make_report(kind="provider.auth").category.value
    'configuration'
    >>> clock = FakeClock()
    >>> clock.sleep(60)
    >>> clock.monotonic(), clock.slept
    (60.0, [60])
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.testing.builders import make_fault as make_fault
    from failwell.testing.builders import make_report as make_report
    from failwell.testing.clock import FakeClock as FakeClock
    from failwell.testing.fault_injection import FaultInjection as FaultInjection
    from failwell.testing.fault_injection import inject_fault as inject_fault
    from failwell.testing.laboratory.lab_reply import LabTurn as LabTurn
    from failwell.testing.laboratory.lab_routes import NoSuchFailure as NoSuchFailure
    from failwell.testing.laboratory.server import Lab as Lab
    from failwell.testing.laboratory.server import lab as lab
    from failwell.testing.memory_store import MemoryStore as MemoryStore
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.testing.builders": "make_fault make_report",
            "failwell.testing.clock": "FakeClock",
            "failwell.testing.fault_injection": "FaultInjection inject_fault",
            "failwell.testing.laboratory.lab_reply": "LabTurn",
            "failwell.testing.laboratory.lab_routes": "NoSuchFailure",
            "failwell.testing.laboratory.server": "Lab lab",
            "failwell.testing.memory_store": "MemoryStore",
        },
    )
