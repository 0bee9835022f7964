"""Delivery: one report in the format of one audience or protocol.

Each output is a function of a report. A library that an output needs is imported when it is used. Imports
`failwell.errors` and below, and not `failwell.calls`, which is on the same level.
"""
