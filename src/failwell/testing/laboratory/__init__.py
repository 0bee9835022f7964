"""The lab: a local server that fails like each provider fails, on request.

Loopback and the standard library alone. What a scenario means is written down as data beside it, so
a test knows what should have been classified.
"""
