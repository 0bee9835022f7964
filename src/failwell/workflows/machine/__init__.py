"""The machine that walks a plan: `advance(state, event)` gives the next state, facts and commands.

The machine is pure. It reads no clock, no random numbers and no files: times, jitter and results arrive
in events, and everything to be done outside leaves as a command. `workflow.run.driver` drives it.
"""
