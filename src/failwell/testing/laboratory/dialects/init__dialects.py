"""The replies of each provider: one module per dialect, as data.

A dialect answers or declines every scenario. It never decides what a scenario means.
"""
