"""Shrinks one image: the item, as JSON, is the only argument."""

import json
import os
import sys
from pathlib import Path


def raise_error(kind: str, message: str) -> None:
    error = {"kind": kind, "message": message}
    Path(os.environ["FAILWELL_ERROR_OUT"]).write_text(json.dumps(error), encoding="utf-8")


image = json.loads(sys.argv[1])
if image.get("corrupt"):
    raise_error("external.image.corrupt", "not an image")
elif int(os.environ["FAILWELL_RETRY_ATTEMPT"]) < image.get("busy", 0):
    raise_error("external.image.busy", "the store is busy")
else:
    print(json.dumps({"thumbnail": f"{image['name']}-{image['width'] // 10}px"}))
