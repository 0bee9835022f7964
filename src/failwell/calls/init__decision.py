"""Pure choice: a report and what was tried so far go in, a decision comes out as a value.

Nothing here reads a clock, rolls dice or touches a disk: time and jitter are arguments, so
the same policy may run locally, in a replayed workflow and in a rehearsal. Imports
`failwell.errors` and below.
"""
