"""Where work and records live: one implementation per store or engine.

A backend implements the protocols that the rooms below declare and may import its own
library at the top, because importing the backend is the choice. Only `failwell.apps` and
users import it.
"""
