"""Keys of providers from the environment, the keyring and a command: used, masked, and stored nowhere."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from failwell.agents.credentials import read_credential
from failwell.errors.faults import Validation
from failwell.errors.redact import redact_text
from failwell.testing import Lab, lab
from tests.cli.running import Done, failwell

KEY = "correct-horse-battery-staple-17"


def read(source: Any) -> str | None:
    return asyncio.run(read_credential(source, "the key of `openai`"))


def refused(source: Any) -> str:
    with pytest.raises(Validation) as raised:
        read(source)
    return str(raised.value)


def printing(code: str) -> dict[str, list[str]]:
    return {"command": [sys.executable, "-c", code]}


def test_a_key_comes_from_the_file_the_environment_or_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_PLACE", KEY)

    assert read(None) is None
    assert read(KEY) == KEY
    assert read({"env": "LAB_PLACE"}) == KEY
    assert read(printing(f"print('{KEY}')")) == KEY
    assert KEY not in redact_text(f"the key {KEY} was rejected")


def test_what_is_missing_is_named_and_what_a_command_prints_is_not() -> None:
    assert "`NO_SUCH_VARIABLE`, which is not set; export NO_SUCH_VARIABLE" in refused(
        {"env": "NO_SUCH_VARIABLE"}
    )
    assert "cannot be started; install it" in refused({"command": ["no-such-program"]})
    failed = refused(printing("import sys; print('half'); print('noise', file=sys.stderr); sys.exit(3)"))
    assert "exit code 3; run it yourself" in failed
    assert not {"half", "noise"} & set(failed.split())
    assert "printed nothing" in refused(printing("pass"))
    assert "prints more than a credential" in refused(printing("print('x' * 100_000)"))


def test_a_keyring_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)

    assert refused({"keyring": "openai"}).endswith("is not installed; pip install keyring")


def test_a_keyring_is_asked_for_the_service_and_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring: Any = ModuleType("keyring")
    keyring.get_password = lambda service, user: {"failwell": KEY, "me": f"{KEY}-mine"}.get(user)  # type: ignore[misc]
    monkeypatch.setitem(sys.modules, "keyring", keyring)

    assert (read({"keyring": "openai"}), read({"keyring": "openai", "user": "me"})) == (KEY, f"{KEY}-mine")
    assert "`keyring set openai nobody`" in refused({"keyring": "openai", "user": "nobody"})


class Place:
    """A folder with an agent that gets its key from a command, and the lab that answers it."""

    def __init__(self, folder: Path, fake: Lab) -> None:
        self.folder = folder
        self.lab = fake

    def run(self, scenario: str, credential: dict[str, Any]) -> Done:
        provider = {"base_url": f"{self.lab.url('openai', scenario)}/v1", "api_key": credential}
        (self.folder / "w.yaml").write_text(
            "workflow:\n  name: w\n  entry_point: ask\n  runtime: {default_model: 'openai-chat:gpt-lab', provider: "
            f"{json.dumps(provider)}}}\nagents:\n  - {{name: ask, prompt: hello, max_attempts: 1}}\n"
        )
        return failwell(
            "run", "w.yaml", "--quiet", "--error-format", "json", "--store", str(self.folder / "state"),
            cwd=self.folder,
        )  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    pytest.importorskip("pydantic_ai")
    pytest.importorskip("openai")
    with lab() as fake:
        yield Place(tmp_path, fake)


def test_the_key_of_a_command_is_sent_and_neither_stored_nor_shown(place: Place) -> None:
    (place.folder / "key.txt").write_text(KEY)
    command = {"command": [sys.executable, "-c", "print(open('key.txt').read())"]}

    answered = place.run("ok", command)
    rejected = place.run("bad_key", command)

    (request,) = place.lab.requests("openai", "ok")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert (answered.code, rejected.code) == (0, 3)
    assert "provider.auth" in rejected.err
    assert KEY not in answered.out + answered.err + rejected.out + rejected.err
    stored = [path for path in (place.folder / "state").rglob("*") if path.is_file()]
    assert [path for path in stored if KEY.encode() in path.read_bytes()] == []


def test_a_key_that_is_nowhere_fails_before_any_call(place: Place) -> None:
    done = place.run("ok", {"env": "NO_SUCH_VARIABLE"})

    assert done.code != 0
    assert "NO_SUCH_VARIABLE" in done.err
    assert place.lab.calls() == 0


def test_a_refused_key_is_read_again_and_a_new_one_is_used(place: Place) -> None:
    rotating = "import os; os.makedirs('turn', exist_ok=True); n = len(os.listdir('turn')); open(f'turn/{n}', 'w'); print(f'rotating-key-{n}')"

    done = place.run("bad_key", {"command": [sys.executable, "-c", rotating]})

    keys = [request.headers["authorization"] for request in place.lab.requests("openai", "bad_key")]
    assert keys == ["Bearer rotating-key-0", "Bearer rotating-key-1"]
    assert "provider.auth" in done.err
    assert "rotating-key" not in done.err
