"""One SQLite file that holds what is recorded: the journal of runs, and what else needs to last.

Its tables are made by the numbered files in `migrations`; whoever needs another table adds a file
there. No error of SQLite's leaves this room: each comes out as a fault.
"""
