-- The kind and the fingerprint of a job's error as columns. They are computed from the stored report, so that rows of
-- earlier versions have them too; a row that another program damaged has none.

ALTER TABLE jobs ADD COLUMN kind TEXT
    GENERATED ALWAYS AS (CASE WHEN json_valid(error) THEN json_extract(error, '$.kind') END) VIRTUAL;
ALTER TABLE jobs ADD COLUMN fingerprint TEXT
    GENERATED ALWAYS AS (CASE WHEN json_valid(error) THEN json_extract(error, '$.fingerprint') END) VIRTUAL;

-- Jobs without an error are in neither index, so a job that succeeds costs nothing here.
CREATE INDEX jobs_by_kind ON jobs (state, kind, instance) WHERE error IS NOT NULL;
CREATE INDEX jobs_by_fingerprint ON jobs (fingerprint) WHERE error IS NOT NULL;
