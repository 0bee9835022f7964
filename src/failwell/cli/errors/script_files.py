"""`failwell helpers`: list and copy the files that raise typed errors from scripts."""

from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

from failwell.cli.output import bold, print_data
from failwell.cli.parser import Parser, usage_error


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
            "from failwell.workflows.script_helpers.failwell_error import raise_kind",
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


def add_list_options(parser: Parser) -> None:
    """Declare the filter."""
    parser.add_argument("languages", nargs="*", default=[], metavar="LANGUAGE", help=", ".join(LANGUAGES))


def add_path_options(parser: Parser) -> None:
    """Declare which file."""
    parser.add_argument(
        "language", nargs="?", metavar="LANGUAGE", help=f"{', '.join(LANGUAGES)} (default: the folder)"
    )


def add_copy_options(parser: Parser) -> None:
    """Declare which files, and where they go."""
    parser.add_argument("languages", nargs="+", metavar="LANGUAGE", help=", ".join(LANGUAGES))
    parser.add_argument(
        "--to", metavar="DIR", required=True, help="the folder to copy to; it is created if it is missing"
    )
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.epilog = "example: failwell helpers copy sh --to scripts"


def _language(name: str) -> Language:
    language = LANGUAGES.get(name)
    if language is None:
        raise usage_error(
            f"no file for the language `{name}`", value=name, valid=LANGUAGES, see="failwell helpers list"
        )
    return language


def _languages(names: list[str]) -> list[Language]:
    return [_language(name) for name in dict.fromkeys(names)]


def _folder() -> Path:
    from importlib.resources import files

    return Path(str(files("failwell.workflows.script_helpers")))


def run_list(args: Namespace) -> int:
    """List the files, each with how a script uses it."""
    folder = _folder()
    languages = _languages(args.languages) or list(LANGUAGES.values())
    objects = [{**language._asdict(), "path": str(folder / language.file)} for language in languages]
    lines: list[str] = []
    for language in languages:
        head = bold(f"{language.id}  {folder / language.file}", args)
        lines += ["", head, f"  {language.load}", f"  {language.call}"]
    return print_data(args, objects, lines[1:])


def run_path(args: Namespace) -> int:
    """Print the path of a file, or of the folder."""
    language = None if args.language is None else _language(args.language)
    path = _folder() / language.file if language is not None else _folder()
    return print_data(args, {"id": None if language is None else language.id, "path": str(path)}, str(path))


def run_copy(args: Namespace) -> int:
    """Copy files into a folder, all or none."""
    languages = _languages(args.languages)
    folder = Path(args.to)
    existing = [str(folder / language.file) for language in languages if (folder / language.file).exists()]
    if existing and not args.force:
        # All or nothing: half a copy would have to be undone by hand.
        raise usage_error(
            f"{', '.join(existing)} exists already; --force replaces it", see="failwell helpers copy --help"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for language in languages:
            (folder / language.file).write_bytes((_folder() / language.file).read_bytes())
    except OSError as error:
        from failwell.cli.faults import Unwritable, reason

        raise Unwritable.wrap(
            error, f"cannot copy to {folder}: {reason(error)}", caller_facing=True
        ) from error
    copied = [{"id": language.id, "path": str(folder / language.file)} for language in languages]
    return print_data(args, copied, "\n".join(copy["path"] for copy in copied))
