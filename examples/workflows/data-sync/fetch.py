"""Fetches one page from a source that gives two pages a day; the quota lies in a file of the state folder."""

import json
import os
import sys
from pathlib import Path

QUOTA = 2

state, page, wait = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
state.mkdir(parents=True, exist_ok=True)
used = state / "quota-used"
spent = int(used.read_text(encoding="utf-8")) if used.exists() else 0
if spent >= QUOTA:
    error = {
        "kind": "external.source.quota_used",
        "message": f"{spent} of {QUOTA} pages of today are used up",
        # Seconds, an HTTP date or an ISO time.
        "details": {"retry_after": wait, "page": page},
    }
    Path(os.environ["FAILWELL_ERROR_OUT"]).write_text(json.dumps(error), encoding="utf-8")
else:
    used.write_text(str(spent + 1), encoding="utf-8")
    (state / f"page-{page}.json").write_text(json.dumps(list(range(page * 10))), encoding="utf-8")
    print(json.dumps({"page": page, "rows": page * 10}))
