"""The queue: who is next, what starts, what follows from a failure, and the record of it."""
