"""One SQLite file for everything that is recorded: events of runs, jobs, and what else needs to last.

`journal.sql` has its tables. No `sqlite3` error leaves this package: each is translated into a fault.
"""
