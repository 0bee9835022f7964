-- How many jobs each host runs at a time. What is reserved for a first run is a part of the budget by the lanes of all hosts.

ALTER TABLE job_hosts ADD COLUMN lanes INTEGER NOT NULL DEFAULT 1;
