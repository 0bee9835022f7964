"""The host's side of a worker process: starts it, calls it, watches it and stops it."""
