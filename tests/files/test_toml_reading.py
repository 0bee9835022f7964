"""TOML with places: values as the standard library reads them, each where it stands."""

import tomllib
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.files.item_tree import Item
from failwell.files.mistakes import MistakeLog
from failwell.files.toml_reader import from_values, read_toml

TEXT = """\
# a comment with [brackets] and = signs
name = "x"   # another
"quoted \\"key\\"" = 1
a.b.'c d' = true
texts = [
  "one", # first
  'two',
  [3, 4],
]
inline = { x = 1, y = { z = [ { w = 2 } ] }, "v.u" = '''
lines
''' }
long = \"\"\"
[not.a.table]
key = "not a key"\"\"\"

[table]
when = 2026-01-02

[table.inner]
value = 5

[[rule]]
name = "first"

[[rule]]
name = "second"
match = { kind = "a.b" }

[rule.backoff]
first = 2

[[rule.part]]
n = 1
"""


def read(text: str) -> Item:
    log = MistakeLog()
    item = read_toml(text, "file.toml", log)
    assert item is not None, log.mistakes
    return item


def found(item: Item, *steps: Any) -> str:
    for step in steps:
        item = item.value[step]
    return f"{item.place.line}:{item.place.column}"


def test_values_are_those_of_the_standard_library() -> None:
    plain = read(TEXT).plain()

    assert plain == {**tomllib.loads(TEXT), "table": {"when": "2026-01-02", "inner": {"value": 5}}}


@pytest.mark.parametrize(
    ("steps", "place"),
    [
        (("name",), "2:8"),
        (('quoted "key"',), "3:20"),
        (("a", "b", "c d"), "4:13"),
        (("a", "b"), "4:3"),
        (("texts",), "5:9"),
        (("texts", 1), "7:3"),
        (("texts", 2, 1), "8:7"),
        (("inline", "x"), "10:16"),
        (("inline", "y", "z", 0, "w"), "10:37"),
        (("inline", "v.u"), "10:54"),
        (("table",), "17:1"),
        (("table", "when"), "18:8"),
        (("table", "inner", "value"), "21:9"),
        (("rule", 0), "23:1"),
        (("rule", 0, "name"), "24:8"),
        (("rule", 1, "match", "kind"), "28:18"),
        (("rule", 1, "backoff", "first"), "31:9"),
        (("rule", 1, "part", 0, "n"), "34:5"),
    ],
)
def test_every_value_knows_where_it_stands(steps: tuple[Any, ...], place: str) -> None:
    assert found(read(TEXT), *steps) == place


def test_keys_know_where_they_stand() -> None:
    root = read(TEXT)

    assert (root.key_place("name").line, root.key_place("name").column) == (2, 1)
    assert (root.key_place("rule").line, root.key_place("rule").column) == (23, 3)
    assert root.value["inline"].key_place("y").column == 19


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a = 1\nb = ]", "the file is not TOML: Invalid value", 2),
        ("a = 1\na = 2\n", "the file is not TOML: Cannot overwrite a value", 2),
        ("a = ", "the file is not TOML: Invalid value (at end of document)", 1),
    ],
)
def test_what_is_no_toml_is_one_mistake_at_its_place(text: str, message: str, line: int) -> None:
    log = MistakeLog()

    assert read_toml(text, "file.toml", log) is None

    [mistake] = log.finish({"file.toml": text})
    assert mistake.message == message
    assert mistake.place is not None
    assert mistake.place.line == line


def test_nesting_that_is_too_deep_is_a_mistake_and_no_crash() -> None:
    log = MistakeLog()

    item = read_toml(f"a = {'[' * 50_000}{']' * 50_000}", "file.toml", log)

    assert (item is None) == bool(log.mistakes)


KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=5)
VALUES = st.recursive(
    st.integers(-5, 5) | st.booleans() | st.text("abc\"'\n#[]{}=,\\", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def spelled(value: Any) -> str:
    """A value as inline TOML."""
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
        return "{ " + ", ".join(f"{spelled(key)} = {spelled(inner)}" for key, inner in entries) + " }"
    if isinstance(value, list):
        return "[" + ",\n # ]\n".join(map(spelled, cast("list[Any]", value))) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = "".join(char if char.isalnum() else f"\\U{ord(char):08X}" for char in value)
        return f'"{escaped}"'
    return str(value)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_whatever_is_written_every_value_stands_where_it_begins(document: dict[str, Any]) -> None:
    text = "\n".join(f"{spelled(key)} = {spelled(value)}" for key, value in document.items())
    lines = text.split("\n")

    root = read(text)

    assert root.plain() == document == from_values(document).plain()
    for item in root.walk():
        if item is not root:
            rest = "\n".join([lines[item.line][item.column :], *lines[item.line + 1 :]])
            assert rest.startswith(spelled(item.plain()))
