"""The first file a worker's interpreter reads. Written so that even an old Python can say what is wrong."""

import os
import sys

TOO_OLD = 78


def boot() -> None:
    """Load this folder as a package of its own name and hand over to the guardian."""
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.version_info < (3, 11):  # noqa: UP036  (it is what this file is for)
        found = ".".join(str(part) for part in sys.version_info[:2])
        sys.stderr.write("a worker needs Python 3.11 or newer, and " + sys.executable + " is " + found + "\n")
        raise SystemExit(TOO_OLD)
    # The folder of a script comes first on the module path; a capability must not find our files there.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    package = type(sys)("_failwell_worker")
    package.__path__ = [here]
    sys.modules["_failwell_worker"] = package
    from importlib import import_module

    guard = import_module("_failwell_worker.guardian").guard

    line, leash = int(sys.argv[1]), int(sys.argv[2])
    # The capability sees a command line of its own, not ours.
    sys.argv[1:] = []
    guard(line, leash)


if __name__ == "__main__":
    boot()
