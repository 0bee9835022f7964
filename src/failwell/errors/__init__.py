"""What can go wrong: the three axes, the kinds, and the exceptions that carry them.

Ground floor. Nothing here imports another room or anything outside the standard
library. A kind is a stable dotted name; its category, blame and status follow from
it in `failwell.errors.kind_registry` and nowhere else.
"""
