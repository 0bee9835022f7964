"""What happened, in order: append-only events, and the states that are folded from them.

An event is written before it is delivered. Imports `failwell.runtime`, `failwell.delivery`
and below; where events are stored is the business of `failwell.backends`.
"""
