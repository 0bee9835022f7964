"""Words of a message read by concept: a subject, a state and a window, so that rewordings mean the same."""
