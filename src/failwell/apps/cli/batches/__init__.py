"""Commands about many jobs: bulk retry and cancel, totals, files of jobs, groups and schedules."""
