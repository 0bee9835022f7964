"""The default luck: the one place that draws a random number. Every caller may bring its own."""

import random  # noqa: TID251  (this is the place)

draw = random.random
