"""The eight families: closed, each with its own kinds."""

from typing import Any

import pytest

import failwell
from failwell.errors import faults as classes
from failwell.errors.fault import Fault
from failwell.errors.faults import FAMILIES, ProviderTransient, ToolTerminal, Validation, family
from failwell.errors.kinds_table import CATALOGUE
from tests.specimens import each

ONE_OF_EACH = {
    "Validation": "validation.input_invalid",
    "ProviderTransient": "provider.rate_limited",
    "ProviderCapability": "provider.auth",
    "ToolTransient": "tool.busy",
    "ToolTerminal": "tool.failed",
    "Session": "session.locked",
    "Cancellation": "cancel.turn",
    "ExtensionHost": "extension.lifecycle_failure",
}
FAMILIED = ("validation.", "provider.", "tool.", "session.", "cancel.", "extension.")


def public_faults() -> dict[str, type[Fault]]:
    return {
        name: made
        for name, made in vars(classes).items()
        if isinstance(made, type)
        and issubclass(made, Fault)
        and made is not Fault
        and not name.startswith("_")
    }


@pytest.mark.acceptance("stud-cli 1")
@pytest.mark.parametrize(("name", "kind"), ONE_OF_EACH.items())
def test_class_and_kind_read_back_as_given_and_stay_out_of_the_message(name: str, kind: str) -> None:
    made: Any = getattr(classes, name)

    fault = made(kind=kind, message="something happened")

    assert (type(fault).__name__, fault.kind) == (name, kind)
    assert str(fault) == "something happened"
    assert kind not in str(made(kind=kind))


@pytest.mark.acceptance("stud-cli 2")
def test_there_are_exactly_eight_families() -> None:
    assert set(classes.__all__) == set(ONE_OF_EACH)
    assert {made.__name__ for made in FAMILIES} == set(ONE_OF_EACH)


@each("kind", [made.name for made in CATALOGUE if made.name.startswith(FAMILIED)])
def test_every_kind_of_those_prefixes_belongs_to_exactly_one_family(kind: str) -> None:
    holders = [made.__name__ for made in FAMILIES if made.holds(kind)]

    assert holders == [family(kind)]


@pytest.mark.parametrize("kind", ["internal.bug", "resource.disk", "external.git.drift"])
def test_other_kinds_belong_to_no_family(kind: str) -> None:
    assert family(kind) is None


def test_a_kind_of_another_family_is_refused_and_its_own_is_named() -> None:
    with pytest.raises(
        TypeError, match=r"`tool\.busy` is not a kind of ProviderTransient.*belongs to ToolTransient"
    ):
        ProviderTransient(kind="tool.busy")


def test_a_terminal_kind_is_refused_by_the_transient_family_of_the_same_prefix() -> None:
    with pytest.raises(TypeError, match="it belongs to ProviderCapability"):
        ProviderTransient(kind="provider.auth")


def test_an_authors_kind_may_be_raised_in_any_family() -> None:
    assert Validation(kind="external.form.unsigned").kind == "external.form.unsigned"


def test_a_family_needs_a_kind() -> None:
    with pytest.raises(TypeError, match="Validation needs `kind`"):
        Validation(message="no kind")


@pytest.mark.acceptance("stud-cli 3")
def test_wrapping_keeps_class_kind_both_messages_and_the_original() -> None:
    original = ProviderTransient(kind="provider.rate_limited", message="429 from the gateway")

    wrapper = ProviderTransient.wrap(original, "while summarising chapter 3")

    assert (type(wrapper), wrapper.kind) == (ProviderTransient, "provider.rate_limited")
    assert (str(wrapper), str(wrapper.__cause__)) == ("while summarising chapter 3", "429 from the gateway")
    assert wrapper.__cause__ is original


@pytest.mark.acceptance("stud-cli 3")
def test_the_report_of_a_wrapper_has_the_kind_and_both_messages() -> None:
    original = ProviderTransient(kind="provider.rate_limited", message="429 from the gateway")

    report = failwell.describe(ProviderTransient.wrap(original, "while summarising chapter 3"))

    assert (report.kind, report.error_type) == ("provider.rate_limited", "ProviderTransient")
    assert report.message == "while summarising chapter 3"
    assert [cause.message for cause in report.causes] == ["429 from the gateway"]
    assert not report.caller_facing


def test_a_wrapper_of_a_family_cannot_take_over_a_kind_of_another() -> None:
    with pytest.raises(TypeError, match="it belongs to ProviderTransient"):
        ToolTerminal.wrap(ProviderTransient(kind="provider.timeout"), "in a tool")


def test_a_wrapper_of_a_family_may_name_its_own_kind() -> None:
    wrapper = ToolTerminal.wrap(ProviderTransient(kind="provider.timeout"), "in a tool", kind="tool.failed")

    assert (wrapper.kind, failwell.describe(wrapper).kind) == ("tool.failed", "tool.failed")
