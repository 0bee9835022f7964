"""Small workflows give the results that conductor documents, or differ as the guide says."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.cli.running import failwell
from tests.conductor.suite import GUIDE, Case, cases_of, environment, run_case, topics

_PARTS_WITHOUT_CASES = frozenset({"differences-on-purpose"})


def all_cases() -> list[Case]:
    return [case for topic in topics() for case in cases_of(topic)]


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def sections() -> set[str]:
    return {slug(title) for title in re.findall(r"^## (.+)$", GUIDE.read_text("utf-8"), re.MULTILINE)}


def rows() -> set[str]:
    table = GUIDE.read_text("utf-8").partition("## Differences on purpose")[2]
    return {slug(row) for row in re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)} - {"", "-"}


def test_there_are_many_cases_with_different_titles() -> None:
    titles = [case.title for case in all_cases()]

    assert len(titles) >= 200
    assert len(set(titles)) == len(titles)


def test_every_case_cites_a_section_of_the_guide_and_every_section_has_a_case() -> None:
    cited = {case.cites for case in all_cases()}

    assert cited == sections() - _PARTS_WITHOUT_CASES


def test_every_case_that_differs_names_a_row_of_the_table_and_what_conductor_does() -> None:
    differing = [case for case in all_cases() if case.differs is not None]

    assert {case.differs for case in differing} <= rows()
    assert [case.title for case in all_cases() if (case.conductor is None) != (case.differs is None)] == []


@pytest.mark.parametrize("topic", topics())
def test_every_case_does_what_is_documented(
    topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run_all() -> list[str]:
        wrong: list[str] = []
        for number, case in enumerate(cases_of(topic)):
            for name, value in case.env.items():
                monkeypatch.setenv(name, value)
            problems = await run_case(case, tmp_path / str(number), tmp_path / "store")
            wrong += [f"{case.title}: {problem}" for problem in problems]
        return wrong

    assert asyncio.run(run_all()) == []


COMMANDS = [case for case in all_cases() if case.command is not None]


@pytest.mark.parametrize("case", COMMANDS, ids=[slug(case.title) for case in COMMANDS])
def test_the_command_gives_the_same(case: Case, tmp_path: Path) -> None:
    file = case.write(tmp_path / "case")
    arguments = ["run", str(file), "--quiet", "--store", str(tmp_path / "store"), *(case.command or ())]

    done = failwell(*arguments, env=environment(case))

    assert done.code == case.expect.get("code", 0), done.err
    assert case.expect.get("stderr", "") in done.err
    assert "Traceback" not in done.err
    if "output" in case.expect:
        assert done.data == case.expect["output"]
    else:
        assert done.out == ""
