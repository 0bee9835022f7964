"""Successful replies with content of your own: texts, thinking and tool calls, in each provider's shape."""
