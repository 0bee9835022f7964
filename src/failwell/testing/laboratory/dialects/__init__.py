"""How each provider answers, fails and refuses: one file per API.

Written from what the providers document and answer, and independent of the code that repairs messages.
"""
