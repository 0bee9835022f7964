"""For users' own tests: builders and doubles that keep the promises of the real thing.

Public, and free to import every room. Shipped code never imports it.
"""
