"""Acting in this process: retry, fallback chain, budgets, cancellation, batches.

The only room of the core that waits. Imports `failwell.calls` and below, and not `failwell.delivery`,
which is on the same level.
"""
