"""The worker's side: the standard library only, and no import of `failwell` before the capability is loaded.

The host starts any Python 3.11 or newer with `boot.py`, which loads the host's package under the name
`_failwell_worker`, so failwell need not be installed in that environment. For that reason, modules here use
relative imports, and import only modules of `failwell.processes` that use the standard library alone.
"""
