"""SQLite's errors, read by their symbolic code; the message may quote a statement."""

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.errors.foreign_objects import safe_call, str_attr
from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.safe_str import words_of

_BY_CODE = {
    "SQLITE_BUSY": "tool.busy",
    "SQLITE_LOCKED": "tool.busy",
    "SQLITE_FULL": "resource.disk",
    "SQLITE_NOMEM": "resource.system_memory",
    "SQLITE_IOERR": "session.store_unavailable",
    "SQLITE_CANTOPEN": "internal.file_unavailable",
    "SQLITE_PROTOCOL": "session.store_unavailable",
    "SQLITE_READONLY": "validation.path_denied",
    "SQLITE_PERM": "validation.path_denied",
    "SQLITE_AUTH": "validation.path_denied",
    "SQLITE_CORRUPT": "session.store_corrupt",
    "SQLITE_NOTADB": "session.store_corrupt",
    "SQLITE_CONSTRAINT": "validation.input_invalid",
    "SQLITE_MISMATCH": "validation.input_invalid",
    "SQLITE_TOOBIG": "validation.input_invalid",
    "SQLITE_SCHEMA": "tool.busy",
    "SQLITE_INTERRUPT": "cancel.run",
}

# sqlite3_errstr, https://www.sqlite.org/rescode.html: what a saved error still has of its code.
_SENTENCES = {
    "database is locked": "SQLITE_BUSY",
    "database table is locked": "SQLITE_LOCKED",
    "unable to open database file": "SQLITE_CANTOPEN",
    "attempt to write a readonly database": "SQLITE_READONLY",
    "database disk image is malformed": "SQLITE_CORRUPT",
    "file is not a database": "SQLITE_NOTADB",
    "database or disk is full": "SQLITE_FULL",
    "disk I/O error": "SQLITE_IOERR",
    "datatype mismatch": "SQLITE_MISMATCH",
    "string or blob too big": "SQLITE_TOOBIG",
}
_ABSENT = {
    "no such module: ": ("extension.dependency_missing", "sqlite.module"),
    # Somebody has to create it, as with any other database.
    "no such table: ": ("provider.rejected", "sqlite.table"),
}
"""What SQLite says, under a code that means anything, of what is not there: an extension of a virtual table, or a table."""
_NAMED = lazy_regex(
    r"(?P<locked>database table is locked: )|[A-Z ]{2,20}(?P<constraint> constraint failed\b)"
)
"""Sentences that a name follows."""


def _read(error: BaseException) -> Classification:
    code = str_attr(error, "sqlite_errorname") or _code_in(safe_call(words_of, "", error)[:60])
    if code is not None:
        # Extended codes refine a primary one: SQLITE_BUSY_SNAPSHOT is a kind of SQLITE_BUSY.
        primary = "_".join(code.split("_")[:2])
        kind = _BY_CODE.get(primary)
        if kind is not None:
            return Classification.from_rule(
                kind=kind, rule=f"sqlite.{primary}", basis="code", saw=code, details={"sqlite_code": code}
            )
    text = safe_call(words_of, "", error) if code in (None, "SQLITE_ERROR") else ""
    for sentence, (kind, rule) in _ABSENT.items():
        if text.startswith(sentence):
            return Classification.from_rule(kind=kind, rule=rule, saw=sentence.rstrip(": "))
    saw = code or type(error).__name__
    return Classification.from_rule(kind="internal.bug", rule=f"sqlite.{type(error).__name__}", saw=saw)


def _code_in(text: str) -> str | None:
    named = _NAMED.match(text)
    if named is not None:
        return "SQLITE_LOCKED" if named["locked"] else "SQLITE_CONSTRAINT"
    return _SENTENCES.get(text)


TABLES: dict[str, Table] = {"sqlite3": {"Error": _read, "Warning": _read}}
