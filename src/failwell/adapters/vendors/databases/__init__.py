"""Drivers of databases: each reads the code that the server sent, by the table of its protocol.

A statement, its parameters and the server's text are never part of a reading: they hold the caller's data.
"""
