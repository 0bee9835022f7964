"""The language of templates and conditions: Jinja's, interpreted here, step by counted step.

Data come in as plain JSON and are never changed. No attribute or method of a Python object can be
reached: a dot reads a key of a mapping, and the few methods there are stand in a table. Every loop,
every call and every text that grows is counted, so a template that runs away is stopped by a typed
error and never by the operating system.
"""
