"""How each provider says it: one module per dialect, its replies as data.

A dialect answers or declines every scenario. It never decides what a scenario means.
"""
