"""The record: one failure as a frozen, bounded, secret-free value that can leave its process.

Imports `failwell.adapters` and `failwell.errors`, never anything that prints, waits or
decides. What leaves is an `ErrorReport`, its JSON and its views; no exception, traceback
or response object is ever kept inside one. The path that builds a report never raises.
"""
