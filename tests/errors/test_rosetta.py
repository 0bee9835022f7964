"""The Rosetta table: other systems' names stand under the kind that means the same."""

import pytest

from failwell.errors.axes import ActionKind, Category
from failwell.errors.explanations import rosetta, translate_name
from failwell.errors.faults import family
from failwell.errors.kind_registry import find_kind, kind
from failwell.errors.kinds_table import CATALOGUE
from tools.docs.kinds import rosetta_page

CLASSED = ("provider.", "tool.", "session.", "validation.", "cancel.", "extension.")
STUD_CLASSES = {
    "Validation",
    "ProviderTransient",
    "ProviderCapability",
    "ToolTransient",
    "ToolTerminal",
    "Session",
    "Cancellation",
    "ExtensionHost",
}


def names_of(system: str, prefix: str = "") -> set[str]:
    """What `system` calls things, from one of its lists if `prefix` names it."""
    every = {name for names in rosetta()[system].values() for name in names}
    return {name.removeprefix(prefix) for name in every if name.startswith(prefix)}


def only_kind(system: str, name: str) -> str:
    [found] = [kind for kind, names in rosetta()[system].items() if name in names]
    return found


def test_the_table_has_the_five_systems() -> None:
    assert list(rosetta()) == ["cjm-substrate", "stud-cli", "pipelex", "conductor", "relavium"]


@pytest.mark.parametrize("system", rosetta())
def test_names_stand_under_registered_kinds_only(system: str) -> None:
    assert [name for name in rosetta()[system] if find_kind(name) is None] == []
    assert all(rosetta()[system].values())


@pytest.mark.parametrize("system", rosetta())
def test_no_name_stands_in_two_places(system: str) -> None:
    every = [name.casefold() for names in rosetta()[system].values() for name in names]

    assert len(every) == len(set(every))


@pytest.mark.parametrize(
    ("system", "name", "meaning"),
    [
        ("cjm-substrate", "WorkerOOMError", "worker.oom"),
        ("cjm-substrate", "CapabilityConfigError", "validation.config_invalid"),
        ("cjm-substrate", "CapabilityCancelledError", "cancel.job"),
        ("stud-cli", "ProviderTransient/RateLimited", "provider.rate_limited"),
        ("stud-cli", "ProviderTransient/Unauthorized", "provider.auth"),
        ("stud-cli", "ToolTerminal/Forbidden", "tool.denied"),
        ("stud-cli", "ToolTerminal/ToolNotRegistered", "tool.not_found"),
        ("stud-cli", "Session/ToolExecutionFailed", "limit.turn_limit"),
        ("stud-cli", "Validation/LLMContextLeak", "session.secret_leak"),
        ("pipelex", "provider.credential_refused", "provider.auth"),
        ("pipelex", "model.context_exceeded", "provider.context_too_long"),
        ("pipelex", "LLMCompletionRefusedError", "provider.content_refused"),
        ("conductor", "halt.intentional", "halt.intentional"),
        ("conductor", "internal.script_error_transport", "internal.schema_violation"),
        ("relavium", "provider_rate_limit", "provider.rate_limited"),
        ("relavium", "provider/transport", "provider.connection"),
        ("relavium", "tool_unavailable", "tool.unavailable"),
        ("relavium", "sandbox/timeout", "internal.sandbox_timeout"),
        ("relavium", "EngineStateError/workflow_mismatch", "session.resume_mismatch"),
    ],
)
def test_a_name_means_the_same_here_and_there(system: str, name: str, meaning: str) -> None:
    assert only_kind(system, name) == meaning


def test_the_four_categories_of_jobs_stand_under_kinds_of_that_category() -> None:
    categories = names_of("cjm-substrate", "category/")

    assert categories == {"user_input", "transient", "resource", "fatal"}
    for category in categories:
        assert kind(only_kind("cjm-substrate", f"category/{category}")).category.job == category


def test_pipelex_categories_stand_under_kinds_of_the_same_category() -> None:
    categories = names_of("pipelex", "category/")

    assert categories == {"transient", "configuration", "content", "capacity", "ambiguous", "unknown"}
    for category in categories:
        assert kind(only_kind("pipelex", f"category/{category}")).category is Category(category)


def test_pipelex_user_actions_stand_under_kinds_that_ask_for_the_same_action() -> None:
    actions = names_of("pipelex", "user_action/")

    assert len(actions) == 7
    for action in actions:
        assert kind(only_kind("pipelex", f"user_action/{action}")).action is ActionKind(action)


def test_conductor_kinds_that_we_also_have_mean_themselves() -> None:
    shared = [name for name in names_of("conductor") if find_kind(name) is not None]

    assert len(shared) == 9
    assert [only_kind("conductor", name) for name in shared] == shared


def test_relavium_run_codes_are_all_there() -> None:
    codes = {name for name in names_of("relavium") if "/" not in name}

    assert codes == {
        "validation",
        "content_filter",
        "provider_auth",
        "provider_rate_limit",
        "provider_unavailable",
        "tool_denied",
        "tool_failed",
        "tool_unavailable",
        "budget_exceeded",
        "run_timeout",
        "turn_limit",
        "cancelled",
        "sandbox_error",
        "internal",
    }


def test_relavium_provider_kinds_keep_their_word_on_retrying() -> None:
    retried = {
        name
        for name in names_of("relavium", "provider/")
        if kind(only_kind("relavium", f"provider/{name}")).category.retryable
    }

    assert retried == {"rate_limit", "overloaded", "timeout", "transport"}


def test_no_reason_of_a_sandbox_is_worth_repeating() -> None:
    reasons = names_of("relavium", "sandbox/")

    retried = [r for r in reasons if kind(only_kind("relavium", f"sandbox/{r}")).category.retryable]

    assert len(reasons) == 8
    assert retried == []


@pytest.mark.parametrize(
    ("stud", "codes"),
    [
        ("Validation", "ShapeInvalid ContractVersionMismatch ConfigSchemaViolation"),
        ("ProviderTransient", "NetworkTimeout Provider5xx RateLimited"),
        ("ProviderCapability", "MissingStreaming MissingToolCalling ContextWindowTooSmall"),
        ("ToolTransient", "ExecutionTimeout ResourceBusy"),
        ("ToolTerminal", "InputInvalid OutputMalformed Forbidden"),
        ("Session", "ManifestDrift StoreUnavailable ResumeMismatch"),
        ("Cancellation", "SessionCancelled TurnCancelled ToolCancelled"),
        ("ExtensionHost", "LifecycleFailure DependencyCycle DependencyMissing"),
    ],
)
def test_the_documented_codes_of_stud_cli_keep_their_class(stud: str, codes: str) -> None:
    for code in codes.split():
        assert family(only_kind("stud-cli", f"{stud}/{code}")) == stud


def test_every_kind_of_the_classed_namespaces_has_one_of_the_eight_classes() -> None:
    classed = {made.name: family(made.name) for made in CATALOGUE if made.name.startswith(CLASSED)}

    assert set(classed.values()) == STUD_CLASSES


def test_the_other_kinds_have_no_class() -> None:
    others = [made.name for made in CATALOGUE if not made.name.startswith(CLASSED)]

    assert others
    assert [name for name in others if family(name) is not None] == []


def test_what_waiting_cannot_mend_is_never_called_transient() -> None:
    mended_by_time = {Category.TRANSIENT, Category.AMBIGUOUS}

    for made in CATALOGUE:
        transient = family(made.name) in {"ProviderTransient", "ToolTransient"}
        if made.name.startswith(("provider.", "tool.")):
            assert transient == (made.category in mended_by_time), made.name


def test_a_name_is_found_without_its_list_and_in_any_case() -> None:
    assert translate_name("ratelimited") == [("stud-cli", "provider.rate_limited")]
    assert translate_name("PROVIDERTRANSIENT/RATELIMITED") == [("stud-cli", "provider.rate_limited")]


def test_a_name_of_several_systems_gives_every_meaning() -> None:
    assert translate_name("OutputMalformed") == [
        ("stud-cli", "provider.output_invalid"),
        ("stud-cli", "tool.output_malformed"),
    ]
    assert translate_name("category/transient") == [
        ("cjm-substrate", "worker.transient"),
        ("pipelex", "provider.unavailable"),
    ]


def test_the_exact_name_comes_before_those_it_is_short_for() -> None:
    assert translate_name("cancelled") == [
        ("relavium", "cancel.run"),
        ("relavium", "cancel.turn"),
        ("relavium", "cancel.tool"),
    ]


@pytest.mark.parametrize("name", ["", "/", "nothing like it", "Limited"])
def test_a_name_that_nobody_uses_means_nothing(name: str) -> None:
    assert translate_name(name) == []


def test_the_page_shows_every_name_in_the_row_of_its_kind_and_the_column_of_its_system() -> None:
    rows = [line.split(" | ") for line in rosetta_page().splitlines() if line.startswith("| [")]

    shown = {cells[0].split("`")[1]: [cell.removesuffix(" |") for cell in cells[1:]] for cells in rows}

    for column, table in enumerate(rosetta().values()):
        for name, theirs in table.items():
            assert shown[name][column] == "<br>".join(f"`{one}`" for one in theirs)
