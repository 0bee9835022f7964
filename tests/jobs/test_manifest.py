"""Manifests, ids of instances, and the registry that keeps what is registered."""

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from failwell.capability import CapabilityConfigError, CapabilityInputError, CapabilityNotLoadedError
from failwell.errors.report import TracebackPolicy
from failwell.files.suggestions import not_one_of
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.manifest import Manifest, Resources, Variable, check_instance, is_temporary, new_instance
from failwell.jobs.manifest_file import parse_manifest, read_manifest
from failwell.jobs.settings_schema import TYPES
from failwell.jobs.workers.startup import manifest_differences

FULL = """
name = "transcribe"
object = "transcriber:Transcriber"
venv = "env"
path = ["lib"]
version = "2.0"
description = "speech to text"
inherit = ["HF_*"]
concurrency = 2
stall_after = 90
cancel_grace = 1.5
stop_grace = 4
traceback = "repr_only"

[env]
MODEL_DIR = "/models"
HF_TOKEN = { secret = true, required = true }

[resources]
gpu = true
accelerators = ["cuda"]

[defaults]
model = "large"

[config.properties.model]
type = "string"
enum = ["small", "large"]
"""


def a_file(folder: Path, text: str = FULL, name: str = "manifest.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def refusal(written: dict[str, Any]) -> CapabilityConfigError:
    with pytest.raises(CapabilityConfigError) as caught:
        parse_manifest(written)
    return caught.value


def test_a_full_manifest_is_read_as_it_is_written(tmp_path: Path) -> None:
    made = read_manifest(a_file(tmp_path))

    assert (made.name, made.object, made.version) == ("transcribe", "transcriber:Transcriber", "2.0")
    assert made.python == str(tmp_path / "env/bin/python")
    assert made.env == (
        Variable(name="MODEL_DIR", value="/models"),
        Variable(name="HF_TOKEN", secret=True, required=True),
    )
    assert made.resources == Resources(gpu=True, accelerators=("cuda",))
    assert (made.concurrency, made.stall_after, made.cancel_grace, made.stop_grace) == (2, 90, 1.5, 4)
    assert made.config == {"properties": {"model": {"type": "string", "enum": ["small", "large"]}}}
    assert made.defaults == {"model": "large"}
    assert made.traceback is TracebackPolicy.REPR_ONLY
    assert (made.path, made.directory) == (("lib",), str(tmp_path))


def test_the_least_manifest_runs_with_the_hosts_interpreter_beside_its_file() -> None:
    made = parse_manifest({"name": "x", "object": "m:f"})

    assert (made.python, made.path, made.concurrency) == (sys.executable, (".",), 1)


def test_every_mistake_is_named_at_once() -> None:
    error = refusal(
        {
            "name": "has a space",
            "python": "python3",
            "venv": "env",
            "colour": "red",
            "concurrency": 0,
            "stall_after": "long",
            "path": "lib",
            "resources": {"gpu": "yes", "vram": 3},
            "env": {"A": 1, "B": {"secret": True, "value": "x"}},
            "config": [],
        }
    )

    assert error.fields_invalid == [
        "colour", "concurrency", "config", "env.A", "env.B", "name", "object", "path", "resources.gpu",
        "resources.vram", "stall_after", "venv",
    ]  # fmt: skip


def test_a_policy_that_does_not_exist_is_refused_with_the_nearest() -> None:
    error = refusal({"name": "x", "object": "m:f", "traceback": "fll"})

    assert error.fields_invalid == ["traceback"]
    assert "must be one of full, repr_only, none, strict" in str(error)


def test_a_policy_in_code_is_checked_where_it_is_written() -> None:
    written: Any = "everything"

    with pytest.raises(
        CapabilityInputError, match="`traceback` must be one of full, repr_only, none, strict"
    ):
        Manifest(name="x", object="m:f", traceback=written)


@pytest.mark.parametrize("target", ["", "module", "module:", ":f", "mod ule:f", "a:b c"])
def test_a_target_must_name_a_module_and_something_in_it(target: str) -> None:
    assert refusal({"name": "x", "object": target}).fields_invalid == ["object"]


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe", None])
def test_a_file_that_is_no_manifest_is_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(CapabilityConfigError, match=r"broken\.toml"):
        read_manifest(path)


def test_every_mistake_of_a_file_is_named_with_its_line_and_column(tmp_path: Path) -> None:
    text = FULL.replace('"small", "large"', '"small"').replace("concurrency = 2", "concurrency = 0")
    path = a_file(tmp_path, text.replace('type = "string"', 'type = "strin"').replace("gpu =", "gpus ="))

    with pytest.raises(CapabilityConfigError) as caught:
        read_manifest(path)

    lines = str(caught.value).replace(f"; {path}", f"\n{path}").split("\n")
    assert [lines[0].partition("manifest: ")[2], *lines[1:]] == [
        f"{path}:9:15: `concurrency` must be a whole number at least 1",
        f"{path}:20:1: `resources` has no key `gpus` (did you mean `gpu`?)",
        f"{path}:27:8: `config.properties.model.type` {not_one_of('strin', TYPES)}",
    ]
    assert caught.value.fields_invalid == ["concurrency", "config.properties.model.type", "resources.gpus"]


@pytest.mark.acceptance("cjm-substrate 57")
@pytest.mark.parametrize("instance", ["with space", "x" * 65, "", "a/b", "ä"])
def test_an_id_that_is_none_is_refused(instance: str) -> None:
    with pytest.raises(CapabilityInputError) as caught:
        check_instance(instance)

    assert caught.value.fields_invalid == ["instance"]


@pytest.mark.acceptance("cjm-substrate 57")
@pytest.mark.parametrize("name", ["asr", "x" * 64])
def test_an_id_made_for_one_run_is_the_name_and_six_digits(name: str) -> None:
    made = new_instance(name)

    head, _, digits = made.rpartition("-")
    assert name.startswith(head)
    assert len(digits) == 6
    assert set(digits) <= set("0123456789abcdef")
    assert check_instance(made) == made
    assert is_temporary(name, made)
    assert not is_temporary(name, name)


def test_code_that_is_not_what_the_manifest_says_is_told() -> None:
    made = parse_manifest({"name": "x", "object": "m:f", "version": "1", "config": {"type": "object"}})

    assert (
        len(manifest_differences(made, {"version": "2", "schema": {"type": "object", "properties": {}}})) == 2
    )
    assert manifest_differences(made, {"version": "1", "schema": {"type": "object"}}) == []


# ------------------------------------------------------------------ the registry


def test_what_is_added_is_there_for_the_next_who_looks(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()

    CapabilityRegistry(tmp_path / "state").add(a_file(source))

    other = CapabilityRegistry(tmp_path / "state")
    assert other.names() == ["transcribe"]
    assert other.manifest("transcribe") == read_manifest(source / "manifest.toml")


def test_a_second_of_the_same_name_must_be_meant(tmp_path: Path) -> None:
    registry = CapabilityRegistry(tmp_path / "state")
    file = a_file(tmp_path)
    registry.add(file)

    with pytest.raises(CapabilityInputError, match="already registered"):
        registry.add(file)

    assert registry.add(file, replace=True).name == "transcribe"


def test_what_is_not_registered_is_not_loaded(tmp_path: Path) -> None:
    with pytest.raises(CapabilityNotLoadedError):
        CapabilityRegistry(tmp_path).manifest("../secrets")


@pytest.mark.acceptance("cjm-substrate 40")
def test_a_switch_is_kept_and_says_whether_it_changed_anything(tmp_path: Path) -> None:
    registry = CapabilityRegistry(tmp_path / "state")
    registry.add(a_file(tmp_path))

    changes = [registry.set_enabled("transcribe", on) for on in (False, False, True, False)]

    assert changes == [True, False, True, True]
    assert not CapabilityRegistry(tmp_path / "state").is_enabled("transcribe")
    assert CapabilityRegistry(tmp_path / "state").is_enabled("another")


@pytest.mark.acceptance("cjm-substrate 57")
def test_settings_of_an_id_that_nobody_chose_are_not_kept(tmp_path: Path) -> None:
    registry = CapabilityRegistry(tmp_path / "state")
    registry.add(a_file(tmp_path))
    brief = new_instance("transcribe")

    registry.set_config(brief, {"model": "small"}, capability="transcribe")
    registry.set_config("second", {"model": "small"}, capability="transcribe")

    assert (registry.config(brief), registry.config("second")) == ({}, {"model": "small"})


def test_secrets_are_kept_where_only_their_owner_can_read(tmp_path: Path) -> None:
    registry = CapabilityRegistry(tmp_path / "state")
    registry.add(a_file(tmp_path))

    registry.set_secret("transcribe", "HF_TOKEN", "hf_123")

    file = tmp_path / "state" / "secrets.json"
    assert registry.secrets("transcribe") == {"HF_TOKEN": "hf_123"}
    assert registry.secret_names("transcribe") == ["HF_TOKEN"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_only_declared_secrets_are_taken(tmp_path: Path) -> None:
    registry = CapabilityRegistry(tmp_path / "state")
    registry.add(a_file(tmp_path))

    with pytest.raises(CapabilityInputError) as caught:
        registry.set_secret("transcribe", "HF_TOKNE", "x")

    assert "`HF_TOKEN`" in str(caught.value)
    assert registry.secret_names("transcribe") == []


def test_what_is_removed_takes_its_settings_and_secrets_along(tmp_path: Path) -> None:
    registry = CapabilityRegistry(tmp_path / "state")
    registry.add(a_file(tmp_path))
    registry.set_secret("transcribe", "HF_TOKEN", "hf_123")
    registry.set_enabled("transcribe", False)

    registry.remove("transcribe")

    assert registry.names() == []
    assert json.loads((tmp_path / "state" / "secrets.json").read_text()) == {}
    assert registry.is_enabled("transcribe")
    assert list((tmp_path / "state" / "capabilities").iterdir()) == []


def test_a_file_that_was_broken_by_hand_is_named_and_not_overwritten(tmp_path: Path) -> None:
    registry = CapabilityRegistry(tmp_path)
    (tmp_path / "instances.json").write_text("{")

    with pytest.raises(CapabilityConfigError, match=r"instances\.json"):
        registry.set_enabled("x", False)

    assert (tmp_path / "instances.json").read_text() == "{"


WRITER = """
import sys
from failwell.jobs.capabilities import CapabilityRegistry

registry = CapabilityRegistry(sys.argv[1])
for number in range(60):
    registry.set_config(f"{sys.argv[2]}_{number}", {"a": number}, capability="transcribe")
    registry.set_secret("transcribe", f"{sys.argv[2].upper()}_{number}", "a secret")
"""


def test_whoever_writes_at_the_same_time_loses_nothing(tmp_path: Path) -> None:
    registry = CapabilityRegistry(tmp_path / "state")
    names = [f"{one}_{number}" for one in ("ONE", "TWO") for number in range(60)]
    secrets = "".join(f"{name} = {{ secret = true }}\n" for name in names)
    registry.add(a_file(tmp_path, FULL.replace("[env]\n", f"[env]\n{secrets}")))

    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "state"), one])
        for one in ("one", "two")
    ]
    codes = [writer.wait(60) for writer in writers]

    assert codes == [0, 0]
    assert registry.instances("transcribe") == ["transcribe", *sorted(name.lower() for name in names)]
    assert registry.secret_names("transcribe") == sorted(names)


def test_everything_in_the_registry_is_its_owners_alone(tmp_path: Path) -> None:
    registry = CapabilityRegistry(tmp_path / "state")
    registry.add(a_file(tmp_path))
    registry.set_enabled("transcribe", False)
    registry.set_secret("transcribe", "HF_TOKEN", "hf_123")

    files = [one for one in (tmp_path / "state").rglob("*") if one.is_file()]

    assert len(files) == 5
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}


def test_switching_to_what_it_is_already_writes_nothing(tmp_path: Path) -> None:
    registry = CapabilityRegistry(tmp_path / "state")
    registry.set_enabled("transcribe", False)
    before = (tmp_path / "state" / "instances.json").stat().st_ino

    registry.set_enabled("transcribe", False)

    assert (tmp_path / "state" / "instances.json").stat().st_ino == before
