"""Adapters: a foreign exception becomes one of our kinds, with the evidence for it.

One file per family of exceptions. An adapter recognises a class by its top-level module and
its name along the MRO and never imports the vendor, so the core works with any release of
any SDK, or with none. Imports `failwell.errors` alone; what leaves is a kind and facts.
"""
