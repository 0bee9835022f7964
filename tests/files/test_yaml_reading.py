"""YAML as it is read: places, duplicate keys, aliases, and everything that is refused."""

import time
from pathlib import Path

import pytest

from failwell.files.item_tree import Place
from failwell.files.yaml_reader import MAX_DEPTH
from tests.files.reading import read, read_file, the_wrong, wrong


def test_every_key_and_value_knows_its_place() -> None:
    root = read("a: 1\nlist:\n  - x\n  - {b: 'y'}\n")

    entry = root.value["list"].value[1]

    assert root.value["a"].place == Place(file="x.yaml", line=1, column=4)
    assert root.key_place("list") == Place(file="x.yaml", line=2, column=1)
    assert entry.key_place("b") == Place(file="x.yaml", line=4, column=6)
    assert entry.value["b"].place == Place(file="x.yaml", line=4, column=9)


def test_a_column_counts_characters_and_not_bytes() -> None:
    root = read("{größe: 'ö', x: 1}")

    assert root.value["x"].place == Place(file="x.yaml", line=1, column=17)


@pytest.mark.acceptance("relavium 70")
def test_a_duplicate_key_names_both_places() -> None:
    mistake = the_wrong("agents:\n  - name: a\n    type: set\n    name: b\n")

    assert "`name` is written twice" in mistake.message
    assert mistake.place == Place(file="x.yaml", line=4, column=5)
    assert mistake.also == (Place(file="x.yaml", line=2, column=5),)
    assert mistake.path == "agents[0].name"
    assert mistake.line == "    name: b"


def test_keys_that_differ_only_in_quotes_are_duplicates() -> None:
    assert "written twice" in the_wrong("a: 1\n'a': 2\n").message


def test_an_alias_stands_for_what_its_anchor_holds() -> None:
    root = read("one: &x {a: 1}\ntwo: *x\nthree: [*x]\n")

    assert root.plain() == {"one": {"a": 1}, "two": {"a": 1}, "three": [{"a": 1}]}


def test_a_merge_key_adds_the_keys_that_are_not_written_beside_it() -> None:
    root = read(
        "one: &x {a: 1, b: 1}\ntwo:\n  b: 2\n  <<: *x\n  c: 3\nthree: {<<: [{a: 5}, *x]}\n'four': {'<<': 4}\n"
    )

    assert root.plain() == {
        "one": {"a": 1, "b": 1},
        "two": {"a": 1, "b": 2, "c": 3},
        "three": {"a": 5, "b": 1},
        "four": {"<<": 4},
    }
    assert root.value["two"].key_place("a") == Place(file="x.yaml", line=1, column=10)


def test_a_merge_key_reaches_through_other_merge_keys() -> None:
    root = read("a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b, z: 3}\n")

    assert root.value["c"].plain() == {"x": 1, "y": 2, "z": 3}


@pytest.mark.parametrize("value", ["5", "text", "[1]", "[[{a: 1}]]"])
def test_a_merge_key_takes_nothing_but_mappings(value: str) -> None:
    mistake = the_wrong(f"a:\n  <<: {value}\n")

    assert "takes a mapping" in mistake.message
    assert "<<: *defaults" in mistake.hint


def test_a_mapping_does_not_merge_itself() -> None:
    assert "contains itself" in the_wrong("a: &x\n  <<: *x\n").message


def test_merge_keys_count_towards_the_size_of_a_file() -> None:
    lines = ["a0: &a0 {" + ", ".join(f"k{n}: 1" for n in range(1000)) + "}"]
    lines += [f"b{n}: [" + ", ".join(["{<<: *a0}"] * 100) + "]" for n in range(20)]

    assert "expands to more than 1,000,000 values" in the_wrong("\n".join(lines)).message


@pytest.mark.parametrize("width", [2, 10])
def test_an_alias_bomb_is_refused_at_once(width: int) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, 60)]
    began = time.process_time()

    mistake = the_wrong("\n".join(lines))

    assert "expands to more than 1,000,000 values" in mistake.message
    assert time.process_time() - began < 3


def test_an_anchor_that_holds_itself_is_refused() -> None:
    assert "contains itself" in the_wrong("a: &x\n  b: [1, *x]\n").message


def test_an_alias_without_an_anchor_is_refused() -> None:
    assert "no anchor `&nowhere`" in the_wrong("a: *nowhere\n").message


@pytest.mark.parametrize(
    ("text", "tag"),
    [("a: !!str 5", "!!str"), ("a: !mine x", "!mine"), ("a: !!python/object:os.system {}", "!!python/object"),
     ("a: !!binary aGk=", "!!binary"), ("a: !!set {x}", "!!set"), ("!!str a: 1", "!!str"), ("a: !file [x]", "!file")],
)  # fmt: skip
def test_a_tag_is_refused(text: str, tag: str) -> None:
    assert tag in the_wrong(text).message


def test_the_second_document_is_refused() -> None:
    mistake = the_wrong("a: 1\n---\nb: 2\n")

    assert "more than one document" in mistake.message
    assert mistake.place == Place(file="x.yaml", line=2, column=1)


def test_a_document_may_have_its_markers() -> None:
    assert read("%YAML 1.1\n---\na: 1\n...\n").plain() == {"a": 1}


@pytest.mark.parametrize("text", ["[1, 2]: x", "{a: 1}: x", "? [x]\n: y", "&k a: 1\n*k : 2"])
def test_a_key_is_a_plain_text(text: str) -> None:
    assert "a key must be a plain text" in the_wrong(text).message


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "[{b: "])
def test_nesting_without_end_is_refused_at_once(opening: str, pure: bool) -> None:
    began = time.process_time()

    mistake = the_wrong(opening * 200_000, pure=pure)

    assert f"deeper than {MAX_DEPTH} levels" in mistake.message
    assert time.process_time() - began < 5


@pytest.mark.parametrize("pure", [False, True])
def test_a_tab_as_indentation_is_named(pure: bool) -> None:
    mistake = the_wrong("a:\n\tb: 1\n", pure=pure)

    assert "indent with spaces" in mistake.hint
    assert mistake.place is not None
    assert mistake.place.line == 2


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(
    "text", ["a: [1, 2", "a: 'x", "a: b: c", "a: @x", "- a\nb: 1", 'a: "\\q"', "a: \x01"]
)
def test_a_syntax_error_has_a_place_and_a_hint(text: str, pure: bool) -> None:
    mistake = the_wrong(text, pure=pure)

    assert mistake.message.startswith("the file is not YAML: ")
    assert mistake.place is not None
    assert mistake.hint


@pytest.mark.parametrize("text", [".inf", "a: .nan", "a: [1e999]", "a: " + "9" * 5000])
def test_a_number_that_json_cannot_carry_has_a_place(text: str) -> None:
    mistake = the_wrong(text)

    assert mistake.place is not None
    assert "in quotes" in mistake.hint


def test_a_nul_character_is_refused() -> None:
    assert "NUL" in the_wrong('a: "x\\0y"').message


def test_a_lone_surrogate_is_refused() -> None:
    assert "surrogate" in the_wrong("a: \ud800").message


def test_mistakes_beyond_two_hundred_are_counted() -> None:
    found = wrong("\n".join(f"k{n}: !x {n}" for n in range(1000)))

    assert len(found) == 201
    assert found[-1].message.startswith("800 further mistakes")


def test_lines_are_counted_as_yaml_counts_them() -> None:
    mistake = the_wrong("a: 1\r\nb: 2\rc: 3\nc: 4\n")

    assert mistake.place == Place(file="x.yaml", line=4, column=1)
    assert mistake.line == "c: 4"


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\n")

    root, mistakes, _ = read_file(file)

    assert root is not None
    assert (root.plain(), mistakes) == ({"a": 1}, [])


@pytest.mark.parametrize(
    ("content", "offset"),
    [
        (b"a: \xff", 3),
        (b"\xef\xbb\xbfa: \xe9", 6),
        ("a: ö".encode("latin-1"), 3),
        ("a: 1".encode("utf-16"), 0),
    ],
)
def test_bytes_that_are_not_utf_8_are_refused_with_their_offset(
    tmp_path: Path, content: bytes, offset: int
) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(content)

    root, mistakes, _ = read_file(file)

    assert root is None
    assert mistakes[0].message.endswith(f"invalid byte at offset {offset}")


def test_a_huge_file_is_refused_without_being_read(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    with file.open("wb") as stream:
        stream.truncate(100 * 1024 * 1024)
    began = time.process_time()

    root, mistakes, files = read_file(file)

    assert (root, files) == (None, {})
    assert "104,857,600 bytes" in mistakes[0].message
    assert "split it" in mistakes[0].hint
    assert time.process_time() - began < 0.5


def test_a_file_of_two_mebibytes_is_read(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("a: " + "x" * (2 * 1024 * 1024 - 3), encoding="utf-8")

    root, mistakes, _ = read_file(file)

    assert mistakes == []
    assert root is not None


def test_a_secret_that_stands_beside_a_mistake_is_not_shown() -> None:
    mistake = the_wrong("{api_key: sk-abcdefghijklmnopqrstuvwxyz123456, b: !x 1}")

    assert "abcdefghijklmnop" not in mistake.line


def test_a_tower_of_anchors_is_refused() -> None:
    storeys = ["s0: &s0 " + "[" * 90 + "]" * 90]
    storeys += [f"s{n}: &s{n} " + "[" * 90 + f"*s{n - 1}" + "]" * 90 for n in range(1, 50)]

    mistake = the_wrong("\n".join(storeys))

    assert f"deeper than {MAX_DEPTH} levels" in mistake.message


@pytest.mark.parametrize("text", ["a: {{ x }}", "a:\n  - {{ x.y }}\n", "when: {{ x }} == 1"])
def test_a_template_without_quotes_is_told_to_have_them(text: str) -> None:
    mistake = the_wrong(text)

    assert mistake.message == "a template must be in quotes"
    assert '"{{ … }}"' in mistake.hint


@pytest.mark.parametrize("text", ["{a: ${X}}", "a: x {{ y }}: z"])
def test_a_syntax_error_beside_a_variable_or_a_template_speaks_of_quotes(text: str) -> None:
    assert "in quotes" in the_wrong(text, X="1").hint
