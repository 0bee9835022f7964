"""What the code around a model needs to go on after a failure: valid messages, and limits for repeated tool calls.

It knows the message formats of the providers and calls no model itself.
"""
