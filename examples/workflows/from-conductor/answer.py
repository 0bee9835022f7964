"""Answers in a model's place: the same words for the same question."""

import json
import sys

role, about, *more = sys.argv[1:]
if role == "research":
    answer: dict[str, object] = {"facts": [f"{about} rise", f"{about} fall"]}
elif role == "write":
    draft = int(more[0])
    answer = {"text": f"Draft {draft}: {about}.", "draft": draft}
else:
    draft = int(about)
    answer = {"approved": draft >= int(more[0]), "score": 4 + draft, "draft": draft}
print(json.dumps(answer))
