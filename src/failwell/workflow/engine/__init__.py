"""The engine of templates and conditions: minijinja, held to what a workflow needs of it.

Data go in as read-only views. The source is looked at before the engine sees it, because some texts
would end the process: chains that overflow its stack, and values that double until memory is gone.
"""
