"""Errors that were printed: tracebacks, messages and console output of any language, read into facts."""
