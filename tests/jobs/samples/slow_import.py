# pyright: basic
"""Takes long to import, as large libraries do."""

import os
import time

time.sleep(float(os.environ.get("IMPORT_SECONDS", "0")))


def execute(value=None):
    return value
