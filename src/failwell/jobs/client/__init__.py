"""Submitting jobs and waiting for them from a process that does not run them."""
