"""The same failure has the same fingerprint, whatever differs between two occurrences of it."""

import os
import re
import textwrap
from typing import Any

import pytest

import failwell
from failwell import errors
from failwell.adapters.stack import frames_of, site
from failwell.errors import ProviderMetadata
from failwell.errors.identity import fingerprint, new_id
from failwell.testing.builders import make_fault


def failing_in(source: str, *, file: str = "/srv/app/orders.py", name: str = "work") -> str:
    """The fingerprint of the error that `name` of a module with this source raises."""
    room: dict[str, Any] = {}
    exec(compile(textwrap.dedent(source), file, "exec"), room)
    with pytest.raises(Exception) as caught:
        room[name]()
    return failwell.describe(caught.value).fingerprint


ONE = """
    def work():
        raise KeyError("order 17")
"""
MOVED = """
    import json

    LIMIT = 3

    def work():
        # some lines further down
        value = LIMIT
        raise KeyError("order 9954")
"""
OTHER_FUNCTION = """
    def work():
        return fetch()

    def fetch():
        raise KeyError("order 17")
"""


def test_it_has_a_version_and_a_fixed_length() -> None:
    assert re.fullmatch("f1-[0-9a-f]{16}", failwell.describe(ValueError()).fingerprint)


def test_moved_lines_and_other_messages_change_nothing() -> None:
    assert failing_in(ONE) == failing_in(MOVED)


def test_another_folder_changes_nothing() -> None:
    assert failing_in(ONE) == failing_in(ONE, file="/home/somebody/else/orders.py")


def test_another_function_or_file_is_another_failure() -> None:
    assert failing_in(ONE) != failing_in(OTHER_FUNCTION)
    assert failing_in(ONE) != failing_in(ONE, file="/srv/app/invoices.py")


def test_ids_numbers_and_times_in_names_change_nothing() -> None:
    one = make_fault(kind="provider.unknown", provider="shard-17", model="m-1", details={"id": 1})
    other = make_fault(kind="provider.unknown", provider="shard-99", model="m-2", details={"id": 2})

    assert failwell.describe(one).fingerprint == failwell.describe(other).fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"kind": "provider.auth"}, {"kind": "provider.permission"}),
        ({"provider": "acme"}, {"provider": "other"}),
        (
            {"provider_metadata": ProviderMetadata(status_code=500)},
            {"provider_metadata": ProviderMetadata(status_code=503)},
        ),
        (
            {"provider_metadata": ProviderMetadata(code="slow_down")},
            {"provider_metadata": ProviderMetadata(code="too_many")},
        ),
    ],
    ids=["kind", "provider", "status", "code"],
)
def test_what_happened_makes_a_difference(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (
        failwell.describe(make_fault(**one)).fingerprint != failwell.describe(make_fault(**other)).fingerprint
    )


def test_another_class_is_another_failure() -> None:
    assert failwell.describe(KeyError()).fingerprint != failwell.describe(ValueError()).fingerprint


def test_the_scene_changes_nothing() -> None:
    with errors.scene(run="r1", node="sum"):
        inside = failwell.describe(KeyError()).fingerprint

    assert inside == failwell.describe(KeyError()).fingerprint


def test_numbers_inside_texts_are_blanked_and_numbers_alone_are_not() -> None:
    assert fingerprint("job 12 at 0xdeadbeef", 1) == fingerprint("job 9 at 0x7f00", 1)
    assert fingerprint("job", 1) != fingerprint("job", 2)
    assert fingerprint("a", None) != fingerprint(None, "a")


def test_the_site_is_the_deepest_function_of_the_applications_own() -> None:
    import json

    with pytest.raises(ValueError) as caught:
        json.loads("{")

    assert site(frames_of(caught.value)).startswith("test_fingerprint:test_the_site_is_the_deepest")


def test_an_error_that_was_never_raised_has_no_site() -> None:
    assert site(()) == ""


def test_names_inside_a_function_are_part_of_the_site() -> None:
    def inner() -> None:
        raise ValueError("x")

    with pytest.raises(ValueError) as caught:
        inner()

    assert site(frames_of(caught.value)).endswith(".<locals>.inner")


def test_ids_are_unique_and_sort_by_time() -> None:
    made = [new_id() for _ in range(2_000)]

    assert len(set(made)) == len(made)
    assert [one[:15] for one in made] == sorted(one[:15] for one in made)
    assert all(re.fullmatch("err_[0-9a-f]{27}", one) for one in made)


def test_a_forked_process_makes_other_ids_than_its_parent() -> None:
    new_id()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, "".join(new_id()[15:] for _ in range(20)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    text = os.read(reader, 4_096).decode()
    os.close(reader)
    os.close(writer)
    made = {new_id()[15:] for _ in range(64)}

    assert len(text) == 20 * 16
    assert made.isdisjoint(text[at : at + 16] for at in range(0, len(text), 16))


def test_ids_sort_across_the_years(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    for year in (0, 30, 60, 300):
        monkeypatch.setattr("time.time_ns", lambda seconds=year * 31_557_600: seconds * 10**9)
        made.append(new_id())

    assert made == sorted(made)
    assert len({len(one) for one in made}) == 1
