-- Groups: jobs that were submitted together, how many of them have ended, and the job that follows the last end.

CREATE TABLE job_groups (
    key          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    created      REAL NOT NULL,
    -- How many jobs it has, and how many of them ended in each way. A deleted job stays counted.
    jobs         INTEGER NOT NULL,
    completed    INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    cancelled    INTEGER NOT NULL,
    -- Whether all of its jobs are submitted.
    sealed       INTEGER NOT NULL,
    ended        REAL,
    -- The request of the job that follows, as JSON, and its id.
    callback     TEXT,
    callback_job TEXT
) STRICT;

CREATE INDEX job_groups_open ON job_groups (key) WHERE ended IS NULL;

CREATE TABLE job_group_members (
    -- The key of the job.
    job    INTEGER PRIMARY KEY,
    group_key INTEGER NOT NULL
) STRICT;

CREATE INDEX job_group_members_by_group ON job_group_members (group_key, job);
