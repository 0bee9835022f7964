"""Saying it: one report put into the words and the format of one audience or border.

One file per way out, each a function of a report. Libraries that a way out needs are
imported when it is used, not when it is loaded. Imports `failwell.report` and below, and
knows nothing of `failwell.runtime`, which shares its floor.
"""
