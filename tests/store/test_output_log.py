"""The log of what steps print: bounded, resumable after a crash, readable while it is written."""

from pathlib import Path

from failwell.store.output_log import CURRENT, OLD, LogEntry, OutputLog, OutputReader


def entry(text: str, stream: str = "stdout") -> dict[str, object]:
    return {"at": 1.0, "path": "a", "node": "a", "stream": stream, "visit": 1, "attempt": 1, "text": text}


def texts(entries: list[LogEntry]) -> list[str]:
    return [each.text or f"<{each.gap}>" for each in entries]


def test_a_reader_gets_each_entry_once(tmp_path: Path) -> None:
    log, reader = OutputLog(tmp_path), OutputReader(tmp_path)
    assert texts(list(reader.read())) == []

    log.write(entry("one"))
    first = list(reader.read())
    log.write(entry("two"))

    assert texts(first) == ["one"]
    assert texts(list(reader.read())) == ["two"]
    assert texts(list(reader.read())) == []
    log.close()
    reader.close()


def test_a_run_keeps_its_newest_output_and_the_reader_says_that_some_was_dropped(tmp_path: Path) -> None:
    log, early = OutputLog(tmp_path, segment=1_000), OutputReader(tmp_path)
    seen: list[str] = []

    for number in range(60):
        log.write(entry(f"line {number}"))
        seen += texts(list(early.read()))
    late = texts(list(OutputReader(tmp_path).read()))

    assert seen == [f"line {number}" for number in range(60)]
    assert late[0] == "<earlier output was dropped; a run keeps the newest 64 MiB>"
    assert late[-1] == "line 59"
    assert late[1:] == seen[-len(late) + 1 :]
    assert (tmp_path / CURRENT).stat().st_size <= 1_000
    assert (tmp_path / OLD).stat().st_size <= 1_000
    assert (tmp_path / OLD).stat().st_mode & 0o777 == 0o600


def test_half_a_line_of_a_killed_writer_spoils_nothing(tmp_path: Path) -> None:
    log = OutputLog(tmp_path)
    log.write(entry("one"))
    log.close()
    with (tmp_path / CURRENT).open("ab") as file:
        file.write(b'{"at": 1, "te')

    again = OutputLog(tmp_path)
    again.write(entry("two"))
    again.close()

    assert texts(list(OutputReader(tmp_path).read())) == ["one", "two"]


def test_lost_output_is_named_once_there_is_room_again(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    log = OutputLog(folder)

    log.write(entry("lost"))
    folder.mkdir()
    log.write(entry("kept"))
    log.close()

    first, second = texts(list(OutputReader(folder).read()))
    assert first.endswith("bytes were lost: the disk was full>")
    assert second == "kept"


def test_pieces_that_come_together_are_one_entry_and_streams_keep_their_order(tmp_path: Path) -> None:
    log = OutputLog(tmp_path)

    def printed(text: str, at: float, stream: str = "stdout") -> bool:
        return log.add({**entry(text, stream), "at": at})

    assert not printed("first\n", 1.0)
    assert printed("a\n", 1.01)
    assert printed("b\n", 1.02)
    assert printed("error\n", 1.03, "stderr")
    log.flush()
    assert not printed("later\n", 2.0)
    printed("x" * 20_000, 2.01)
    log.flush()
    assert printed("last\n", 2.02)
    log.close()

    seen = texts(list(OutputReader(tmp_path).read()))
    assert seen == ["first\n", "a\nb\n", "error\n", "later\n", "x" * 20_000, "last\n"]


def test_a_damaged_log_is_read_as_far_as_it_makes_sense(tmp_path: Path) -> None:
    lines = [
        b"\xff\xfe\x00",
        b"[1, 2]",
        b'{"segment": "x"}',
        b'{"text": 5}',
        b'{"text": "no step"}',
        b'{"text": "odd", "at": NaN, "path": [1], "stream": 7, "visit": "x", "item": {}}',
        b'{"cut": 5, "file": ""}',
        b'{"cut": -5, "file": "../../../etc/passwd"}',
        b'{"cut": 99999999999999999999, "file": "gone"}',
        b'{"cut": 5, "reason": "it was full"}',
        b'{"lost": 3}',
        b"[" * 100_000,
    ]
    (tmp_path / CURRENT).write_bytes(b"\n".join(lines) + b"\n")
    (tmp_path / "spill").mkdir()

    seen = texts(list(OutputReader(tmp_path).read()))

    assert seen == [
        "no step",
        "odd",
        "<further output was cut: it was full>",
        "<3 bytes were lost: the disk was full>",
    ]
