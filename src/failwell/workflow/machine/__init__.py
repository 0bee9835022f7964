"""The machine that walks a plan: `advance(state, event)` gives the next state, facts and commands.

Nothing here reads a clock, rolls a die or touches a disk: times, jitter and results come in with
events, and what is to be done in the world goes out as commands. The same machine is driven by
the local driver, by others, and by no driver at all.
"""
