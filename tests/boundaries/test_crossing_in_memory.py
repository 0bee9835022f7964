"""Pickled, copied or written down, a fault comes back as the one it was."""

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import failwell
from failwell import ErrorReport, Fault
from failwell.adapters.describe import describe
from failwell.adapters.revival import Recalled, revive
from failwell.capability import ResourceShortfall
from failwell.errors import NotBefore, faults
from tests.boundaries.crossing import CHAINS, LEAVES, Overruled, agreed, three_deep
from tests.specimens import each

Cross = Callable[[Any], Any]

BY_PROTOCOL: dict[str, Cross] = {
    f"pickle {protocol}": lambda fault, protocol=protocol: pickle.loads(pickle.dumps(fault, protocol))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
}
CROSSINGS: dict[str, Cross] = {**BY_PROTOCOL, "copy": copy.copy, "deepcopy": copy.deepcopy}

MADE: dict[str, Callable[[], Fault]] = {
    "Fault": lambda: Fault(kind="external.git.drift", message="drifted", details={"a": [1]}),
    "Validation": lambda: faults.Validation(kind="validation.input_invalid", fields_invalid=["a", "b"]),
    "ProviderTransient": lambda: faults.ProviderTransient(
        kind="provider.overloaded", provider="acme", not_before=NotBefore(after=3.0)
    ),
    "ProviderCapability": lambda: faults.ProviderCapability(kind="provider.auth", model="large"),
    "ToolTransient": lambda: faults.ToolTransient(kind="tool.busy", message="taken"),
    "ToolTerminal": lambda: faults.ToolTerminal(kind="tool.denied", retryable=False),
    "Session": lambda: faults.Session(kind="session.locked"),
    "Cancellation": lambda: faults.Cancellation(kind="cancel.run"),
    "ExtensionHost": lambda: faults.ExtensionHost(kind="extension.dependency_missing"),
    "CapabilityError": lambda: faults.CapabilityError("it", "failed", 3),
    "CapabilityInputError": lambda: faults.CapabilityInputError("bad", fields_invalid=["size"]),
    "CapabilityTransientError": lambda: faults.CapabilityTransientError("later", retry_after_seconds=2.5),
    "CapabilityResourceError": lambda: faults.CapabilityResourceError(
        "full", resource_shortfall=ResourceShortfall("disk_mb", 10.0, 1.0)
    ),
    "CapabilityFatalError": lambda: faults.CapabilityFatalError("no"),
    "CapabilityDisabledError": lambda: faults.CapabilityDisabledError("resize"),
    "CapabilityConfigError": lambda: faults.CapabilityConfigError(
        "bad key", fields_invalid=["dpi"], config_class_name="ResizeConfig"
    ),
    "CapabilityNotLoadedError": lambda: faults.CapabilityNotLoadedError("resize"),
    "CapabilityTimeoutError": lambda: faults.CapabilityTimeoutError("resize", 30.0, retry_after_seconds=1.0),
    "CapabilityCancelledError": lambda: faults.CapabilityCancelledError("resize"),
    "WorkerOOMError": lambda: faults.WorkerOOMError("resize", process_returncode=-9),
    "Recalled": lambda: revive(describe(OSError(28, "full"))),
}


def public_faults() -> set[str]:
    """Every fault that a user can raise or catch by name."""
    named = {
        name
        for home in (faults,)
        for name, cls in inspect.getmembers(home, inspect.isclass)
        if issubclass(cls, Fault) and not name.startswith("_")
    }
    return named | {"Fault", Recalled.__name__}


def test_every_public_fault_is_in_the_table() -> None:
    assert set(MADE) == public_faults()


@each("cross", CROSSINGS)
@each("name", MADE)
def test_a_fault_comes_back_with_everything_it_had(name: str, cross: str) -> None:
    fault = MADE[name]()
    fault.add_note("first")
    fault.add_note("second")

    back = CROSSINGS[cross](fault)

    assert type(back) is type(fault)
    assert back is not fault
    assert back == fault
    assert back.state() == fault.state()
    assert (str(back), back.args, back.__notes__) == (str(fault), fault.args, ["first", "second"])
    assert describe(back, at=describe(fault).occurred_at).view("model") == describe(fault).view("model")


@each("cross", CROSSINGS)
@each("chain", CHAINS)
@each("leaf", LEAVES)
def test_a_chain_is_judged_alike_before_and_after_and_after_that(leaf: str, chain: str, cross: str) -> None:
    fault = CHAINS[chain](LEAVES[leaf]())
    expected = agreed(describe(fault))

    once = CROSSINGS[cross](fault)
    twice = CROSSINGS[cross](once)

    assert agreed(describe(once)) == expected
    assert agreed(describe(twice)) == expected


@each("chain", CHAINS)
@each("leaf", LEAVES)
@each("policy", ["strict", "none", "repr_only", "full"])
def test_a_report_is_written_read_revived_and_written_alike(leaf: str, chain: str, policy: str) -> None:
    report = describe(CHAINS[chain](LEAVES[leaf]()), policy=policy)
    written = report.to_json()

    read = ErrorReport.from_json(written)
    again = describe(revive(read))

    assert read == report
    assert again == report
    assert again.to_json() == written
    assert ErrorReport.read(written.encode()) == report


def test_a_copy_is_independent_of_the_original() -> None:
    fault = Fault(kind="tool.failed", details={"list": [1]})
    fault.add_note("one")

    twin = copy.deepcopy(fault)
    twin.add_note("two")
    details: Any = twin.details
    details["list"].append(2)

    assert fault.details == {"list": [1]}
    assert fault.__notes__ == ["one"]


def test_a_shallow_copy_keeps_its_live_cause_and_its_traceback() -> None:
    cause = OSError(28, "full")
    with pytest.raises(Fault) as caught:
        raise Fault.wrap(cause, "outside")

    twin = copy.copy(caught.value)

    assert twin.__cause__ is cause
    assert twin.__traceback__ is caught.value.__traceback__


@pytest.mark.parametrize("notes", [7, "text", [1, "kept", None], ("tuple",), None])
def test_notes_that_are_none_do_not_stop_a_fault_from_travelling(notes: Any) -> None:
    fault = Fault(kind="tool.failed", message="x")
    object.__setattr__(fault, "__notes__", notes)

    back = pickle.loads(pickle.dumps(fault))

    assert (back.message, getattr(back, "__notes__", [])) == (
        "x",
        ["kept"] if isinstance(notes, list) else [],
    )


def test_a_wrapper_that_renames_its_foreign_cause_may_still_be_repeated_elsewhere() -> None:
    # A `ValueError` must not be repeated, a tool that is taken may be; the wrapper said which it is.
    fault = Overruled.wrap(ValueError("no"), "taken")

    here, there = describe(fault), describe(pickle.loads(pickle.dumps(fault)))

    assert (here.retryable, here.certainty, here.blame) == (True, "not_sent", "tool")
    assert (there.retryable, there.certainty, there.blame) == (here.retryable, here.certainty, here.blame)
    assert there.user_action == here.user_action


def test_the_cause_of_a_pickled_wrapper_is_called_what_it_was() -> None:
    middle = RuntimeError("middle")
    middle.__cause__ = OSError(28, "full")
    fault = three_deep(middle)

    there = describe(pickle.loads(pickle.dumps(fault)))

    assert [(cause.type, cause.level) for cause in there.causes] == [
        ("Run", 1),
        ("Step", 2),
        ("RuntimeError", 3),
        ("OSError", 4),
    ]
    assert failwell.describe(fault).causes[-1].kind == there.causes[-1].kind == "resource.disk"
