"""The worker's side of the pipe: the standard library, and no import of `failwell` before a capability is loaded.

The host starts any Python 3.11 or newer with `boot.py`, which loads the host's package under the name
`_failwell_worker`: failwell need not be installed in that environment. Modules here import each
other relatively for that reason, and from `failwell.processes` only what says it is standard library alone.
"""
