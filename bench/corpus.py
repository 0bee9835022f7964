"""The rule table beside other libraries' classification, on a corpus of real provider errors.

    python bench/corpus.py [PYTHON ...]

Each PYTHON is an interpreter with litellm or pydantic-ai in it; without any, this one is asked, and
those that `make test-sdks` made. The
corpus lies beside the checkout (or at $FAILWELL_CORPUS) and is not part of it. Only rows whose label
is not in doubt are scored. Our rules were written with these rows in view and the others' were not, so
our first lines are an upper bound. The two lines below them are the honest ones: each row is judged
without the words, codes and class names that only it, or only its provider, uses.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CORPUS = Path(
    os.environ.get("FAILWELL_CORPUS", "") or ROOT.parent / "shared/corpus/provider-errors.dev.jsonl"
)
LABELS = ("category", "retryable", "model_not_found", "retry_after_s")
OTHERS = ("litellm", "pydantic-ai")


def answers_of(python: str, rows: list[dict[str, Any]], *names: str) -> dict[str, Any]:
    """What the drivers say in one process of that interpreter, failwell always among them."""
    hidden = (*LABELS, "label_confidence", "label_note", "source", "text_origin")
    given = "\n".join(json.dumps({k: v for k, v in row.items() if k not in hidden}) for row in rows)
    done = subprocess.run(
        [python, str(ROOT / "bench/_others.py"), "failwell", *names],
        input=given, capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{python} could not drive {', '.join(names)}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def score(rows: list[dict[str, Any]], verdicts: list[dict[str, Any]], field: str) -> str:
    pairs = [
        (row[field], verdict[field])
        for row, verdict in zip(rows, verdicts, strict=True)
        if field != "retry_after_s" or row[field] is not None
    ]
    right = sum(label == said or _near(label, said) for label, said in pairs)
    return f"{right / len(pairs):7.1%}" if pairs else "      –"


def _near(label: object, said: object) -> bool:
    return isinstance(label, int | float) and isinstance(said, int | float) and abs(label - said) < 0.02


def print_left_out(every: list[dict[str, Any]]) -> None:
    """The two lines that do not profit from having seen the rows."""
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    from bench._leave_out import left_out, macro

    hidden = ("label_confidence", "label_note", "source", "text_origin")
    bare = [{name: value for name, value in row.items() if name not in hidden} for row in every]
    sure = [row["label_confidence"] in ("high", "medium") for row in every]
    rows = [row for row, wanted in zip(every, sure, strict=True) if wanted]
    for label, key in (("leave one row out", "id"), ("leave one provider out", "provider")):
        said = [v for v, wanted in zip(left_out(bare, key), sure, strict=True) if wanted]
        cells = "  ".join(score(rows, said, field) for field in LABELS)
        print(f"  {f'failwell, {label} ({len(rows)})':<42}  {cells}   macro {macro(rows, said):.1%}")


def main() -> None:
    if not CORPUS.is_file():
        print("corpus: not here, so nothing is compared")
        return
    every = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in every if row["label_confidence"] in ("high", "medium")]
    found: dict[str, Any] = {}
    # There is no quick way: it takes seconds.
    given = [one for one in sys.argv[1:] if one != "--quick"]
    for python in given or [sys.executable, *map(str, sorted(ROOT.glob(".sdks/*/bin/python")))]:
        told = answers_of(python, rows, *OTHERS)
        for name in OTHERS:
            if "verdicts" in told[name]:
                found[name] = told[name] | {"ours": told["failwell"]["us"]}
        found.setdefault("failwell", told["failwell"])
    groups = {
        "their words": [row["text_origin"] != "restated" for row in rows],
        "restated": [row["text_origin"] == "restated" for row in rows],
    }
    print(
        f"{'classification, share that is right':<44}{'category':>10}{'retryable':>10}{'model':>9}{'wait':>9}"
    )
    for name in ("failwell", *OTHERS):
        if name not in found:
            print(f"  {name:<42}not installed")
            continue
        for group, chosen in groups.items():
            some = [row for row, wanted in zip(rows, chosen, strict=True) if wanted]
            said = [v for v, wanted in zip(found[name]["verdicts"], chosen, strict=True) if wanted]
            cells = "  ".join(score(some, said, field) for field in LABELS)
            label = f"{name} {found[name]['version']}".strip()
            print(f"  {f'{label}, {group} ({len(some)})':<42}  {cells}")
    print_left_out(every)
    print(f"\n{'time for one classification':<44}{'µs':>8}{'  failwell, same process':>24}")
    for name in ("failwell", *OTHERS):
        if name in found:
            ours = f"{found[name]['ours']:>24.1f}" if "ours" in found[name] else ""
            print(f"  {name:<42}{found[name]['us']:>8.1f}{ours}")


if __name__ == "__main__":
    main()
