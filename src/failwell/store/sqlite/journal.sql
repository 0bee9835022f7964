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

-- Jobs of the queue.

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
    once      TEXT,
    -- The host that runs the job, or ran it last. A job without one waits until a host claims it.
    owner     INTEGER,
    deadline  REAL,
    -- When a job that was submitted for later began to wait for its turn.
    ready     REAL,
    -- The numbers of its events, each followed by a comma: an index would be another page to write in each commit.
    events    TEXT NOT NULL DEFAULT '',
    -- Of its error; a row that another program damaged has none.
    kind      TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(error) THEN json_extract(error, '$.kind') END) VIRTUAL,
    fingerprint TEXT
        GENERATED ALWAYS AS (CASE WHEN json_valid(error) THEN json_extract(error, '$.fingerprint') END) VIRTUAL
) STRICT;

CREATE UNIQUE INDEX jobs_by_once ON jobs (once) WHERE once IS NOT NULL;

-- Jobs without an error are in neither index, so a job that succeeds costs nothing here.
CREATE INDEX jobs_by_kind ON jobs (state, kind, instance) WHERE error IS NOT NULL;
CREATE INDEX jobs_by_fingerprint ON jobs (fingerprint) WHERE error IS NOT NULL;

-- The order in which jobs are claimed: a minute of waiting outweighs one step of priority.
CREATE INDEX jobs_ready ON jobs (instance, coalesce(ready, submitted) - 60.0 * priority)
    WHERE owner IS NULL AND due IS NULL AND state IN ('pending', 'running', 'waiting');

CREATE INDEX jobs_due ON jobs (due)
    WHERE owner IS NULL AND due IS NOT NULL AND state IN ('pending', 'running', 'waiting');

CREATE INDEX jobs_deadline ON jobs (deadline)
    WHERE owner IS NULL AND deadline IS NOT NULL AND state IN ('pending', 'running', 'waiting');

CREATE TABLE job_events (
    seq    INTEGER PRIMARY KEY,
    -- NULL for an event of a worker.
    job    INTEGER,
    type   TEXT NOT NULL,
    at     REAL NOT NULL,
    data   TEXT NOT NULL,
    -- How many jobs are pending, running, waiting, completed, failed and cancelled, as a JSON array. The latest event
    -- has it: a table of counts would be another page to write in each commit.
    counts TEXT
) STRICT;

CREATE INDEX job_events_of_workers ON job_events (at) WHERE job IS NULL;

-- What other processes ask the host of a job to do with it.
CREATE TABLE job_controls (
    key    INTEGER PRIMARY KEY AUTOINCREMENT,
    job    TEXT NOT NULL,
    action TEXT NOT NULL,
    at     REAL NOT NULL
) STRICT;

-- What calls of an instance with one configuration need, as measured.
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

-- The processes that run jobs.
CREATE TABLE job_hosts (
    -- Never used twice, because jobs that ended still name their host.
    key   INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The folder below `jobs/hosts` that the host locks as long as it lives.
    name  TEXT NOT NULL UNIQUE,
    pid   INTEGER NOT NULL,
    since REAL NOT NULL,
    -- How many jobs it runs at a time. What is reserved for a first run is a part of the budget by the lanes of all hosts.
    lanes INTEGER NOT NULL
) STRICT;

-- The most that the running jobs of a host may need, in megabytes.
CREATE TABLE job_reserved (
    host INTEGER NOT NULL,
    pool TEXT NOT NULL,
    mb   REAL NOT NULL,
    -- What its workers hold of it already.
    used REAL NOT NULL,
    PRIMARY KEY (host, pool)
) STRICT, WITHOUT ROWID;

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

-- For each capability with a rate limit: when its next start is due if starts come evenly.

CREATE TABLE job_rates (
    capability TEXT PRIMARY KEY,
    due        REAL NOT NULL
) STRICT, WITHOUT ROWID;

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
-- Claims of effects: what was begun under which key, by which process, and what it returned.

CREATE TABLE effects (
    -- A digest of name, scope and key.
    id        TEXT PRIMARY KEY,
    name      TEXT NOT NULL,
    scope     TEXT NOT NULL,
    key       TEXT NOT NULL,
    status    TEXT NOT NULL CHECK (status IN ('running', 'done', 'unclear')),
    -- Another one each time the claim is taken, so that a process that lost it cannot write to it.
    token     TEXT NOT NULL,
    -- The folder below `effects/processes` that the process locks as long as it lives.
    holder    TEXT NOT NULL,
    pid       INTEGER,
    started   REAL NOT NULL,
    ended     REAL,
    -- Only what is done expires.
    expires   REAL,
    -- Digests of the arguments, as JSON.
    arguments TEXT NOT NULL,
    -- JSON; NULL if the function returned something else.
    result    TEXT,
    -- How it failed.
    kind      TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX effects_by_start ON effects (started DESC);
CREATE INDEX effects_expiring ON effects (expires) WHERE expires IS NOT NULL;

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

-- The identity of this store. A session names the store that it was recorded in.

CREATE TABLE store (id TEXT NOT NULL) STRICT;
INSERT INTO store VALUES (lower(hex(randomblob(16))));
