"""`python -m failwell`: the same as the `failwell` command."""

import sys

from failwell.cli.main import entry

if __name__ == "__main__":
    sys.exit(entry())
