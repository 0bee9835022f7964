-- Jobs of the queue, their events, how many have each state, and the resources that they were measured to need.

CREATE TABLE jobs (
    -- The order of submission. The newest row is never deleted, so no number is reused.
    key       INTEGER PRIMARY KEY,
    id        TEXT NOT NULL UNIQUE,
    instance  TEXT NOT NULL,
    state     TEXT NOT NULL,
    priority  INTEGER NOT NULL,
    submitted REAL NOT NULL,
    started   REAL,
    ended     REAL,
    attempt   INTEGER NOT NULL,
    -- Attempts that count for the retry policy; those that were ended for another job's sake do not.
    charged   INTEGER NOT NULL,
    -- How often the host died while it was running.
    losses    INTEGER NOT NULL,
    due       REAL,
    reason    TEXT,
    cancelled REAL,
    phase     TEXT,
    -- The request and its outcome, as JSON.
    request   TEXT NOT NULL,
    result    TEXT,
    error     TEXT,
    -- The idempotency key.
    once      TEXT
) STRICT;

CREATE UNIQUE INDEX jobs_by_once ON jobs (once) WHERE once IS NOT NULL;

CREATE TABLE job_events (
    seq  INTEGER PRIMARY KEY,
    -- NULL for an event of a worker.
    job  INTEGER,
    type TEXT NOT NULL,
    at   REAL NOT NULL,
    data TEXT NOT NULL
) STRICT;

CREATE INDEX job_events_by_job ON job_events (job, seq);

CREATE TABLE job_counts (
    state TEXT PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO job_counts VALUES
    ('pending', 0), ('running', 0), ('waiting', 0), ('completed', 0), ('failed', 0), ('cancelled', 0);

-- Requests of other processes to the host.
CREATE TABLE job_wishes (
    key  INTEGER PRIMARY KEY AUTOINCREMENT,
    job  TEXT NOT NULL,
    wish TEXT NOT NULL,
    at   REAL NOT NULL
) STRICT;

CREATE TABLE job_profiles (
    instance  TEXT NOT NULL,
    config    TEXT NOT NULL,
    samples   INTEGER NOT NULL,
    successes INTEGER NOT NULL,
    gpu_mb    REAL NOT NULL,
    ram_mb    REAL NOT NULL,
    disk_mb   REAL NOT NULL,
    seconds   REAL NOT NULL,
    updated   REAL NOT NULL,
    PRIMARY KEY (instance, config)
) STRICT, WITHOUT ROWID;
