"""Secret inputs of a run: masked in every form that scripts print, line by line, and nowhere recorded."""

import base64
import json
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.cli.running import Done, failwell

VALUE = 'p"w/with spaces & ümläuts-7'
KEY = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(
    base64.b64encode(bytes((7 * at + 31 * line) % 251 for at in range(48))).decode() for line in range(6)
) + "\n-----END PRIVATE KEY-----\n"  # fmt: skip
TWO_LINES = "user-name\npass/wörd"


def run(folder: Path, program: str, secret: str, *options: str) -> Done:
    (folder / "program.py").write_text(
        f"import base64, html, json, os, sys, urllib.parse\nt = os.environ['TOKEN']\n{program}"
    )
    document = {
        "workflow": {"name": "flow", "entry_point": "a", "input": {"token": {"type": "string", "secret": True}}},
        "agents": [
            {
                "name": "a", "type": "script", "command": sys.executable, "args": [str(folder / "program.py")],
                "env_from": {"TOKEN": "workflow.input.token"}, "raises": ["external.x"],
            }
        ],
        "output": {"out": "{{ a.output | tojson }}"},
    }  # fmt: skip
    (folder / "flow.yaml").write_text(json.dumps(document))
    (folder / "token").write_text(secret + "\n")
    store = ("--store", str(folder / "store"), "--run-id", "r1")
    return failwell("run", str(folder / "flow.yaml"), "-i", f"token=@{folder / 'token'}", *store, *options)


def everything(folder: Path, done: Done) -> str:
    """All that a run has printed and stored."""
    kept = [
        file.read_bytes().decode("utf-8", "replace")
        for file in (folder / "store").rglob("*")
        if file.is_file()
    ]
    exported = failwell("runs", "export", "r1", "--store", str(folder / "store")).out
    return "\n".join([done.out, done.err, exported, *kept])


@pytest.mark.acceptance("relavium 69")
@pytest.mark.parametrize(
    ("program", "form"),
    [
        ("print(t)", VALUE),
        ("print(json.dumps({'x': [t]}))", json.dumps(VALUE)[1:-1]),
        ("print(json.dumps(t).replace('/', chr(92) + '/'))", "w\\/with"),
        ("print(json.dumps(''.join('%su%04x' % (chr(92), ord(c)) for c in t)).replace(chr(92) * 2, chr(92)))", "spaces"),
        ("print('{\"x\": \"' + ''.join('%su%04x' % (chr(92), ord(c)) for c in t) + '\"}')", "spaces"),
        ("print(urllib.parse.quote(t))", quote(VALUE)),
        ("print(urllib.parse.quote(t, safe=''))", quote(VALUE, safe="")),
        ("print(urllib.parse.quote_plus(t))", "with+spaces"),
        ("print(urllib.parse.quote(t, safe='').lower())", quote(VALUE, safe="").lower()),
        ("print(html.escape(t))", "&quot;w/with"),
        ("print(t.encode().hex())", VALUE.encode().hex()),
        *[
            (
                f"print(base64.b64encode(b'{'u' * before}:' + t.encode()).decode())",
                base64.b64encode(b"u" * before + b":" + VALUE.encode()).decode()[4:-4],
            )
            for before in range(3)
        ],
        ("print(base64.urlsafe_b64encode(b':' + t.encode()).decode())", "dyBzcGFjZXM"),
        ("sys.exit(t)", VALUE),
        ("open(os.environ['FAILWELL_ERROR_OUT'], 'w').write(json.dumps({'kind': 'external.x', 'message': t}))", VALUE),
    ],
)  # fmt: skip
def test_a_secret_is_masked_in_every_form(tmp_path: Path, program: str, form: str) -> None:
    done = run(tmp_path, program, VALUE)

    written = everything(tmp_path, done)
    assert form not in written
    assert VALUE not in written
    assert json.dumps(VALUE)[1:-1] not in written
    assert "[redacted]" in written


@pytest.mark.parametrize(
    "program",
    [
        "print(t)",
        "[print('key:', line) for line in t.splitlines()]",
        "print(t.splitlines()[3])",
        "print(json.dumps({'key': t}))",
        "print(urllib.parse.quote(t))",
        "print(base64.b64encode(t.encode()).decode())",
        "print(base64.encodebytes(t.encode()).decode())",
        "print(base64.encodebytes(b'u:' + t.encode()).decode().replace(chr(10), chr(13) + chr(10)))",
        "print(base64.b64encode(t.splitlines()[2].encode()).decode())",
        "sys.stdout.write(t * 20_000)",
    ],
    ids=["all", "lines", "line", "json", "percent", "base64", "wrapped", "wrapped behind a user", "line in base64", "much"],
)  # fmt: skip
def test_every_line_of_a_key_is_masked(tmp_path: Path, program: str) -> None:
    done = run(tmp_path, program, KEY)

    written = everything(tmp_path, done)
    assert done.code == 0, done.err
    assert "[redacted]" in written
    for line in KEY.splitlines()[1:-1]:
        assert line not in written
        assert base64.b64encode(line.encode()).decode()[4:40] not in written
        assert quote(line, safe="") not in written


def test_a_short_line_of_several_is_masked_too(tmp_path: Path) -> None:
    done = run(tmp_path, "print(t.splitlines()[1]); print(urllib.parse.quote(t.splitlines()[1]))", TWO_LINES)

    written = everything(tmp_path, done)
    assert "wörd" not in written
    assert "w%C3%B6rd" not in written


def test_a_secret_that_is_too_short_to_be_masked_is_warned_about_at_load(tmp_path: Path) -> None:
    short = run(tmp_path, "print('done')", "abc12", "-q")
    lines = run(tmp_path, "print('done')", "a-long-secret\nabc", "-q", "--run-id", "r2")
    as_json = run(tmp_path, "print('done')", "abc12", "-q", "--format", "json", "--run-id", "r3")
    good = run(tmp_path, "print('done')", "a-long-secret", "-q", "--run-id", "r4")

    assert "warning: the secret input `token` has fewer than 6 characters, so it is not masked" in short.err
    assert "warning: the secret input `token` has lines of fewer than 6 characters" in lines.err
    assert (as_json.err, good.err) == ("", "")
    assert "abc12" not in short.err


def test_a_short_default_of_a_secret_is_a_warning_of_validate(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(
        "workflow: {name: x, entry_point: a, input: {token: {type: string, secret: true, default: ab1}}}\n"
        "agents: [{name: a, type: script, command: 'true', env_from: {TOKEN: workflow.input.token}}]\n"
    )

    done = failwell("validate", str(tmp_path / "flow.yaml"))

    assert done.code == 0
    assert "the default of the secret input `token` has fewer than 6 characters" in done.out + done.err
