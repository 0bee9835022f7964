"""Queued work in processes of its own: leases, workers, and the memory they hold.

The worker side is standard library alone, so that it can run in any interpreter. Imports
`failwell.journal` and below, and neither `failwell.workflow` nor `failwell.agents`.
"""
