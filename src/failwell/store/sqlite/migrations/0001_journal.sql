-- Runs and sessions, their events, and the files they were made from.

CREATE TABLE runs (
    -- Never reused, so that a writer that missed a deletion cannot write into another run.
    key           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    subject       TEXT NOT NULL CHECK (subject IN ('run', 'session')),
    workflow      TEXT NOT NULL,
    file          TEXT NOT NULL,
    digest        TEXT NOT NULL,
    started       REAL NOT NULL,
    -- From here on folded from the events, in the transaction that writes them.
    status        TEXT NOT NULL,
    ended         REAL,
    blocked_until REAL,
    gates         INTEGER NOT NULL DEFAULT 0,
    kind          TEXT,
    message       TEXT,
    node          TEXT,
    -- The process that created it, and what the workflow says about itself.
    pid           INTEGER,
    host          TEXT,
    metadata      TEXT NOT NULL
) STRICT;

CREATE INDEX runs_by_start ON runs (subject, started DESC);
CREATE INDEX runs_by_status ON runs (status);

-- The key of the run and the number of the event in one integer: SQLite keeps the rows of such
-- a table in order, and appending rewrites one page; a key of two columns would move neighbouring rows too.
CREATE TABLE events (
    id   INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    at   REAL NOT NULL,
    data TEXT NOT NULL,
    run  INTEGER GENERATED ALWAYS AS (id >> 32) VIRTUAL,
    seq  INTEGER GENERATED ALWAYS AS (id & 4294967295) VIRTUAL
) STRICT;

CREATE TABLE snapshots (
    run   INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    seq   INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT;

CREATE TABLE sources (
    digest TEXT PRIMARY KEY,
    text   TEXT NOT NULL
) STRICT;

CREATE TABLE run_sources (
    run    INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    path   TEXT NOT NULL,
    digest TEXT NOT NULL REFERENCES sources (digest),
    PRIMARY KEY (run, path)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_sources_by_digest ON run_sources (digest);
