"""The `failwell` command: arguments in, words and an exit code out.

Data goes to stdout and errors to stderr. A command parses, calls a room and prints; what
it says about a failure comes from `failwell.delivery`.
"""
