"""The pages about workflow files and events leave nothing out and make nothing up."""

from pathlib import Path

import pytest

from failwell.workflows.compile.json_schema import workflow_schema
from tools.docs import events
from tools.docs.workflow import workflow_file_page


def test_every_key_of_every_part_of_a_file_is_on_the_page() -> None:
    page = workflow_file_page()

    parts = workflow_schema()["$defs"]
    missing = [
        f"{name}.{key}"
        for name, part in parts.items()
        for key in part.get("properties", {})
        if f"| `{key}` |" not in page
    ]
    assert missing == []
    assert "| `limits.budget_usd` | number above 0 |" in page
    assert "Exactly one of `to`, `retry`, `halt`, `propagate`." in page


def test_every_type_of_step_has_its_own_table() -> None:
    page = workflow_file_page()

    types = [name.removeprefix("step_") for name in workflow_schema()["$defs"] if name.startswith("step_")]
    assert [kind for kind in types if f"### type: {kind}\n" not in page] == []


def test_an_event_that_the_code_writes_and_the_page_does_not_know_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {name: meaning for name, meaning in events.ROWS.items() if name != "node:retrying"}
    monkeypatch.setattr(events, "ROWS", {**known, "node:dreaming": "It dreams."})

    with pytest.raises(
        ValueError, match=r"no row for \['node:retrying'\]; nothing writes \['node:dreaming'\]"
    ):
        events.events_page()


def test_the_page_of_events_names_what_ends_a_run() -> None:
    from failwell.store.event import TERMINAL

    page = events.events_page()

    assert all(f"`{name}`" in page for name in TERMINAL if name.startswith("run:"))
    assert Path(events.SOURCE, events.WRITERS[0]).is_dir()
