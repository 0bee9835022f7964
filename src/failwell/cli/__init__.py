"""The `failwell` command: arguments in, output and an exit code out.

Data goes to stdout and errors to stderr. A command parses, calls a room and prints; what
it prints about a failure comes from `failwell.delivery`.
"""
