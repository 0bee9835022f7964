"""Reads files that people write: values with their places, checked against a shape, every mistake in one pass."""
