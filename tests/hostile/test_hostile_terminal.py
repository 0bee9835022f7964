"""Text of files, scripts, models and jobs cannot act on a terminal, in any command and any format."""

import ast
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.job_place import Place, wait_until
from tests.cli.running import Done, environment, failwell

CLI = Path(__file__).resolve().parents[2] / "src/failwell/cli"
FORMATS = ("text", "json", "markdown")

ATTACKS = {
    "clear": "\x1b[2J\x1b[H",
    "title": "\x1b]0;owned\x07",
    "clipboard": "\x1b]52;c;ZXZpbA==\x1b\\",
    "link": "\x1b]8;;https://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "colour": "\x1b[8mhidden\x1b[0m",
    "one byte controls": "\x9b2J\x9d0;owned\x9c\x90\x85",
    "back": "approve\rreject \b\b\b\x7f\x00",
    "turned": "\u202etxt.exe\u202c \u2066a\u2069 \u200e\u200f\u061c",
    "invisible": "a\u200bb\u2060c\ufeffd\u00ade\u3164\uffa0\u034f\u180e",
    "tags": "".join(chr(0xE0000 + ord(letter)) for letter in "do evil"),
    "variations": "\ufe00\ufe05\U000e0100",
    "forged lines": "is this fine?\n  1. Reject (reject)\nchoose: 2\n\u2028run completed",
}
HOSTILE = " ".join(ATTACKS.values())
WRITTEN = HOSTILE.replace("\0", "")
"""As a workflow file may hold it."""
ACTING = ("\x1b[2J", "\x1b]", "\x1b[8m", "\x9b", "\u202e", "\u200b", "\x07")
"""What never reaches a terminal, where the program itself moves the cursor and uses colours."""


def acting(text: str) -> list[str]:
    """The characters of `text` that a terminal acts on or does not show, by Unicode's own categories."""
    allowed = "\n\t\u200c\u200d\ufe0e\ufe0f"
    unseen = "\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5"
    return sorted(
        {
            f"U+{ord(letter):04X}"
            for letter in text
            if letter not in allowed
            and (
                unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
                or letter in unseen
                or 0xFE00 <= ord(letter) <= 0xFE0D
                or 0xE0000 <= ord(letter) <= 0xE0FFF
            )
        }
    )


def assert_inert(done: Done, *command: str, code: int | None = None) -> None:
    assert code in (None, done.code), done.err
    assert acting(done.out + done.err) == [], f"failwell {' '.join(command)} printed them"


def workflow(folder: Path, agents: list[dict[str, Any]], **more: Any) -> Path:
    document = {"workflow": {"name": "release", "entry_point": agents[0]["name"]}, "agents": agents, **more}
    path = folder / "workflow.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=False), encoding="utf-8")
    return path


def script(name: str, code: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "script", "command": sys.executable, "args": ["-c", code], **more}


def printing(text: str, stream: str = "stdout") -> str:
    return f"import sys; sys.{stream}.buffer.write({text.encode('utf-8', 'surrogatepass')!r})"


ASKING = {
    "name": "ask",
    "type": "human_gate",
    "prompt": "{{ draft.output.stdout }}",
    "options": [
        {"label": f"Go {WRITTEN}", "value": "approve", "route": "$end"},
        {"label": "Stop", "value": f"reject {WRITTEN}", "route": "$end"},
    ],
}


@pytest.mark.slow
def test_a_run_that_waits_for_an_answer(tmp_path: Path) -> None:
    path = workflow(tmp_path, [script("draft", printing(HOSTILE), routes=[{"to": "ask"}]), ASKING])
    store = ("--store", str(tmp_path / "state"))

    for form in FORMATS:
        commands = [
            (4, "run", str(path), "--no-input", "--progress", "plain"),
            (0, "gates", "list"),
            (0, "runs", "list"),
            (0, "runs", "show", "last", "--all"),
            (0, "runs", "tail", "last"),
            (0, "runs", "export", "last"),
        ]
        for code, *command in commands:
            arguments = (*command, "--format", "json" if "export" in command else form)
            assert_inert(failwell(*arguments, *store), *arguments, code=code)


def test_json_keeps_the_text_as_it_was(tmp_path: Path) -> None:
    path = workflow(tmp_path, [script("draft", printing(HOSTILE), routes=[{"to": "ask"}]), ASKING])
    store = ("--store", str(tmp_path / "state"))
    failwell("run", str(path), "--no-input", *store)

    done = failwell("gates", "list", "--format", "json", *store)

    assert "\u202etxt.exe" in done.data[0]["prompt"]
    assert done.data[0]["values"][1] == f"reject {WRITTEN}"


def test_a_script_that_raises_and_one_that_dies(tmp_path: Path) -> None:
    error = json.dumps({"kind": "external.shop.closed", "message": HOSTILE, "details": {HOSTILE: HOSTILE}})
    raising = f"import os; open(os.environ['FAILWELL_ERROR_OUT'], 'w').write({error!r}); raise SystemExit(3)"
    dying = printing(HOSTILE, "stderr") + "; sys.stderr.flush(); import os; os.kill(os.getpid(), 9)"
    for program in (raising, dying):
        path = workflow(
            tmp_path,
            [script("check", program, raises=["external.shop.closed"])],
            kinds={"external.shop.closed": {"category": "configuration"}},
        )
        store = ("--store", str(tmp_path / "state"))
        for form in FORMATS:
            commands = [
                (3, "run", str(path), "--progress", "plain"),
                (0, "runs", "show", "last"),
                (0, "runs", "tail", "last"),
                (0, "runs", "list"),
            ]
            for code, *command in commands:
                done = failwell(*command, "--format", form, *store)
                assert_inert(done, *command, form, code=code)
                assert "\nrun completed" not in done.err, "a script wrote a line that looks like ours"


def test_a_result_that_a_script_printed(tmp_path: Path) -> None:
    path = workflow(
        tmp_path, [script("draft", printing(HOSTILE))], output={"text": "{{ draft.output.stdout }}"}
    )

    for form in FORMATS:
        done = failwell("run", str(path), "--format", form, "--store", str(tmp_path / "state"))
        assert done.code == 0, done.err
        assert_inert(done, "run", form)


@pytest.mark.slow
def test_the_answer_of_a_model(tmp_path: Path) -> None:
    agent = {"name": "ask", "prompt": "Answer.", "routes": [{"to": "gate"}]}
    gate = {**ASKING, "name": "gate", "prompt": "{{ ask.output.result }}"}
    path = workflow(tmp_path, [agent, gate], output={"text": "{{ ask.output.result }}"})
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["workflow"]["runtime"] = {"default_model": "scripted:replies.yaml"}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"replies": [{"text": WRITTEN}]}), encoding="utf-8")
    store = ("--store", str(tmp_path / "state"))

    for form in FORMATS:
        commands = [
            (4, "run", str(path), "--no-input", "--progress", "plain"),
            (0, "gates", "list"),
            (0, "runs", "show", "last", "--all"),
            (0, "runs", "tail", "last"),
            (0, "gates", "answer", "last", "gate", "approve"),
        ]
        for code, *command in commands:
            done = failwell(*command, "--format", form, *store, cwd=tmp_path)
            assert_inert(done, *command, form, code=code)
        result = failwell("resume", "last", "--format", form, *store, cwd=tmp_path)
        assert_inert(result, "resume", form, code=0)
        assert "owned" in result.out, "the text is shown, written out"


@pytest.mark.parametrize("place", ["names", "values", "keys", "name of the file"])
def test_a_file_with_mistakes_and_a_drawing_of_it(tmp_path: Path, place: str) -> None:
    bad: dict[str, Any] = {
        "names": {"workflow": {"name": HOSTILE, "entry_point": HOSTILE}, "agents": [{"name": HOSTILE}]},
        "values": {
            "workflow": {"name": "x", "description": HOSTILE, "entry_point": "a"},
            "agents": [{"name": "a", "type": HOSTILE, "routes": [{"to": HOSTILE, "when": HOSTILE}]}],
        },
        "keys": {HOSTILE: 1, "workflow": {"name": "x", HOSTILE: 2}},
        "name of the file": {"workflow": {"name": "x"}},
    }
    name = "work\x1b[2J\u202eflow.yaml" if place == "name of the file" else "workflow.yaml"
    path = tmp_path / name
    path.write_text(yaml.safe_dump(bad[place]), encoding="utf-8")

    for form in FORMATS:
        for command in ("validate", "show", "run"):
            done = failwell(command, str(path), "--format", form, "--store", str(tmp_path / "state"))
            assert_inert(done, command, form, code=2)


def test_a_drawing_of_a_file_without_mistakes(tmp_path: Path) -> None:
    ask = {**ASKING, "prompt": WRITTEN}
    path = workflow(
        tmp_path, [ask], kinds={"external.shop.closed": {"category": "configuration", "summary": WRITTEN}}
    )

    for form in (*FORMATS, "mermaid", "svg"):
        done = failwell("show", str(path), *(("--format", form) if form in FORMATS else ("--picture", form)))
        assert_inert(done, "show", form, code=0)


def test_an_argument_that_was_typed() -> None:
    for form in FORMATS:
        for command in ("run", "describe", "explain", "jobs", "runs", "gates", HOSTILE):
            for rest in ((HOSTILE,), ("show", HOSTILE), ("--" + HOSTILE,)):
                assert_inert(failwell(command, *rest, "--format", form), command, *rest)


def test_a_pasted_failure() -> None:
    trace = f"Traceback (most recent call last):\n  File {HOSTILE!r}, line 1, in f\nValueError: {HOSTILE}\n"
    for form in FORMATS:
        for view in ("user", "operator", "model"):
            arguments = ("describe", "-", "--view", view, "--format", form)
            assert_inert(failwell(*arguments, given=trace), *arguments)


CAPABILITIES = f"""
def talks(value=None, path=None):
    import os, sys, time
    from failwell.capability import progress
    progress(0.5, {HOSTILE!r})
    print({HOSTILE!r}); print({HOSTILE!r}, file=sys.stderr)
    while path and not os.path.exists(path):
        time.sleep(0.005)
    return {{{HOSTILE!r}: {HOSTILE!r}}}

def fails(value=None):
    talks()
    raise RuntimeError({HOSTILE!r})
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A state folder with two capabilities that say hostile things."""
    place = Place(tmp_path)
    (tmp_path / "hostile.py").write_text(CAPABILITIES, encoding="utf-8")
    for name in ("talks", "fails"):
        manifest = tmp_path / f"{name}.toml"
        manifest.write_text(f'name = "{name}"\nobject = "hostile:{name}"\ndescription = {in_toml(WRITTEN)}\n')
        assert_inert(place("capabilities", "add", str(manifest)), "capabilities", "add", code=0)
    return place


def test_the_output_result_and_failure_of_a_job(place: Place) -> None:
    for name in ("talks", "fails"):
        assert_inert(place("jobs", "submit", name, f"value={WRITTEN}"), "jobs", "submit", code=0)
    assert_inert(place("workers", "run", "--until-empty"), "workers", "run")
    jobs = [job["id"] for job in place("jobs", "list", "--format", "json").data]
    [failed] = [job["id"] for job in place("jobs", "list", "--status", "failed", "--format", "json").data]
    assert len(jobs) == 2

    for form in FORMATS:
        commands = [
            ("jobs", "list"),
            ("capabilities", "list"),
            ("capabilities", "check", "talks"),
            *(("jobs", action, job) for action in ("show", "logs", "tail", "wait") for job in jobs),
        ]
        for command in commands:
            code = 1 if command == ("jobs", "wait", failed) else 0
            assert_inert(place(*command, "--format", form), *command, form, code=code)
    for job in jobs:
        assert "owned" in place("jobs", "show", job).out, "the text is shown, written out"


def test_the_progress_of_a_job_that_runs(place: Place) -> None:
    go = place.path("go")

    with place.start("workers", "run"):
        place.until_hosted(place.path("state"))
        place("jobs", "submit", "talks", f"path={go}", "--json")
        wait_until(lambda: "owned" in place("top", "--once").out)
        shown = [(form, place("top", "--once", "--format", form)) for form in FORMATS]
        live = on_a_terminal("top", "--store", str(place.path("state")), until=b"owned").decode()
        go.touch()

    for form, done in shown:
        assert_inert(done, "top", form, code=0)
        assert "owned" in done.out
    assert [attack for attack in ACTING if attack in live] == []


def on_a_terminal(*arguments: str, answer: bytes = b"", until: bytes = b"") -> bytes:
    """What a person sees who runs the command at a terminal, and interrupts it once `until` is shown."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 400, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "failwell", *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment(TERM="xterm-256color", COLUMNS="400"),
        start_new_session=True,
    )
    os.close(follower)
    seen = b""
    try:
        while select.select([leader], [], [], 30)[0]:
            try:
                seen += os.read(leader, 65536)
            except OSError:
                break
            if answer and b"choose: " in seen:
                os.write(leader, answer)
                answer = b""
            if until and until in seen:
                process.send_signal(signal.SIGINT)
                until = b""
    finally:
        os.close(leader)
        process.wait(30)
    assert not until, "it was never shown"
    return seen


def test_a_question_at_a_terminal_cannot_be_forged(tmp_path: Path) -> None:
    path = workflow(tmp_path, [script("draft", printing(HOSTILE), routes=[{"to": "ask"}]), ASKING])

    seen = on_a_terminal("run", str(path), "--store", str(tmp_path / "state"), answer=b"1\n").decode()

    for attack in ACTING:
        assert attack not in seen, f"{attack!r} reached the terminal"
    # The forged option stands behind a bar; the real one does not.
    assert "│   1. Reject (reject)" in seen
    assert "\n  1. Go " in seen.replace("\r", "")


def test_the_panel_of_a_failure_at_a_terminal(tmp_path: Path) -> None:
    error = json.dumps({"kind": "external.shop.closed", "message": HOSTILE, "details": {"why": HOSTILE}})
    raising = f"import os; open(os.environ['FAILWELL_ERROR_OUT'], 'w').write({error!r}); raise SystemExit(3)"
    path = workflow(tmp_path, [script("check", raising)])

    seen = on_a_terminal("run", str(path), "--store", str(tmp_path / "state")).decode()

    for attack in ACTING:
        assert attack not in seen, f"{attack!r} reached the terminal"


def test_only_the_module_of_output_prints() -> None:
    printing_calls: list[str] = []
    for path in sorted(CLI.rglob("*.py")):
        if path.name == "output.py" and path.parent == CLI:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="print")) if not prints_the_version(node):
                    printing_calls.append(f"{path.relative_to(CLI)}:{node.lineno} print")
                case ast.Call(
                    func=ast.Attribute(value=ast.Attribute(attr="stdout" | "stderr"), attr="write")
                ):
                    printing_calls.append(f"{path.relative_to(CLI)}:{node.lineno} write")
                case ast.ImportFrom(module="rich.console", names=names) if any(
                    name.name == "Console" for name in names
                ):
                    printing_calls.append(f"{path.relative_to(CLI)}:{node.lineno} Console")
                case _:
                    pass

    assert printing_calls == [], "use failwell.cli.output"


def prints_the_version(call: ast.Call) -> bool:
    return "__version__" in ast.dump(call)


def in_toml(text: str) -> str:
    return '"' + "".join(f"\\U{ord(letter):08x}" for letter in text) + '"'
