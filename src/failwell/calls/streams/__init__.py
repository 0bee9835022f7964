"""Deadlines of streams: the first chunk, the pause between two chunks, and the whole stream."""
