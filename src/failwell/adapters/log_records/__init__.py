"""Reports of failures that were written down: rows of a log, HTTP replies in a file, pasted tracebacks.

The rules that judge a live exception judge them too. Text is read for that and not recorded.
"""
