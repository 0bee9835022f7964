"""`failwell helpers` finds and copies the files with which scripts raise typed errors."""

from pathlib import Path

from failwell.cli.errors.script_files import LANGUAGES
from failwell.cli.exit_codes import Exit
from tests.cli.running import failwell


def test_every_shipped_file_is_listed_with_an_id_and_lies_where_it_says() -> None:
    listed = failwell("helpers", "--json").data

    assert [one["id"] for one in listed] == ["python", "sh", "node", "powershell", "csharp"]
    folder = Path(listed[0]["path"]).parent
    shipped = {path.name for path in folder.iterdir() if path.is_file() and path.name != "__init__.py"}
    assert {one["file"] for one in listed} == shipped
    assert all(Path(one["path"]).is_file() for one in listed)


def test_the_list_shows_how_each_is_loaded_and_called() -> None:
    shown = failwell("helpers", "list").out

    for language in LANGUAGES.values():
        assert language.load in shown
        assert language.call in shown


def test_only_the_named_languages_are_listed() -> None:
    assert [one["id"] for one in failwell("helpers", "list", "node", "sh", "--json").data] == ["node", "sh"]


def test_the_path_of_one_is_all_that_is_printed() -> None:
    done = failwell("helpers", "path", "sh")

    assert Path(done.out.removesuffix("\n")).name == "failwell-error.sh"
    assert Path(done.out.removesuffix("\n")).is_file()


def test_without_a_language_the_folder_is_printed() -> None:
    assert Path(failwell("helpers", "path").out.strip()).is_dir()


def test_some_are_copied_into_a_folder_that_is_made(tmp_path: Path) -> None:
    done = failwell("helpers", "copy", "sh", "node", "--to", str(tmp_path / "a/b"), "--json")

    assert [one["id"] for one in done.data] == ["sh", "node"]
    for one in done.data:
        shipped = failwell("helpers", "path", one["id"]).out.strip()
        assert Path(one["path"]).read_bytes() == Path(shipped).read_bytes()


def test_nothing_is_copied_over_a_file_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "failwell-error.mjs").write_text("mine")

    refused = failwell("helpers", "copy", "sh", "node", "--to", str(tmp_path))
    untouched = sorted(path.name for path in tmp_path.iterdir())
    forced = failwell("helpers", "copy", "sh", "node", "--to", str(tmp_path), "--force")

    assert refused.code == Exit.INVALID_USAGE
    assert "failwell-error.mjs exists already; --force replaces it" in refused.err
    assert untouched == ["failwell-error.mjs"]
    assert forced.code == Exit.DONE
    assert "raiseError" in (tmp_path / "failwell-error.mjs").read_text()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = failwell("helpers", "copy", "sh", "--to", str(tmp_path / "file"))

    assert done.code != Exit.DONE
    assert f"cannot copy to {tmp_path}/file" in done.err
