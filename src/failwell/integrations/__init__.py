"""Adapters for other libraries: retry engines, queues, web frameworks, loggers and tool protocols.

Each module serves one library. Loading it needs the standard library alone; the library itself is imported
when a function needs it.
"""
