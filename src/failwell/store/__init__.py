"""The event log of runs, jobs and sessions, with its SQLite home in `failwell.store.sqlite`.

An event is written before it is delivered; states are folded from events. Imports `failwell.calls`,
`failwell.delivery` and below.
"""
