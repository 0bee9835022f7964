"""In data, the name of a member is enough: its value is masked however plain it looks."""

import pytest

from failwell import Fault, describe

PLAIN = (
    "sk-proj-this-must-never-be-seen-anywhere",
    "the-quick-brown-fox",
    "mypassword",
    "my pass phrase with blanks",
    "hunter2",
    "correct horse battery staple",
    "abc def ghi",
    "letmein",
    "geheim",
    "密码",
    "Sommer",
)


@pytest.mark.parametrize(
    "name", ["api_key", "password", "secret", "access_token", "client_secret", "PGPASSWORD"]
)
def test_a_plain_value_under_the_name_of_a_secret_is_masked(name: str) -> None:
    for value in PLAIN:
        report = describe(Fault(kind="provider.auth", message="refused", details={name: value}))

        assert report.details[name] == "[redacted]", value


@pytest.mark.parametrize(
    "value",
    [
        "must be at least 8 characters",
        "your-api-key-here",
        "YOUR_API_KEY",
        "***",
        "missing",
        "/run/secrets/key",
        "",
    ],
)
def test_what_stands_in_for_a_secret_is_shown(value: str) -> None:
    report = describe(Fault(kind="provider.auth", message="refused", details={"api_key": value}))

    assert report.details["api_key"] == value
