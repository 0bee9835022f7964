"""Memory of the machine and of workers: what is free, what jobs need, which worker is evicted."""
