-- Schedules: jobs that are submitted again and again, at the times of a cron expression.

CREATE TABLE job_schedules (
    id       TEXT PRIMARY KEY,
    -- `manifest` if a manifest has it, which may also remove it; else `client`.
    source   TEXT NOT NULL,
    -- What is submitted and when, as JSON.
    spec     TEXT NOT NULL,
    paused   INTEGER NOT NULL,
    -- Every time up to this one has been handled: a job was submitted for it, or it was skipped.
    handled  REAL NOT NULL,
    last_at  REAL,
    last_job TEXT
) STRICT, WITHOUT ROWID;
