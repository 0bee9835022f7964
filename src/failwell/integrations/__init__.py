"""Bridges to other people's retry engines: the engine calls and waits, failwell says what may be repeated.

Standard library alone at import; the engine itself is loaded when a bridge needs it.
"""
