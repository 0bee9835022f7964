"""What is typed for a job: in any order, never altered, and refused where it cannot be taken over."""

from pathlib import Path

import pytest

from tests.cli.job_place import Place
from tests.cli.running import failwell


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "echo")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--wait", "--json", "submit", "echo", "value=7"),
        ("submit", "--wait", "echo", "--json", "value=7"),
        ("submit", "echo", "--action", "execute", "value=7", "--wait", "--json"),
        ("submit", "echo", "--wait", "--json", "--priority", "-3", "--", "value=7"),
    ],
)
def test_options_may_stand_before_between_and_after_the_arguments(
    place: Place, arguments: tuple[str, ...]
) -> None:
    done = failwell("jobs", "--store", str(place.path("state")), *arguments)

    assert done.code == 0, done.err
    assert done.data["result"] == 7


def test_a_capability_is_configured_with_the_instance_named_first(place: Place) -> None:
    place.path("set.toml").write_text(
        'name = "set"\nobject = "tools:echo"\n[config.properties.limit]\ntype = "integer"\n'
    )
    place("capabilities", "add", str(place.path("set.toml")))

    done = place("capabilities", "config", "set", "--instance", "two", "limit=7", "--json")

    assert done.data == {"id": "two", "instance": "two", "config": {"limit": 7}}


def test_a_file_is_taken_over_as_it_is_also_if_it_is_empty(place: Place) -> None:
    place.path("text").write_text("päper\n\n")
    place.path("empty").write_text("")

    text = place("jobs", "submit", "echo", f"value=@{place.path('text')}", "--wait", "--json")
    empty = place("jobs", "submit", "echo", f"value=@{place.path('empty')}", "--wait", "--json")

    assert (text.data["result"], empty.data["result"]) == ("päper\n\n", "")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (bytes(range(256)), "is not UTF-8 text"),
        (b"x" * (16 * 1024 * 1024 + 1), "is larger than 16 MiB"),
    ],
)
def test_a_file_that_cannot_be_a_text_is_refused_by_its_name(
    place: Place, content: bytes, words: str
) -> None:
    file = place.path("given.dat")
    file.write_bytes(content)

    done = place("jobs", "submit", "echo", f"value=@{file}")

    assert done.code == 2
    assert f"`{file}` {words}" in done.err
    assert "failwell describe" not in done.err


def test_all_arguments_come_from_one_object_however_large_it_is(place: Place) -> None:
    place.path("all.json").write_text('{"value": "%s"}' % ("x" * 300_000))

    from_file = place(
        "jobs", "submit", "echo", "--arguments", str(place.path("all.json")), "--wait", "--json"
    )
    from_stdin = place(
        "jobs", "submit", "echo", "--arguments", "-", "--wait", "--json", given='{"value": [1]}'
    )

    assert len(from_file.data["result"]) == 300_000
    assert from_stdin.data["result"] == [1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("[1]", "is JSON, but not an object"),
        ('{"value": }', "is not valid JSON: expecting value at line 1, column 11"),
        ('{"value": NaN}', "holds NaN"),
        ('{"value": [1e999]}', "holds 1e999"),
        ("[" * 100_000, "nesting too deep"),
        ('{"value": 1}', "argument `value` is given twice"),
    ],
)
def test_an_object_that_cannot_be_used_is_refused(place: Place, given: str, words: str) -> None:
    done = place("jobs", "submit", "echo", "value=2", "--arguments", "-", given=given)

    assert done.code == 2
    assert words in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("value=1", "value=2"), "argument `value` is given twice"),
        (("value=NaN",), "argument `value` holds NaN"),
        (("value=[-Infinity]",), "argument `value` holds -Infinity"),
        (('value={"a": 1e999}',), "argument `value` holds 1e999"),
        (("value=" + "[" * 100_000,), "argument `value` is JSON with"),
        (("value=" + "1" * 10_000,), "argument `value` is JSON with"),
        (("value=@nowhere",), "cannot read `nowhere` for argument `value`"),
    ],
)
def test_a_value_that_json_cannot_hold_is_refused_by_its_name(
    place: Place, arguments: tuple[str, ...], words: str
) -> None:
    done = place("jobs", "submit", "echo", *arguments)

    assert done.code in (1, 2)
    assert words in done.err
    assert place("jobs", "list", "--json").data == []


def test_a_name_that_is_not_registered_is_a_mistake_with_the_near_one_named(place: Place) -> None:
    done = place("jobs", "submit", "ecko", "value=1")

    assert done.code == 2
    assert "no capability is called `ecko`; did you mean `echo`?" in done.err
    assert "failwell capabilities list" in done.err
    assert "failwell capabilities add" in done.err


def test_a_span_that_is_none_is_explained_by_its_own_command(place: Place) -> None:
    done = place("jobs", "submit", "echo", "--timeout", "5")

    assert "`--timeout` takes a span such as `90s`, `2h` or `7d`, not `5`; did you mean `5s`?" in done.err
    assert "failwell jobs submit --help" in done.err


def test_an_input_of_a_workflow_is_held_to_the_same(place: Place) -> None:
    file = place.path("given.dat")
    file.write_bytes(bytes(range(256)))
    place.path("w.yaml").write_text(
        "workflow: {name: w, entry_point: told, input: {text: {type: string}}}\n"
        'agents: [{name: told, type: set, value: "{{ workflow.input.text }}", routes: [{to: $end}]}]\n'
    )

    refused = place("run", str(place.path("w.yaml")), "--input", f"text=@{file}")
    file.write_bytes(b"")
    empty = place("run", str(place.path("w.yaml")), "--input", f"text=@{file}", "--quiet")

    assert refused.code == 2
    assert f"`{file}` is not UTF-8 text" in refused.err
    assert empty.code == 0, empty.err


def test_a_parameter_that_takes_text_gets_the_text_of_a_number(place: Place) -> None:
    file = place.path("tasks.py")
    file.write_text(
        "from failwell.capability import capability\n\n"
        "@capability\ndef label(name: str, size: int = 1) -> str:\n    return name * size\n"
    )
    added = place("capabilities", "add", str(file), "--json").data
    done = place("jobs", "submit", "label", "name=5", "size=2", "--json")
    wrong = place("jobs", "submit", "label", "name=5", "size=two", "--error-format", "json")

    assert added["id"] == "label"
    assert place("jobs", "show", done.data["id"], "--json").data["arguments"] == {"name": "5", "size": 2}
    assert wrong.code == 2
    assert "`size` must be an integer, not a string" in wrong.error["message"]
