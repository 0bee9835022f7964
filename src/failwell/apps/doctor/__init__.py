"""The doctor: looks at the SDKs that are installed here and says which of their errors are known.

An SDK is only ever loaded in a process of its own, so a broken one costs a line and nothing more.
"""
