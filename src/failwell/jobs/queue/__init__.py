"""The queue: the order of jobs, what starts, what follows from a failure, and the record of it."""
