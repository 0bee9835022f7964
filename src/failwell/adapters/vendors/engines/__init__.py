"""Engines that run tasks: their own deaths, limits and cancellations, and what they carry of a task's failure."""
