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
