-- Limits that processes share: pauses, breakers, retry buckets and budgets, as JSON. The row without a name counts the changes.

CREATE TABLE limits (
    name    TEXT PRIMARY KEY,
    value   TEXT NOT NULL,
    changed REAL NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO limits VALUES ('', '0', 0);
