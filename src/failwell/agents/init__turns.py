"""Runs an agent's turn: calls models through pydantic-ai, runs the tools that the answers call, and keeps the limits.

pydantic-ai is imported when the first turn runs; the extra `agents` installs it.
"""
