"""Giving space back to the disk."""

import sqlite3

_MANY_PAGES = 256
"""A megabyte: less is not worth rewriting the file for."""


def compact(connection: sqlite3.Connection) -> None:
    """Rewrite the file if much of it lies empty. Nobody can write meanwhile."""
    free, pages = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count")
    )
    if free > _MANY_PAGES and free * 4 > pages:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
