"""The commands about sessions: `chat` and `sessions`."""
