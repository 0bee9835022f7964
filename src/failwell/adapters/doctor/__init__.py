"""The doctor: checks which errors of the installed SDKs are known.

An SDK is only ever loaded in a process of its own, so a broken one costs a line and nothing more.
"""
