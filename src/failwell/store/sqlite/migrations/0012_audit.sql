-- The audit: what was about to be done, what became of it, and what people answered. It only grows.

CREATE TABLE audit (
    -- Without gaps, from 1, over the whole store. AUTOINCREMENT remembers the last number beside the table.
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    at       REAL NOT NULL,
    type     TEXT NOT NULL,
    -- The run or session that it belongs to.
    run      TEXT,
    -- JSON, redacted.
    data     TEXT NOT NULL,
    -- The hash of the record before this one.
    previous TEXT NOT NULL,
    -- SHA-256 over all of the above.
    hash     TEXT NOT NULL
) STRICT;

CREATE INDEX audit_by_run ON audit (run, seq);

CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;

CREATE TRIGGER audit_is_never_deleted BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
