"""What a script prints is kept within bounds, all of it on disk, and none of it lost."""

import json
import resource
from pathlib import Path
from typing import Any

import pytest

from failwell.processes.capture import Capture, OutputSecrets
from tests.workflows.run.scripting import broke, python, sh, worked


def test_output_up_to_the_limit_is_kept_as_it_is(tmp_path: Path) -> None:
    done = worked(tmp_path, sh("printf 12345; printf 67890 >&2", output_limit=5))

    assert (done.output["stdout"], done.output["stderr"]) == ("12345", "67890")
    assert "stdout_file" not in done.output
    assert not (tmp_path / "spill").exists()


def test_too_much_output_keeps_its_beginning_and_its_end_and_says_what_is_missing(tmp_path: Path) -> None:
    done = worked(tmp_path, python("print('a' * 500 + 'b' * 500, end='')", output_limit=100))

    file = Path(done.output["stdout_file"])
    assert done.output["stdout"] == f"{'a' * 70}\n… [900 bytes cut; all of it is in {file}]\n{'b' * 30}"
    assert file.read_text() == "a" * 500 + "b" * 500
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_both_streams_may_be_too_long(tmp_path: Path) -> None:
    done = worked(tmp_path, sh("printf '%300s' o; printf '%300s' e >&2", output_limit=10))

    assert Path(done.output["stdout_file"]).stat().st_size == 300
    assert Path(done.output["stderr_file"]).stat().st_size == 300
    assert done.output["stdout"].endswith("  o")
    assert done.output["stderr"].endswith("  e")


def test_memory_is_bounded_at_any_volume(tmp_path: Path) -> None:
    volume = 300_000_000
    program = f"import sys\nfor _ in range({volume // 1_000_000}): sys.stdout.write('x' * 1_000_000)"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    done = worked(tmp_path, python(program))

    file = Path(done.output["stdout_file"])
    assert file.stat().st_size == volume
    assert len(done.output["stdout"]) < 1_100_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000
    file.unlink()


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    done = worked(tmp_path, sh(r"printf 'a\377b\303\244'"))

    assert done.output["stdout"] == "a\ufffdbä"


def test_a_script_in_python_prints_utf_8_whatever_the_locale_says(tmp_path: Path) -> None:
    done = worked(tmp_path, python("print('žluť')", env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}))

    assert done.output["stdout"] == "žluť\n"


def test_a_full_disk_cuts_the_file_and_not_the_script(tmp_path: Path) -> None:
    capture = Capture(str(tmp_path / "spill"), limit=10)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))

    try:
        capture.take(b"x" * 100)
        capture.take(b"y" * 100)
        capture.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    why = f"{tmp_path}/spill does not hold all of it: file too large"
    assert capture.text() == f"xxxxxxx\n… [190 bytes cut; {why}]\nyyy"
    assert (tmp_path / "spill").stat().st_size == 50


def test_a_file_that_cannot_be_made_is_not_named_in_the_output(tmp_path: Path) -> None:
    (tmp_path / "spill").write_text("in the way")

    done = worked(tmp_path, sh("printf '%300s' o", output_limit=10))

    assert "stdout_file" not in done.output
    assert "does not hold all of it" in done.output["stdout"]


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_secret_is_masked_wherever_it_is_cut(tmp_path: Path, cut: int) -> None:
    secrets = OutputSecrets()
    secrets.add("hunter2hunter")
    capture = Capture(str(tmp_path / "spill"), limit=8, secrets=secrets)
    text = b"key=hunter2hunter;"

    capture.take(text[:cut])
    capture.take(text[cut:])
    capture.close()

    assert (tmp_path / "spill").read_bytes() == b"key=[redacted];"


def test_a_script_that_prints_more_than_a_pipe_holds_is_not_held_up(tmp_path: Path) -> None:
    program = "import sys; sys.stderr.write('e' * 400_000); sys.stdout.write('o' * 400_000)"

    done = worked(tmp_path, python(program))

    assert (len(done.output["stdout"]), len(done.output["stderr"])) == (400_000, 400_000)


def test_a_script_is_given_nothing_to_read_unless_the_author_says_so(tmp_path: Path) -> None:
    nothing = worked(tmp_path, sh("cat; echo end"))
    empty = worked(tmp_path, sh("cat; echo end", stdin=""))
    some = worked(tmp_path, sh("cat; echo end", stdin="žluť\n" * 100_000))

    assert nothing.output["stdout"] == empty.output["stdout"] == "end\n"
    assert some.output["stdout"] == "žluť\n" * 100_000 + "end\n"


def test_a_script_that_does_not_read_its_input_is_not_disturbed(tmp_path: Path) -> None:
    done = worked(tmp_path, sh("exit 4", stdin="x" * 1_000_000))

    assert done.output["exit_code"] == 4


def test_watchers_hear_what_is_printed_while_the_script_runs(tmp_path: Path) -> None:
    heard: list[tuple[str, ...]] = []

    def note(kind: str, told: dict[str, Any]) -> None:
        heard.append((kind, told["path"], told["stream"], told["text"]))

    worked(tmp_path, sh("echo one; echo two >&2"), note=note)

    assert sorted(heard) == [
        ("node:printed", "build", "stderr", "two\n"),
        ("node:printed", "build", "stdout", "one\n"),
    ]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts handles under /proc")
def test_no_handle_is_left_open(tmp_path: Path) -> None:
    def handles() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    worked(tmp_path, sh("true"))
    before = handles()
    for number in range(3):
        worked(tmp_path / str(number), sh("echo hi", stdin="x"))
        broke(tmp_path / str(number), sh("sleep 1000", timeout=0.01))
        broke(tmp_path / str(number), sh("yes | head -c 3000; sleep 1000", timeout=0.1, output_limit=10))
        broke(tmp_path / str(number), sh("true", working_dir="/nowhere", stdin="x"))

    assert handles() == before


def test_the_output_of_a_script_is_json_that_can_be_stored(tmp_path: Path) -> None:
    done = worked(tmp_path, python(r"print('{\"half\": \"\\ud800\", \"k\\udc00\": 1}')"))

    assert json.loads(json.dumps(done.output, ensure_ascii=False).encode())["half"] == "?"
