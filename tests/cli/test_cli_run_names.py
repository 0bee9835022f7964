"""Steps, groups, inputs and loop variables may have any name: none of them becomes a parameter of ours."""

import inspect
import json
import keyword
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.running import Done, failwell

RESERVED = (
    "workflow",
    "context",
    "output",
    "error",
    "failwell",
    "conductor",
    "self",
    "_index",
    "_key",
    "_attempt",
)
TEMPLATE_WORDS = (
    "self",
    "loop",
    "not",
    "none",
    "true",
    "and",
    "if",
    "in",
    "is",
    "super",
    "caller",
    "range",
    "item",
)
UNICODE = ("schön", "naïve", "变量", "имя", "Ω", "été_2", "ﬁ", "ª", "𝐱", "日本")


def _parameters() -> list[str]:
    """The names of the parameters and the variables of every function that runs a workflow."""
    import_module("failwell.workflows.running.launch")
    names: set[str] = set()
    for module_name, module in list(sys.modules.items()):
        if not module_name.startswith(("failwell.workflows", "jinja2")):
            continue
        for _, value in inspect.getmembers(module):
            functions = [value, *vars(value).values()] if inspect.isclass(value) else [value]
            for function in functions:
                code = getattr(function, "__code__", None)
                names.update(getattr(code, "co_varnames", ()))
    return sorted(name for name in names if name.isidentifier())


PARAMETERS = _parameters()
NAMES = st.one_of(
    st.sampled_from(PARAMETERS),
    st.sampled_from(
        ["task", "node", "self", "everything", "unrestricted", "call", "extra", "names", "kwargs"]
    ),
    st.sampled_from([*keyword.kwlist, *keyword.softkwlist]),
    st.sampled_from(UNICODE),
    st.sampled_from(TEMPLATE_WORDS),
    st.sampled_from(RESERVED),
)


def _file(folder: Path, names: list[str], variable: str) -> str:
    """A chain of a step, a step that reads it, a group, a loop, a failing step and its handler."""
    first, second, third, fourth, group, loop, failing, handler = names
    steps: list[dict[str, Any]] = [
        {"name": first, "type": "set", "value": "1", "routes": [{"to": second, "when": f"{first}.output == 1"}]},
        {"name": second, "type": "set", "value": f"{{{{ {first}.output }}}}", "routes": [{"to": group}]},
        {"name": third, "type": "set", "value": "a"},
        {"name": fourth, "type": "set", "value": f"{{{{ {second}.output }}}}"},
        {
            "name": failing, "type": "set", "value": "{{ 1 // 0 }}",
            "routes": [{"on_error": True, "to": handler, "when": f"{failing}.error.kind != ''"}],
        },
        {"name": handler, "type": "set", "value": f"{{{{ {failing}.error.kind }}}}", "routes": [{"to": "$end"}]},
    ]  # fmt: skip
    document: dict[str, Any] = {
        "workflow": {"name": "flow", "entry_point": first, "input": {variable: {"type": "array"}}},
        "agents": steps,
        "parallel": [{"name": group, "agents": [third, fourth], "routes": [{"to": loop}]}],
        "for_each": [
            {
                "name": loop, "type": "for_each", "source": f"workflow.input.{variable}", "as": variable,
                "agent": {"name": f"{loop}_body", "type": "set", "value": f"{{{{ {variable} }}}}"},
                "routes": [{"to": failing, "when": f"{loop}.count == 2"}],
            }
        ],
        "output": {"kind": f"{{{{ {handler}.output }}}}", "group": f"{{{{ {group}.outputs | length }}}}"},
    }  # fmt: skip
    path = folder / "flow.yaml"
    path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    return str(path)


def _run(folder: Path, names: list[str], variable: str) -> Done:
    file = _file(folder, names, variable)
    return failwell(
        "run", file, "-i", f"{variable}=[1, 2]", "-q", "--format", "json", "--store", str(folder / "store")
    )


@pytest.mark.parametrize(
    "name", ["task", "node", "class", "everything", "call", "unrestricted", "extra", "owner"]
)
def test_a_step_with_the_name_of_a_parameter_runs_as_any_other(tmp_path: Path, name: str) -> None:
    for place in range(8):
        names = [f"step{number}" for number in range(8)]
        names[place] = name

        done = _run(tmp_path, names, "items")

        assert (done.code, done.err) == (0, ""), (place, done.err)
        assert done.data == {"kind": "internal.template_error", "group": 2}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(NAMES, min_size=8, max_size=8, unique=True), variable=NAMES)
def test_names_of_any_origin_run_or_are_refused_and_never_crash(
    tmp_path: Path, names: list[str], variable: str
) -> None:
    done = _run(tmp_path, names, variable)

    assert done.code in (0, 1, 2)
    assert "internal.bug" not in done.err, done.err
    if done.code == 0:
        assert done.data == {"kind": "internal.template_error", "group": 2}
