-- Fewer pages for each commit of a host: the row of a job lists its events, instead of an index, and the latest event has
-- the number of jobs in each state, instead of a table of its own.

-- The numbers of its events, each followed by a comma.
ALTER TABLE jobs ADD COLUMN events TEXT NOT NULL DEFAULT '';

-- How many jobs are pending, running, waiting, completed, failed and cancelled, as a JSON array. The latest event has it.
ALTER TABLE job_events ADD COLUMN counts TEXT;

UPDATE jobs SET events = coalesce((
        SELECT group_concat(seq, ',') || ',' FROM (SELECT seq FROM job_events WHERE job = jobs.key ORDER BY seq)
    ), '');
UPDATE job_events SET counts = (
        SELECT json_array(
            sum(count) FILTER (WHERE state = 'pending'), sum(count) FILTER (WHERE state = 'running'),
            sum(count) FILTER (WHERE state = 'waiting'), sum(count) FILTER (WHERE state = 'completed'),
            sum(count) FILTER (WHERE state = 'failed'), sum(count) FILTER (WHERE state = 'cancelled')
        ) FROM job_counts
    ) WHERE seq = (SELECT max(seq) FROM job_events);

DROP INDEX job_events_by_job;
-- Nothing reads `job_counts` any more. It stays for a host of the version before that is running now, and writes to it.

-- The events of workers belong to no job.
CREATE INDEX job_events_of_workers ON job_events (at) WHERE job IS NULL;
