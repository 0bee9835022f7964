"""`failwell capabilities`: registered, checked in its own interpreter, configured, switched, given secrets."""

import json
import stat
from pathlib import Path

import pytest

from failwell.jobs.platform import this_machine
from tests.cli.running import Done, failwell
from tests.jobs.workers import is_alive

MANIFEST = """
name = "greeter"
object = "greeting:Greeter"
version = "1.0"
description = "says hello"

[env]
TOKEN = { secret = true }
"""
CODE = """
from dataclasses import dataclass, field

class Greeter:
    version = "1.0"

    @dataclass
    class Config:
        language: str = field(default="en", metadata={"enum": ["en", "de"]})
        loudness: int = field(default=3, metadata={"minimum": 1, "maximum": 9})

    def initialize(self, config): ...

    def execute(self, name): ...
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "greeting.py").write_text(CODE)
    (tmp_path / "greeter.toml").write_text(MANIFEST)
    return tmp_path


def run(home: Path, *arguments: str, given: str = "") -> Done:
    return failwell("capabilities", *arguments, "--store", str(home / "state"), given=given)


def added(home: Path) -> Path:
    done = run(home, "add", str(home / "greeter.toml"))
    assert done.code == 0, done.err
    return home


def test_adding_says_what_to_do_next_and_listing_shows_it(home: Path) -> None:
    done = run(home, "add", str(home / "greeter.toml"))
    listed = run(home, "list")

    assert done.out == (
        "`greeter` is registered; check it with `failwell capabilities check greeter`\n"
        "it needs `TOKEN`: `failwell capabilities secret greeter TOKEN`\n"
    )
    assert listed.out.splitlines() == [
        "name     enabled  runs              needs  description",
        "greeter  yes      greeting:Greeter  -      says hello",
    ]


def test_listing_nothing_says_how_to_begin(home: Path) -> None:
    assert "failwell capabilities add FILE" in run(home, "list").err
    assert run(home, "list", "--json").data == []


def test_adding_twice_must_be_meant(home: Path) -> None:
    added(home)

    again = run(home, "add", str(home / "greeter.toml"))
    meant = run(home, "add", str(home / "greeter.toml"), "--force")

    assert (again.code, meant.code) == (2, 0)
    assert "already registered" in again.err


def test_a_manifest_with_mistakes_is_refused_with_all_of_them(home: Path) -> None:
    (home / "greeter.toml").write_text('object = "nowhere"\ncolour = "red"\n')

    done = run(home, "add", str(home / "greeter.toml"), "--json")

    assert done.code == 2
    assert all(f"`{key}`" in done.error["message"] for key in ("colour", "name", "object"))


@pytest.mark.parametrize("target", ["name", "file"])
def test_checking_loads_it_in_its_own_interpreter_and_tells_what_it_found(home: Path, target: str) -> None:
    added(home)

    done = run(home, "check", "greeter" if target == "name" else str(home / "greeter.toml"), "--json")

    assert done.code == 0, done.err
    assert done.data["actions"] == ["execute"]
    assert done.data["hooks"] == ["initialize"]
    assert done.data["config"] == {"language": "en", "loudness": 3}
    assert done.data["warnings"] == []


def test_checking_what_cannot_be_imported_says_why(home: Path) -> None:
    added(home)
    (home / "greeting.py").write_text("import nothing_like_it\n")

    done = run(home, "check", "greeter")

    assert done.code == 2
    assert "No module named 'nothing_like_it'" in done.err


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import syntax error here\n", "SyntaxError: invalid syntax (greeting.py, line 1)"),
        ("b'\\xff'.decode()\n", "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff"),
        ("{}['missing']\n", "KeyError: 'missing'"),
    ],
)
def test_what_an_import_raised_is_told_in_its_own_words(home: Path, code: str, words: str) -> None:
    (home / "greeting.py").write_text(code)

    done = run(home, "check", str(home / "greeter.toml"))

    assert done.code == 2
    assert words in done.err


def test_a_setting_is_checked_before_it_is_kept(home: Path) -> None:
    added(home)

    good = run(home, "config", "greeter", "language=de", "loudness=7", "--json")
    bad = run(home, "config", "greeter", "language=fr", "loudness=10", "volume=1", "--json")
    after = run(home, "config", "greeter")

    assert good.data == {"id": "greeter", "instance": "greeter", "config": {"language": "de", "loudness": 7}}
    assert bad.code == 2
    assert all(f"`{key}`" in bad.error["message"] for key in ("language", "loudness", "volume"))
    assert after.out == 'language = "de"\nloudness = 7\n'


def lenient(home: Path) -> Path:
    (home / "greeter.toml").write_text(f"config_strict = false\n{MANIFEST}")
    return added(home)


@pytest.mark.acceptance("cjm-substrate 53")
def test_a_lenient_capability_keeps_what_it_knows_and_a_line_names_the_rest(home: Path) -> None:
    lenient(home)

    done = run(home, "config", "greeter", "language=de", "volume=1", "hue=2")
    as_json = run(home, "config", "greeter", "loudness=5", "volume=1", "--json")
    wrong = run(home, "config", "greeter", "loudness=10", "volume=1")

    assert (done.code, done.out) == (0, 'language = "de"\n')
    assert done.err == (
        "warning: `greeter` has no setting `hue`, `volume`; it was dropped;"
        " `failwell capabilities check greeter` shows its settings\n"
    )
    assert as_json.data == {
        "id": "greeter",
        "instance": "greeter",
        "config": {"language": "de", "loudness": 5},
        "left_out": ["volume"],
    }
    assert wrong.code == 2
    assert "`loudness`" in wrong.err


@pytest.mark.acceptance("cjm-substrate 53")
def test_settings_that_a_newer_version_does_not_know_are_told_of_by_check_and_by_whoever_runs_a_job(
    home: Path,
) -> None:
    lenient(home)
    assert run(home, "config", "greeter", "language=de", "loudness=5").err == ""
    (home / "greeting.py").write_text(CODE.replace("loudness", "volume"))

    checked = run(home, "check", "greeter", "--json")
    job = failwell("jobs", "submit", "greeter", "name=x", "--wait", "--store", str(home / "state"))

    words = "dropped from the configuration of 'greeter', because it is not known: `loudness`; "
    assert checked.data["config"] == {"language": "de", "volume": 3}
    assert [one.startswith(words) for one in checked.data["warnings"]] == [True]
    assert (job.code, job.out) == (0, "null\n")
    [told] = [line for line in job.err.splitlines() if "loudness" in line]
    assert told.startswith(f"warning: {words}")


@pytest.mark.acceptance("cjm-substrate 53")
def test_a_workflow_whose_job_loses_settings_says_so_in_one_line(home: Path) -> None:
    lenient(home)
    run(home, "config", "greeter", "loudness=5")
    (home / "greeting.py").write_text(CODE.replace("loudness", "volume"))
    (home / "w.yaml").write_text(WORKFLOW)

    done = failwell("run", str(home / "w.yaml"), "--quiet", "--store", str(home / "state"))

    assert done.code == 0, done.err
    [told] = [line for line in done.err.splitlines() if "loudness" in line]
    assert told == (
        "warning: dropped from the configuration of 'greeter', because it is not known: `loudness`;"
        " `failwell capabilities config greeter` shows the stored settings"
    )
    assert "UnknownConfigWarning" not in done.err


WORKFLOW = """
workflow:
  name: greet
  entry_point: greet
agents:
  - name: greet
    type: job
    job: greeter
    arguments: {name: x}
    routes:
      - to: $end
"""


def test_a_setting_can_be_forgotten(home: Path) -> None:
    added(home)
    run(home, "config", "greeter", "language=de")

    done = run(home, "config", "greeter", "--unset", "language", "--json")

    assert done.data["config"] == {}


def test_a_setting_without_a_value_is_a_mistake(home: Path) -> None:
    added(home)

    done = run(home, "config", "greeter", "language")

    assert done.code == 2
    assert "KEY=VALUE" in done.err


def test_a_secret_is_read_from_stdin_and_never_shown(home: Path) -> None:
    added(home)

    done = run(home, "secret", "greeter", "TOKEN", given="hunter2-hunter2\n")
    shown = run(home, "secret", "greeter", "--json")
    listed = run(home, "list", "--json")

    kept = home / "state" / "secrets.json"
    assert done.out == "TOKEN: set\n"
    assert shown.data == {"id": "greeter", "name": "greeter", "secrets": {"TOKEN": True}}
    assert json.loads(kept.read_text()) == {"greeter": {"TOKEN": "hunter2-hunter2"}}
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "hunter2" not in done.out + shown.out + listed.out


def test_a_secret_on_the_command_line_is_refused(home: Path) -> None:
    added(home)

    done = run(home, "secret", "greeter", "TOKEN=hunter2")

    assert done.code == 2
    assert "hunter2" not in done.err
    assert "stdin" in done.err


def test_a_capability_is_switched_off_and_on(home: Path) -> None:
    added(home)

    off = run(home, "disable", "greeter", "--json")
    again = run(home, "disable", "greeter")
    listed = run(home, "list", "--json")
    on = run(home, "enable", "greeter")

    assert off.data == {"id": "greeter", "instance": "greeter", "enabled": False, "changed": True}
    assert again.out == "`greeter` was disabled already\n"
    assert listed.data[0]["enabled"] is False
    assert on.out == "`greeter` is enabled\n"


def test_a_name_that_nobody_has_is_answered_with_the_nearest(home: Path) -> None:
    added(home)

    for action in ("enable", "disable", "config", "secret", "remove", "check"):
        done = run(home, action, "greter")

        assert done.code == 2
        assert "did you mean `greeter`?" in done.err


def test_removing_forgets_it(home: Path) -> None:
    added(home)

    done = run(home, "remove", "greeter")

    assert done.code == 0
    assert run(home, "list", "--json").data == []


def test_one_broken_manifest_does_not_hide_the_others(home: Path) -> None:
    added(home)
    (home / "state/capabilities/broken.toml").write_text("name = 3\n")

    listed = run(home, "list")

    assert "greeter" in listed.out
    assert "broken: " in listed.out


def test_every_mistake_of_a_manifest_stands_on_a_line_of_its_own(home: Path) -> None:
    keys = ["concurency", "stal_after", "descripton", "verson", "cancel_grase", "inherits", "deflauts"]
    mistakes = "\n".join(f"{key} = 1" for key in keys)
    (home / "bad.toml").write_text(f'name = "x y"\nobject = "greeting"\n{mistakes}\n')

    done = run(home, "check", str(home / "bad.toml"))
    as_json = run(home, "check", str(home / "bad.toml"), "--json")

    lines = done.err.splitlines()
    assert lines[0] == f"error: {home / 'bad.toml'} is not a valid manifest"
    file = home / "bad.toml"
    assert lines[1:4] == [
        f"  {file}:1:8: `name` must be 1 to 64 letters, digits, `_` and `-`, not `x y`",
        f"  {file}:2:10: `object` must be `module:attribute`, not `greeting`",
        f"  {file}:3:1: a manifest has no key `concurency` (did you mean `concurrency`?)",
    ]
    assert lines[9] == f"  {file}:9:1: a manifest has no key `deflauts` (did you mean `defaults`?)"
    assert "characters cut" not in done.err
    assert as_json.error["mistakes"] == [line.strip() for line in lines[1:10]]


@pytest.mark.parametrize(
    ("content", "words", "hint"),
    [
        (None, "there is no manifest ", "hint: give the path of a TOML file"),
        ("name = ", "is not TOML: Invalid value (at end of document)", "hint: correct it at that place"),
    ],
)
def test_a_file_that_is_no_manifest_is_told_with_what_to_do(
    home: Path, content: str | None, words: str, hint: str
) -> None:
    if content is not None:
        (home / "no.toml").write_text(content)

    for action in ("check", "add"):
        done = run(home, action, str(home / "no.toml"))

        assert done.code == 2
        assert words in done.err
        assert done.err.splitlines()[-1] == hint


def test_adding_twice_says_how_it_can_be_meant(home: Path) -> None:
    added(home)

    done = run(home, "add", str(home / "greeter.toml"))

    assert done.err.splitlines()[-1].startswith("hint: replace it with `--force`")


def test_settings_without_a_default_can_be_given_to_the_check(home: Path) -> None:
    (home / "greeting.py").write_text(CODE.replace('default="en", ', ""))

    without = run(home, "check", str(home / "greeter.toml"), "--json")
    with_one = run(home, "check", str(home / "greeter.toml"), "language=de", "--json")
    wrong = run(home, "check", str(home / "greeter.toml"), "language=fr", "--json")

    assert without.error["mistakes"] == ["`language` is missing"]
    assert f"`failwell capabilities check {home / 'greeter.toml'} language=VALUE`" in without.error["hint"]
    assert with_one.data["config"] == {"language": "de", "loudness": 3}
    assert wrong.error["mistakes"] == ["`language` must be one of 'en', 'de', not 'fr'"]
    assert not (home / "state" / "instances.json").exists()


@pytest.mark.parametrize("target", ["os:path", "greeting:TEXT", "greeting:Nothing"])
def test_what_nobody_could_call_cannot_be_loaded(home: Path, target: str) -> None:
    (home / "greeting.py").write_text("TEXT = 'x'\n\nclass Nothing:\n    def initialize(self, config): ...\n")
    (home / "empty.toml").write_text(f'name = "empty"\nobject = "{target}"\n')

    done = run(home, "check", str(home / "empty.toml"))

    assert done.code == 2
    assert f"has nothing to call: `{target}` must be a function" in done.err


def test_what_cannot_run_here_is_said_by_check_add_list_and_submit(home: Path) -> None:
    (home / "far.toml").write_text(
        'name = "far"\nobject = "greeting:Greeter"\n[resources]\nplatforms = ["linux-arm64", "win-arm64"]\n'
        if this_machine().platform != "linux-arm64"
        else 'name = "far"\nobject = "greeting:Greeter"\n[resources]\nplatforms = ["linux-x64"]\n'
    )

    checked = run(home, "check", str(home / "far.toml"), "--json")
    new = run(home, "add", str(home / "far.toml"))
    listed = run(home, "list")
    as_json = run(home, "list", "--json")
    job = failwell("jobs", "submit", "far", "name=x", "--wait", "--store", str(home / "state"), "--json")

    assert checked.error["kind"] == job.error["kind"] == "tool.unavailable"
    assert f"this machine is `{this_machine().platform}`" in checked.error["message"]
    assert "correct `[resources]` in its manifest" in checked.error["hint"]
    assert (new.code, "warning: it cannot run here: it runs on" in new.out) == (0, True)
    assert "(not here)" in listed.out
    assert [
        f"this machine is `{this_machine().platform}`" in one for one in as_json.data[0]["missing_here"]
    ] == [True]


def test_a_misspelt_accelerator_is_answered_with_the_nearest(home: Path) -> None:
    (home / "gpu.toml").write_text(
        'name = "gpu"\nobject = "m:f"\n[resources]\ngpu = true\naccelerators = ["cudda"]\n'
    )

    done = run(home, "add", str(home / "gpu.toml"))

    assert done.code == 2
    assert (
        "`resources.accelerators` must be `cuda`, `rocm` or `mps`, not 'cudda'; did you mean `cuda`?"
        in done.err
    )


def test_every_instance_is_listed_with_its_id(home: Path) -> None:
    added(home)
    run(home, "config", "greeter", "language=de", "--instance", "two")
    run(home, "disable", "greeter", "--instance", "two")

    listed = run(home, "list")
    rows = run(home, "list", "--json").data

    assert [line.split()[:3] for line in listed.out.splitlines()] == [
        ["name", "instance", "enabled"],
        ["greeter", "greeter", "yes"],
        ["greeter", "two", "no"],
    ]
    assert [(row["id"], row["name"], row["config"]) for row in rows] == [
        ("greeter", "greeter", {}),
        ("two", "greeter", {"language": "de"}),
    ]


FETCHING = """
import os
from failwell.capability import CapabilityTransientError, progress

class Fetching:
    def initialize(self, config):
        self.place = config["place"]

    def prefetch(self):
        progress(0.5, "half of the model")
        if not os.path.isdir(self.place):
            raise CapabilityTransientError("the mirror is away")
        with open(self.place + "/model", "w") as file:
            file.write(str(os.getpid()))

    def execute(self):
        return os.path.exists(self.place + "/model")
"""


def test_prefetch_fetches_the_models_of_a_capability_before_its_first_job(home: Path) -> None:
    (home / "fetching.py").write_text(FETCHING)
    (home / "fetching.toml").write_text('name = "fetching"\nobject = "fetching:Fetching"\n')
    run(home, "add", str(home / "fetching.toml"))
    run(home, "config", "fetching", f"place={home / 'models'}")

    failed = run(home, "prefetch", "fetching")
    (home / "models").mkdir()
    done = run(home, "prefetch", "fetching")
    result = failwell("jobs", "submit", "fetching", "--wait", "--store", str(home / "state"))

    assert (failed.code, failed.out) == (1, "")
    assert "the mirror is away" in failed.err
    assert (done.code, done.out) == (0, "`fetching` has its models and data\n")
    assert "50% half of the model" in done.err
    assert result.out == "true\n"
    assert not is_alive(int((home / "models" / "model").read_text()))


def test_prefetch_says_that_a_capability_has_nothing_to_fetch(home: Path) -> None:
    added(home)

    assert "has no method `prefetch`" in run(home, "prefetch", "greeter").out
    assert run(home, "prefetch", "greeter", "--json").data == {
        "id": "greeter",
        "instance": "greeter",
        "prefetched": False,
    }
    assert run(home, "prefetch", "gretter").code == 2
