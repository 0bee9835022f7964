"""Frameworks that run agents: their own limits, guards and protocol errors, and what they carry of a provider's."""
