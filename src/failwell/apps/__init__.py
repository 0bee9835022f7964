"""Programs that choose implementations and connect the rooms.

May import every room. No room imports it, and neither does the package root, so a library
user never pays for a command line.
"""
