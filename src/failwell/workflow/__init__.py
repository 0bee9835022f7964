"""Workflow files: read, checked as a whole, and advanced by a pure machine.

Imports `failwell.journal` and below. `failwell.jobs` and `failwell.agents` share its floor
and are never imported: the machine asks for a node to be run, and a driver runs it.
"""
