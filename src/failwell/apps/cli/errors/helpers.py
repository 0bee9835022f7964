"""`failwell helpers`: list, find or copy the files with which scripts raise typed errors."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import NamedTuple

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import bold, say, say_json
from failwell.apps.cli.parser import wrong


class Language(NamedTuple):
    """One language: its file, how a script loads it, and how it raises an error with it."""

    id: str
    file: str
    load: str
    call: str


LANGUAGES: dict[str, Language] = {
    language.id: language
    for language in (
        Language(
            "python",
            "failwell_error.py",
            "from failwell.helpers.failwell_error import raise_kind",
            'raise_kind("external.git.drift", "the branch moved", details={"branch": "main"})',
        ),
        Language(
            "sh",
            "failwell-error.sh",
            '. "$(failwell helpers path sh)"',
            """failwell_error external.git.drift "the branch moved" '{"branch": "main"}'""",
        ),
        Language(
            "node",
            "failwell-error.mjs",
            'import { raiseError } from "./failwell-error.mjs";',
            'raiseError({ kind: "external.git.drift", message: "the branch moved", details: { branch: "main" } });',
        ),
        Language(
            "powershell",
            "Failwell.Error.psm1",
            "Import-Module (failwell helpers path powershell)",
            'Write-FailwellError -Kind external.git.drift -Message "the branch moved" -Details @{ branch = "main" }',
        ),
        Language(
            "csharp",
            "FailwellError.cs",
            "compile FailwellError.cs with your program",
            'FailwellError.Raise("external.git.drift", "the branch moved");',
        ),
    )
}


def add_options(parser: ArgumentParser) -> None:
    """Declare what to do and for which languages."""
    parser.usage = "%(prog)s [list | path [LANGUAGE] | copy LANGUAGE... --to DIR] [options]"
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=["list", "path", "copy"],
        help="list them, say where one lies, or copy some (default: list)",
    )
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE", help=", ".join(LANGUAGES))
    parser.add_argument(
        "--to", metavar="DIR", help="copy: the folder to copy to; it is made if it is missing"
    )
    parser.add_argument("--force", action="store_true", help="copy: replace files that are there already")
    parser.epilog = "try it: failwell helpers copy sh --to scripts"


def run(args: Namespace) -> int:
    """Do what was asked for."""
    chosen = [_language(name) for name in dict.fromkeys(args.languages)]
    if args.action != "copy" and (args.to is not None or args.force):
        raise wrong(f"`helpers {args.action}` takes no --to and no --force", see="failwell helpers --help")
    if args.action == "copy":
        return _copy(chosen, args)
    if args.action == "path":
        return _path(chosen, args)
    return _list(chosen or list(LANGUAGES.values()), args)


def _language(name: str) -> Language:
    found = LANGUAGES.get(name)
    if found is None:
        raise wrong(
            f"no file for the language `{name}`", given=name, valid=LANGUAGES, see="failwell helpers list"
        )
    return found


def _folder() -> Path:
    from importlib.resources import files

    return Path(str(files("failwell.helpers")))


def _list(chosen: list[Language], args: Namespace) -> int:
    folder = _folder()
    if args.format == "json":
        say_json([{**one._asdict(), "path": str(folder / one.file)} for one in chosen])
        return Exit.DONE
    blocks = [
        "\n".join([bold(f"{one.id}  {folder / one.file}", args), f"  {one.load}", f"  {one.call}"])
        for one in chosen
    ]
    say("\n\n".join(blocks))
    return Exit.DONE


def _path(chosen: list[Language], args: Namespace) -> int:
    if len(chosen) > 1:
        raise wrong("`helpers path` takes one language", see="failwell helpers --help")
    place = _folder() / chosen[0].file if chosen else _folder()
    if args.format == "json":
        say_json({"id": chosen[0].id if chosen else None, "path": str(place)})
    else:
        say(str(place))
    return Exit.DONE


def _copy(chosen: list[Language], args: Namespace) -> int:
    if not chosen:
        raise wrong(
            "`helpers copy` needs at least one language", valid=LANGUAGES, see="failwell helpers --help"
        )
    if args.to is None:
        raise wrong("`helpers copy` needs --to DIR", see="failwell helpers --help")
    folder = Path(args.to)
    taken = [str(folder / one.file) for one in chosen if (folder / one.file).exists()]
    if taken and not args.force:
        # All or nothing: half a copy would have to be undone by hand.
        raise wrong(f"{', '.join(taken)} exists already; --force replaces it", see="failwell helpers --help")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in chosen:
            (folder / one.file).write_bytes((_folder() / one.file).read_bytes())
    except OSError as error:
        from failwell.apps.cli.faults import Unwritable, reason

        raise Unwritable.wrap(
            error, f"cannot copy to {folder}: {reason(error)}", caller_facing=True
        ) from error
    copied = [{"id": one.id, "path": str(folder / one.file)} for one in chosen]
    if args.format == "json":
        say_json(copied)
    else:
        say("\n".join(one["path"] for one in copied))
    return Exit.DONE
