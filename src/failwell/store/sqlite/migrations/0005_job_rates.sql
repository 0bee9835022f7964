-- For each capability with a rate limit: when its next start is due if starts come evenly.

CREATE TABLE job_rates (
    capability TEXT PRIMARY KEY,
    due        REAL NOT NULL
) STRICT, WITHOUT ROWID;
