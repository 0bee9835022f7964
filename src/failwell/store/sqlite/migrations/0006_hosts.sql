-- Several hosts on one store: which hosts there are, which jobs each of them owns, and what each has reserved.

CREATE TABLE job_hosts (
    -- Never used twice, because jobs that ended still name their host.
    key   INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The folder below `jobs/hosts` that the host locks as long as it lives.
    name  TEXT NOT NULL UNIQUE,
    pid   INTEGER NOT NULL,
    since REAL NOT NULL
) STRICT;

-- The most that the running jobs of a host may need, in megabytes.
CREATE TABLE job_reserved (
    host INTEGER NOT NULL,
    pool TEXT NOT NULL,
    mb   REAL NOT NULL,
    -- What its workers hold of it already.
    used REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (host, pool)
) STRICT, WITHOUT ROWID;

-- The host that runs the job, or ran it last. A job without one waits until a host claims it.
ALTER TABLE jobs ADD COLUMN owner INTEGER;
ALTER TABLE jobs ADD COLUMN deadline REAL;
-- When a job that was submitted for later began to wait for its turn.
ALTER TABLE jobs ADD COLUMN ready REAL;

-- What a host of an earlier version had is taken over when that has ended.
INSERT INTO job_hosts VALUES (1, 'earlier', 0, 0);
UPDATE jobs SET owner = 1 WHERE state IN ('pending', 'running', 'waiting');

UPDATE jobs SET deadline = json_extract(request, '$.deadline')
    WHERE state IN ('pending', 'running', 'waiting') AND json_valid(request)
    AND json_type(request, '$.deadline') IN ('integer', 'real');

-- The order in which jobs are claimed: a minute of waiting outweighs one step of priority.
CREATE INDEX jobs_ready ON jobs (instance, coalesce(ready, submitted) - 60.0 * priority)
    WHERE owner IS NULL AND due IS NULL AND state IN ('pending', 'running', 'waiting');

CREATE INDEX jobs_due ON jobs (due)
    WHERE owner IS NULL AND due IS NOT NULL AND state IN ('pending', 'running', 'waiting');

CREATE INDEX jobs_deadline ON jobs (deadline)
    WHERE owner IS NULL AND deadline IS NOT NULL AND state IN ('pending', 'running', 'waiting');
