"""Configurations of capabilities: their JSON Schema, unknown keys, and defaults."""
