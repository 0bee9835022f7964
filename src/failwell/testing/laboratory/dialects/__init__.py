"""Which conversations a provider refuses, and with what words: one file per API.

Written from what the providers document and answer, and independent of the code that repairs messages.
"""
