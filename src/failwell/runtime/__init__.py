"""Acting in this process: what a decision says is carried out, attempt by attempt.

The only room of the core that may wait. Imports `failwell.decision` and below; it tells an
observer what it did and never imports `failwell.delivery`, which shares its floor.
"""
