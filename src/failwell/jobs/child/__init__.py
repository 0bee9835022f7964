"""The worker's side of the pipe. Standard library alone, and not one import of failwell.

The host starts any Python 3.11 or newer with `boot.py`, which loads this folder as the package
`_failwell_worker`: failwell need not be installed in that environment. Modules here import each
other relatively for that reason.
"""
