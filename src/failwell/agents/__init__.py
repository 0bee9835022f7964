"""Turns of a model: calls through a chain, tools under a policy, sessions that resume.

Imports `failwell.journal` and below, and neither `failwell.workflow` nor `failwell.jobs`,
which share its floor.
"""
