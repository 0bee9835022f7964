"""The local driver: runs a machine's commands in this process and its children, over a journal.

A fact is written before anything is done about it, so that killing this process at any moment
loses nothing that was seen, and whatever it started dies with it.
"""
