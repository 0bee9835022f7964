"""Every key that a manifest may have, and what it says: for whoever reads one, and for whoever writes one."""

from collections.abc import Iterable
from typing import NamedTuple


class Key(NamedTuple):
    """One key of a manifest."""

    name: str
    """With the table that it stands in, such as `resources.gpu`; `NAME` is a name of the author's own."""
    form: str
    says: str
    default: str = ""
    is_required: bool = False


KEYS = (
    Key(
        "name",
        "text",
        "what the capability is called: 1 to 64 letters, digits, `_` and `-`",
        is_required=True,
    ),
    Key(
        "object",
        "text",
        "`module:attribute`, where the attribute is a class, a function or an instance",
        is_required=True,
    ),
    Key(
        "python",
        "text",
        "the interpreter: a path, relative to the manifest, or a program that is found on `PATH`; Python 3.11 or newer",
        "the host's own",
    ),
    Key("venv", "text", "a virtual environment, relative to the manifest; instead of `python`"),
    Key(
        "path",
        "list of texts",
        "folders that are added to the module path, relative to the manifest",
        '`["."]`',
    ),
    Key("version", "text", "its version; `capability check` warns where the code names another"),
    Key("description", "text", "what it does, for `capability list`"),
    Key(
        "inherit",
        "list of texts",
        'names or shell patterns of further variables of the host that the worker is given, such as `"HF_*"`',
        "`[]`",
    ),
    Key("concurrency", "whole number from 1", "how many jobs one process takes at a time", "`1`"),
    Key(
        "stall_after",
        "seconds",
        "a starting worker is given up after so long without a sign of progress; however long it starts, if it shows some",
        "`60`",
    ),
    Key(
        "cancel_grace",
        "seconds",
        "how long a job has to stop after it was asked to, before its process is replaced",
        "`3`",
    ),
    Key("stop_grace", "seconds", "how long `cleanup` has before the process is ended", "`5`"),
    Key(
        "config_strict",
        "`true` `false`",
        "whether settings that the schema does not know are refused; else they are left out, with a warning",
        "`true`",
    ),
    Key("config", "table", "the schema of its settings; left out, the code's own is used"),
    Key("defaults", "table", "settings that hold where nobody gave others"),
    Key("env.NAME", "text or table", "a variable that the worker is given; a text is its value"),
    Key("env.NAME.value", "text", "its value; left out, the host's variable of that name"),
    Key(
        "env.NAME.secret",
        "`true` `false`",
        "its value is none of the manifest's: it is kept by `failwell capability secret`, and masked in what is recorded",
        "`false`",
    ),
    Key("env.NAME.required", "`true` `false`", "without a value the worker is not started", "`false`"),
    Key(
        "resources.gpu",
        "`true` `false`",
        "it works on a GPU, so it is admitted by the memory of the GPU too",
        "`false`",
    ),
    Key(
        "resources.accelerators",
        "list of texts",
        "what it can work on; it is refused where none of them is there",
        "any",
    ),
    Key("resources.platforms", "list of texts", "where it can run; it is refused anywhere else", "any"),
)


def keys_below(table: str = "") -> list[str]:
    """The keys that may stand in a table, such as `resources.`; those of the file itself for none."""
    found = [key.name.removeprefix(table) for key in KEYS if key.name.startswith(table)]
    return list(dict.fromkeys(name.partition(".")[0] for name in found))


def not_known(key: str, known: Iterable[str], words: str = "is not known") -> str:
    """What is said of a key that there is not."""
    near = _nearest(key, known)
    return f"{words}; did you mean `{near}`?" if near else words


def not_one_of(given: object, known: Iterable[str]) -> str:
    """What is said of a value that is none of those that there are."""
    names = list(known)
    near = _nearest(given, names) if isinstance(given, str) else None
    meant = f"; did you mean `{near}`?" if near else ""
    return f"must be {', '.join(f'`{name}`' for name in names[:-1])} or `{names[-1]}`, not {given!r}{meant}"


def _nearest(word: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=0.6)), None)
