"""The fault laboratory: a local server that fails the way each provider fails, on request.

Loopback and the standard library alone. What a scenario means is written down as data beside it, so
whoever tests against it knows what should have been understood.
"""
