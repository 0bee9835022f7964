"""Starts, supervises and ends process trees, for scripts and workers alike."""
