"""Every workflow among the examples is valid and does what it says, run with the command as it is shipped."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, environment, failwell
from tools.docs import demo

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "workflows"
FOLDERS = sorted(path.parent.name for path in EXAMPLES.glob("*/workflow.yaml"))
WARNED = {
    # The flagship shows what a failure looks like that nobody thought of.
    "release": ["`sign` raises `external.signing.key_missing`, and no route handles it"],
}


class Project:
    """A folder with a store, and the commands as somebody types them there."""

    id = "r"
    """The run that `run` starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store"

    def type(self, *arguments: str) -> Done:
        return failwell(*arguments, env={"FAILWELL_STORE": str(self.store)})

    def run(self, name: str, *arguments: str) -> Done:
        return self.type("run", str(EXAMPLES / name / "workflow.yaml"), "--run-id", "r", *arguments)

    def events(self, run: str = "r") -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.type("runs", "export", run).out.splitlines()]

    def started(self, run: str = "r") -> list[str]:
        return [one["data"]["path"] for one in self.events(run) if one["type"] == "node:started"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_there_are_ten_examples_or_more_and_each_is_tried_here() -> None:
    tried = set(re.findall(r'run\(\s*"([a-z-]+)"', Path(__file__).read_text(encoding="utf-8")))

    assert len(FOLDERS) >= 10
    assert tried >= set(FOLDERS)


def test_every_example_is_in_the_list_of_examples() -> None:
    listed = re.findall(
        r"^\| \[([a-z-]+)\]\(\1/workflow.yaml\) \|", (EXAMPLES / "README.md").read_text(), re.MULTILINE
    )

    assert sorted(listed) == FOLDERS


@pytest.mark.parametrize("name", FOLDERS)
def test_an_example_is_valid_and_warns_of_nothing_unforeseen(name: str) -> None:
    done = failwell("validate", "--json", str(EXAMPLES / name / "workflow.yaml"))

    assert done.code == 0
    assert [one["message"] for one in done.data[0]["warnings"]] == WARNED.get(name, [])


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}")
def test_an_example_says_first_what_it_is_for(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("# ")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("orders.csv", {"status": "loaded", "total": 100.0, "source": "orders.csv"}),
        ("no-such.csv", {"status": "loaded", "total": 100.0, "source": "orders.csv"}),
        ("broken.csv", {"status": "quarantined", "line": 3, "reason": "line 3 has no amount"}),
    ],
)
def test_errors_are_routed_by_kind_and_by_category(
    project: Project, file: str, expected: dict[str, Any]
) -> None:
    done = project.run("error-routing", "-i", f"file={file}")

    assert done.code == 0, done.err
    assert done.data == expected
    assert ("fallback" in project.started()) is (file == "no-such.csv")


def test_a_transient_failure_is_retried_until_it_passes(project: Project) -> None:
    done = project.run("retry-then-escalate")

    assert done.data == {"price": 42.0, "from": "service"}
    assert "attempt 2); again in 100 ms" in done.err
    assert project.started() == ["fetch"] * 3


def test_after_the_last_retry_a_person_decides(project: Project) -> None:
    waiting = project.run("retry-then-escalate", "-i", "failures=9")
    answered = project.type("gates", "answer", "last", "ask", "cached")
    done = project.type("resume", "last")

    assert waiting.code == 4
    assert "the quote service is busy after 4 attempts" in waiting.err
    assert answered.code == 0, answered.err
    assert done.data == {"price": 41.5, "from": "yesterday"}
    assert project.started().count("fetch") == 4


def test_giving_up_after_the_retries_is_a_failure_on_purpose(project: Project) -> None:
    project.run("retry-then-escalate", "-i", "failures=9")
    project.type("gates", "answer", "last", "ask", "give_up")

    done = project.type("resume", "last")

    assert done.code == 1
    assert "no quote today" in done.err


def test_a_person_puts_a_wrong_value_right_and_the_step_runs_again(project: Project) -> None:
    waiting = project.run("human-gate-on-error", "--no-input")
    open_gates = project.type("gates", "list", "--json").data
    project.type(
        "gates", "answer", "last", "mend", "corrected", "--payload", '{"iban": "DE02120300000000202051"}'
    )
    done = project.type("resume", "last")

    assert waiting.code == 4
    assert [(one["id"], one["assignee"], one["values"]) for one in open_gates] == [
        ("mend", "accounting", ["corrected", "reject"])
    ]
    assert done.data == {"iban": "DE02120300000000202051", "corrected": True}


def test_a_person_who_rejects_ends_the_run(project: Project) -> None:
    project.run("human-gate-on-error", "--no-input")
    project.type("gates", "answer", "last", "mend", "reject")

    done = project.type("resume", "last")

    assert done.code == 3
    assert "halt.intentional" in done.err


def test_questions_are_listed_checked_and_answered_with_their_defaults(project: Project) -> None:
    waiting = project.run("questions", "--no-input")
    listed = project.type("gates", "list").out
    without = project.type("gates", "answer", "last", "plan", "answered")
    wrong = project.type(
        "gates", "answer", "last", "plan", "answered", "--payload", '{"audience": "us", "tone": "shrill"}'
    )
    project.type("gates", "answer", "last", "plan", "answered", "--payload", '{"audience": "operators"}')
    done = project.type("resume", "last", "--quiet")

    assert waiting.code == 4
    assert listed.splitlines() == [
        "r  plan  What shall the announcement be like?  [answered | skipped | aborted]",
        "  audience: Who reads it?  (required)",
        "  tone: In which tone?  [dry | warm]",
        "  note: Anything else?",
    ]
    assert without.code == wrong.code == 2
    assert "`audience` must be answered" in without.err
    assert "`tone` takes one of dry, warm" in wrong.err
    assert done.data == {"text": "Dear operators, we are happy to bring you version 3!", "answered": 2}


def test_questions_may_be_left_where_that_is_allowed(project: Project) -> None:
    project.run("questions", "--no-input")
    project.type("gates", "answer", "last", "plan", "aborted")

    done = project.type("resume", "last", "--quiet")

    assert done.data == {"text": ""}


def test_items_fail_alone_and_the_report_names_them(project: Project) -> None:
    done = project.run("fan-out")

    assert done.code == 0, done.err
    assert done.data == {
        "asked": 6,
        "made": ["cat", "dog", "fox", "bee"],
        "failed": ["owl", "elk"],
        "report": "owl: not an image (external.image.corrupt)\nelk: the store is busy (external.image.busy)\n",
    }
    attempts = {f"shrink[{index}]": project.started().count(f"shrink[{index}]") for index in (1, 2, 4)}
    assert attempts == {"shrink[1]": 2, "shrink[2]": 1, "shrink[4]": 3}


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        (["a1", "a2"], {"status": "updated", "hosts": ["a1", "a2"]}),
        (["a1", "full"], {"status": "postponed", "because_of": "full"}),
    ],
    ids=["well", "handled two levels up"],
)
def test_three_levels_of_workflows_hand_up_what_they_do_not_handle(
    project: Project, hosts: list[str], expected: dict[str, Any]
) -> None:
    done = project.run("sub-workflows", "-i", f"hosts={json.dumps(hosts)}")

    assert done.data == expected


def test_a_failure_from_three_levels_down_shows_its_way(project: Project) -> None:
    done = project.run("sub-workflows", "-i", 'hosts=["a1", "lost"]', "--error-format", "json", "--quiet")

    assert done.code == 3
    assert done.error["kind"] == "external.host.unreachable"
    assert done.error["details"] == {"host": "lost"}
    assert [(one["workflow"], one["node"]) for one in done.error["frames"]] == [
        ("host", "install"),
        ("region", "update"),
        ("fleet", "europe"),
    ]


def test_a_spent_budget_waits_for_approval_and_the_whole_cost_is_told(project: Project) -> None:
    waiting = project.run("budget-pause")
    project.type("gates", "answer", "last", "budget:review", "approved")
    done = project.type("resume", "last")

    assert waiting.code == 4
    assert "0.51 of 0.50 USD are spent; may `review` run?" in waiting.err
    assert done.data == {"text": "a review"}
    assert "0.6100 USD" in done.err
    assert [one["type"] for one in project.events() if one["type"].startswith("budget:")] == ["budget:paused"]


def test_a_rejected_budget_ends_the_run(project: Project) -> None:
    project.run("budget-pause")
    project.type("gates", "answer", "last", "budget:review", "rejected")

    done = project.type("resume", "last")

    assert done.code == 1
    assert "limit.budget_exceeded" in done.err


@pytest.mark.parametrize(
    ("customer", "schema", "payload"),
    [
        ("acme", "example.onboarding.account_created@1", {"account": "acme-1", "seats": 5}),
        ("globex", "example.onboarding.account_refused@1", {"reason": "globex has an account"}),
    ],
)
def test_a_notification_is_declared_checked_and_told(
    project: Project, customer: str, schema: str, payload: dict[str, Any]
) -> None:
    done = project.run("notification", "-i", f"customer={customer}")

    (line,) = (project.store / "runs/r/notifications.jsonl").read_text().splitlines()
    told = json.loads(line)
    assert done.data == {"created": customer == "acme"}
    assert told["schema_id"] == schema
    assert told["payload"] == payload
    assert told["correlation"] == {"customer": customer}


def test_the_release_retries_its_deployment_and_goes_live(project: Project) -> None:
    done = project.run("release", "-i", "version=2.4.0")

    assert done.data == {"status": "released", "live": "2.4.0", "artifact": "app-2.4.0.tar.gz.sig"}
    assert project.started().count("deploy") == 3
    assert {"tests/unit", "tests/lint", "tests/docs"} < set(project.started())


def test_a_release_that_is_unhealthy_is_rolled_back(project: Project) -> None:
    done = project.run("release", "-i", "version=2.4.1")

    assert done.code == 0, done.err
    assert done.data == {
        "status": "rolled_back",
        "live": "2.4.0",
        "because": "2.4.1 answers every third request with 500",
    }


@pytest.mark.slow
def test_a_release_that_nobody_can_sign_halts_and_goes_on_once_the_key_is_there(project: Project) -> None:
    halted = project.run("release", "-i", "version=2.5.0", "-i", f"work={project.folder}")
    explained = project.type("explain", str(project.store / "runs/r/errors.jsonl"))
    (project.folder / "signing.key").touch()
    done = project.type("resume", "last", "--quiet")

    assert halted.code == 3
    assert halted.out == ""
    assert "kind: external.signing.key_missing (configuration)" in halted.err
    assert explained.code == 0, explained.err
    assert "there is no signing.key" in explained.out
    assert done.data == {"status": "released", "live": "2.5.0", "artifact": "app-2.5.0.tar.gz.sig"}
    assert project.started("last") == ["sign"]


def test_a_sync_is_parked_until_its_quota_is_renewed_and_keeps_what_it_has(project: Project) -> None:
    state = project.folder / "state"
    parked = project.run("data-sync", "-i", f"state={state}")
    too_early = project.type("resume", "last")

    assert parked.code == too_early.code == 4
    assert re.search(r"is blocked until \d{4}-\d\d-\d\dT", parked.err)
    assert sorted(path.name for path in state.glob("page-*")) == ["page-1.json", "page-2.json"]
    assert project.started().count("pages[2]") == 1


def test_a_sync_that_is_told_a_short_wait_waits_it_out_and_a_renewed_quota_lets_it_end(
    project: Project,
) -> None:
    state = project.folder / "state"
    spent = project.run("data-sync", "-i", f"state={state}", "-i", "wait=0.01")
    (state / "quota-used").write_text("0")
    done = project.type("resume", "last", "--quiet")

    assert spent.code == 3
    assert "the sync stopped: 2 of 2 pages of today are used up" in spent.err
    assert done.data == {"pages": 4, "rows": 100}
    assert project.started("last") == ["pages[2]", "pages[3]"]


def test_a_secret_reaches_the_script_and_nothing_else(project: Project) -> None:
    token = project.folder / "token.txt"
    token.write_text("t0k-en-9f8a7b6c\n")

    done = project.run("secrets", "-i", f"token=@{token}")

    assert done.data == {"said": "uploaded with [redacted], 15 characters"}
    assert "9f8a7b6c" not in done.err
    assert not [
        path for path in project.store.rglob("*") if path.is_file() and b"9f8a7b6c" in path.read_bytes()
    ]


def test_a_refused_secret_is_given_anew_to_go_on(project: Project) -> None:
    token = project.folder / "token.txt"
    token.write_text("expired-9f8a7b6c\n")
    refused = project.run("secrets", "-i", f"token=@{token}")
    without = project.type("resume", "last")
    token.write_text("renewed-1a2b3c4d\n")
    done = project.type("resume", "last", "-i", f"token=@{token}")

    assert refused.code == 3
    assert "get a new token" in refused.err
    assert without.code == 2
    assert done.data == {"said": "uploaded with [redacted], 16 characters"}
    assert not [
        path for path in project.store.rglob("*") if path.is_file() and b"9f8a7b6c" in path.read_bytes()
    ]


def test_a_long_job_whose_host_is_killed_does_nothing_twice(project: Project) -> None:
    ledger = project.folder / "ledger"
    ledger.mkdir()
    (ledger / "hang-invoices").touch()
    command = [sys.executable, "-m", "failwell", "run", str(EXAMPLES / "long-job/workflow.yaml")]
    process = subprocess.Popen(
        [*command, "-i", f"ledger={ledger}", "--run-id", "r", "--quiet"],
        env=environment(FAILWELL_STORE=str(project.store)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(lambda: (ledger / "log").exists() and "invoices" in (ledger / "log").read_text())
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(20)
    (ledger / "hang-invoices").unlink()

    done = project.type("resume", "r", "--quiet")

    assert done.data == {"exported": 5, "entries": 5}
    assert (ledger / "log").read_text().split("\n")[:-1] == [
        "users",
        "orders",
        "invoices",
        "invoices was there before",
        "stock",
        "audit",
    ]
    again = [
        one["data"] for one in project.events() if one["type"] == "node:started" and one["data"].get("rerun")
    ]
    assert [(one["path"], one["key"]) for one in again] == [("export[2]", "r/export[2]/1.1")]


def _wait_for(happened: Any, seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, "it never came to that"
        time.sleep(0.01)


def test_a_long_job_that_nobody_disturbs_just_ends(project: Project) -> None:
    done = project.run("long-job", "-i", f"ledger={project.folder / 'ledger'}")

    assert done.data == {"exported": 5, "entries": 5}


@pytest.mark.acceptance("conductor 69")
@pytest.mark.parametrize("rounds", [2, 3])
def test_a_file_in_conductors_shape_runs_as_it_is(project: Project, rounds: int) -> None:
    text = (EXAMPLES / "from-conductor/workflow.yaml").read_text(encoding="utf-8")

    done = project.run("from-conductor", "-i", "topic=tides", "-i", f"rounds={rounds}")

    assert not re.search(
        r"^ *(- )?(kinds|raises|on_error|retry|halt|propagate|env_from|idempotent):", text, re.MULTILINE
    )
    assert done.code == 0, done.err
    assert done.data == {
        "text": f"Draft {rounds}: tides rise, tides fall.",
        "drafts": rounds,
        "score": 4 + rounds,
        "facts": 2,
        "steps": ["researcher", "checks", *["writer", "reviewer"] * rounds],
    }


@pytest.mark.slow
def test_the_demo_shows_a_handled_and_an_unhandled_failure_and_what_to_type_next(tmp_path: Path) -> None:
    printed = demo.record(environment(TMPDIR=str(tmp_path)))
    listed = printed.partition("What to type next:")[2]
    after = subprocess.run(
        ["bash", "-euc", listed], capture_output=True, text=True, check=False, cwd=ROOT, env=environment()
    )

    assert '"status": "rolled_back"' in printed
    assert "exit code 3: no route takes `external.signing.key_missing`" in printed
    assert after.returncode == 0, after.stderr
    assert "external.signing.key_missing" in after.stdout
    assert '"status": "released"' in after.stdout
    # The record of the demo: `python -m tools.docs.demo` writes it again.
    assert demo.page(printed) == demo.PAGE.read_text()
    for sign in ("falling back", "tool shell: tool.denied", "waits for an answer", "We are sorry."):
        assert sign in printed.partition("An agent with scripted models")[2]


def test_an_agent_fails_over_is_denied_a_tool_and_asks_a_person(project: Project) -> None:
    waiting = project.run("support-agent", "--no-input", "--quiet")
    project.type("gates", "answer", "r", "approve", "refund")
    done = project.type("resume", "r", "--quiet", "--format", "json")

    assert waiting.code == 4
    assert done.data == {"decision": "refund", "answer": "We are sorry. You get your money back."}
    assert project.started() == ["triage", "approve", "answer"]


def test_a_state_machine_improves_a_draft_and_joins_its_reviews(project: Project) -> None:
    done = project.run("state-machine", "--quiet", "--format", "json")

    assert done.data == {"text": "Rain falls on both sides.", "reviews": "facts: they are style: it is"}
    attempts = [
        one["data"]["attempt"]
        for one in project.events()
        if one["type"] == "node:started" and one["data"]["node"] == "draft"
    ]
    assert attempts == [1, 2]


def test_an_example_uses_every_key_of_an_agent(project: Project) -> None:
    from failwell.workflows.compile.agent_settings import AGENT

    done = project.run("agent-keys", "-i", "topic=bridges", "--quiet")
    log = project.type("runs", "logs", "r").out
    automatic = project.type(
        "run",
        str(EXAMPLES / "agent-keys/workflow.yaml"),
        "-i",
        "topic=x",
        "--quiet",
        "--model",
        "scripted:auto",
    )

    text = (EXAMPLES / "agent-keys/workflow.yaml").read_text()
    # These belong to engines that run agents of their own.
    missing = {key for key in AGENT if f"    {key}:" not in text} - {"provider", "sandbox", "settings_dir"}
    assert missing == set()
    assert done.data["title"] == "Bridges of the city"
    assert done.data["article"].startswith("The bridges are old.")
    assert (done.data["verdict"], done.data["length"]) == ("print", "short")
    assert "answer: internal.schema_violation; asked again" in log
    assert "model scripted:busy.yaml: provider.overloaded" in log
    assert "tool desk_editor: done" in log
    assert "validator: 1 issues; asked again" in log
    assert automatic.code == 0
