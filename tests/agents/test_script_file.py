"""The file of a scripted model: what it may hold, and what is said about mistakes."""

from pathlib import Path

import pytest

from failwell.agents.scripted_model import ScriptedCall, read_script
from failwell.errors.faults import Validation


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "replies.yaml"
    path.write_text(text)
    return path


def test_replies_belong_to_all_agents_or_to_one(tmp_path: Path) -> None:
    script = read_script(
        _file(
            tmp_path,
            "replies: [{text: hello}]\n"
            "agents:\n"
            "  planner:\n"
            "    - tool_calls: [{name: search, arguments: {q: sky}}]\n"
            "    - {fail: provider.rate_limited, retry_after: 2}\n"
            "    - {json: {a: [1]}, usage: {input_tokens: 3}}\n"
            "    - {text: cut, finish: length}\n",
        )
    )

    calls, failure, answer, cut = script.replies_for("planner")
    assert script.replies_for("writer")[0].text == "hello"
    assert calls.tool_calls == (ScriptedCall(name="search", arguments={"q": "sky"}),)
    assert (failure.fail, failure.retry_after) == ("provider.rate_limited", 2)
    assert (answer.text, answer.usage) == ('{"a": [1]}', {"input_tokens": 3})
    assert cut.finish == "length"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("replies: [{txet: hello}]", "did you mean `text`?"),
        ("replies: [{}]", "a reply needs `text`, `json`, `tool_calls` or `fail`"),
        ("replies: [{fail: provider.rate_limted}]", "provider.rate_limted"),
        ("replies: [{text: a, retry_after: 2}]", "`retry_after` belongs to a reply with `fail`"),
        ("replies: [{text: a, fail: provider.auth}]", "cannot have `text` and `fail` together"),
        ("agents: {a: [{tool_calls: []}]}", "must not be empty"),
        ("replies: [", "replies.yaml"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(Validation) as caught:
        read_script(_file(tmp_path, text))

    assert words in str(caught.value)
    assert "replies.yaml" in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Validation, match=r"nowhere\.yaml .* no such file"):
        read_script(tmp_path / "nowhere.yaml")
