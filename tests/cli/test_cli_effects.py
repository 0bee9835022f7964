"""`failwell effects`: an operator sees which effects are unclear, and settles them."""

import json
from pathlib import Path

import pytest

import failwell
from failwell.cli.main import main
from failwell.store import EffectUnclear, SqliteClaims

LOST = TimeoutError("the read operation timed out")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state folder with one effect that happened and one of which nobody knows."""
    store = SqliteClaims(tmp_path)
    pay(store, lost=False)("o1")
    with pytest.raises(TimeoutError):
        pay(store, lost=True)("o2")
    store.close()
    return tmp_path


def pay(store: SqliteClaims, *, lost: bool):
    @failwell.effect(key="order", name="pay", store=store)
    def paid(order: str) -> dict[str, str]:
        if lost:
            raise LOST
        return {"paid": order}

    return paid


def effects(folder: Path, *arguments: str) -> list[str]:
    return ["effects", *arguments, "--store", str(folder)]


def unclear(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(effects(folder, "list", "--status", "unclear", "--format", "json")) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert (row["tool"], row["key"], row["status"], row["kind"]) == (
        "pay",
        "o2",
        "unclear",
        "provider.outcome_unknown",
    )
    return row["id"]


def test_effects_are_listed_and_shown_in_every_format(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    effect = unclear(folder, capsys)

    for style in ("text", "markdown"):
        assert main([*effects(folder, "list"), "--format", style]) == 0
        listing = capsys.readouterr().out
        assert "done" in listing
        assert effect in listing
        assert main([*effects(folder, "show", effect[:10]), "--format", style]) == 0
        assert f"failwell effects release {effect}" in capsys.readouterr().out
    assert main(effects(folder, "show", "last", "--format", "json")) == 0
    assert json.loads(capsys.readouterr().out)["id"] == effect


def test_an_effect_that_did_not_happen_is_released_and_runs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = SqliteClaims(folder)
    with pytest.raises(EffectUnclear):
        pay(store, lost=False)("o2")

    assert main(effects(folder, "release", unclear(folder, capsys))) == 0

    assert pay(store, lost=False)("o2") == {"paid": "o2"}
    store.close()


def test_an_effect_that_happened_is_settled_with_its_result(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    effect = unclear(folder, capsys)

    assert main(effects(folder, "settle", effect, "--result", '{"paid": "by hand"}')) == 0

    store = SqliteClaims(folder)
    assert pay(store, lost=False)("o2") == {"paid": "by hand"}
    store.close()
    assert main(effects(folder, "settle", effect)) == 2


def test_what_would_let_an_effect_happen_twice_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = SqliteClaims(folder)
    [done] = store.claims(["done"])

    assert main(effects(folder, "release", done.id)) == 2
    assert "lets it happen again" in capsys.readouterr().err

    @failwell.effect(key="order", name="pay", store=store)
    def under_way(order: str) -> int:
        [claim] = store.claims(["running"])
        return int(main(effects(folder, "release", claim.id)))

    assert under_way("o3") == 2
    assert "is running in process" in capsys.readouterr().err
    store.close()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("show", "fxnothing"), "no effect `fxnothing` is recorded here"),
        (("settle", "last", "--result", "{"), "`--result` is not JSON"),
    ],
)
def test_mistakes_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], text: str
) -> None:
    assert main(effects(folder, *arguments)) == 2
    assert text in capsys.readouterr().err


def test_a_folder_without_a_journal_has_no_effects_and_gets_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(effects(tmp_path, "list", "--format", "json")) == 0

    assert json.loads(capsys.readouterr().out) == []
    assert list(tmp_path.iterdir()) == []
