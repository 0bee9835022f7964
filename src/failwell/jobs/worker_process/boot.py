"""The first file that a worker's interpreter runs. Its syntax is old enough for any Python to report its version."""

import os
import sys

TOO_OLD = 78


def boot() -> None:
    """Load the host's `failwell` under the name `_failwell_worker`, and start the guardian."""
    folder = os.path.dirname(os.path.abspath(__file__))
    if sys.version_info < (3, 11):  # noqa: UP036  (it is what this file is for)
        version = ".".join(str(part) for part in sys.version_info[:2])
        sys.stderr.write(
            "a worker needs Python 3.11 or newer, and " + sys.executable + " is " + version + "\n"
        )
        raise SystemExit(TOO_OLD)
    # Python puts the folder of a script on the module path; a capability must not import our files from it.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    # A `failwell` that is installed beside the capability may have another version, so ours has another name.
    root = os.path.dirname(os.path.dirname(folder))
    for name in ("", ".jobs", ".jobs.worker_process", ".processes"):
        # Packages without their `__init__`, which may import what only the host has.
        package = type(sys)("_failwell_worker" + name)
        package.__path__ = [root + name.replace(".", os.sep)]
        sys.modules["_failwell_worker" + name] = package
    from importlib import import_module

    guard_worker = import_module("_failwell_worker.processes.guardian").guard_worker

    line, leash = int(sys.argv[1]), int(sys.argv[2])
    # The capability must not see the arguments of the guardian.
    sys.argv[1:] = []
    guard_worker(line, leash, _work)


def _work(line: int) -> int:
    from importlib import import_module

    return import_module("_failwell_worker.jobs.worker_process.main").work(line)


if __name__ == "__main__":
    boot()
