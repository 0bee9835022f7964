"""Reads and rewrites the source of templates before the engine compiles it."""
