"""Runs workflows in this process: start, resume, the driver of the machine, and the executor of scripts."""
