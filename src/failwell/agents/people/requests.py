"""What a person can be asked, and how the question can end.

A request is data: an answerer shows it, the queue checks the answer with `problem_with`. Texts may come from a model or a
tool. `to_dict` redacts them; whoever shows them must escape them too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from failwell.errors.frozen import frozen
from failwell.errors.redact import redact_text, redact_value

_LONGEST_ANSWER = 64 * 1024
_WORDS = {"allow": True, "yes": True, "true": True, "deny": False, "no": False, "false": False}


@frozen
class Option:
    """One answer that can be chosen."""

    value: str
    label: str = ""

    def to_dict(self) -> dict[str, str]:
        """The option as JSON."""
        return {"value": self.value, "label": self.label or self.value}


@frozen
class Answer:
    """A person's answer. What `value` holds depends on the request."""

    value: Any = field(repr=False)
    by: str = ""
    """Who answered."""
    comment: str = ""
    payload: Any = field(default=None, repr=False)
    """More input, where the chosen option takes it."""


@frozen
class Refusal:
    """A person closed the question without an answer."""

    by: str = ""
    reason: str = ""


@frozen
class Timeout:
    """Nobody answered in time."""

    seconds: float


Reply: TypeAlias = Answer | Refusal | Timeout
"""How a question ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The base of all requests. Each is a frozen record."""

    type: ClassVar[str]
    """The stable name of the request, in JSON and in the audit."""
    is_secret: ClassVar[bool] = False
    """Whether the answer is a secret: it is then neither recorded nor shown."""
    text: str
    """The question."""
    id: str = ""
    """Unique among the questions of a process. The queue makes one if it is empty."""
    scope: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Where it belongs: `run`, `node`, `session`, `turn`, `tool`."""

    def problem_with(self, answer: Answer) -> str | None:
        """Why `answer` does not fit this request, or `None`."""
        raise NotImplementedError

    def value_of(self, text: str) -> Any:
        """The value that somebody means who can only write text; `text` itself where it means nothing else."""
        return text

    @property
    def values(self) -> tuple[str, ...]:
        """The texts that it can be answered with; empty if any will do. The first one is the cautious one."""
        return ()

    def fields(self) -> dict[str, Any]:
        """What this type of request has besides its text."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """The request as JSON, redacted."""
        facts: dict[str, Any] = {"id": self.id, "type": self.type, "text": redact_text(self.text)}
        if self.scope:
            facts["scope"] = redact_value(dict(self.scope))
        if self.values:
            facts["values"] = redact_value(self.values)
        return {**facts, **self.fields()}


@dataclass(frozen=True, slots=True, kw_only=True)
class YesNo(Request):
    """A request that is answered with `True` or `False`."""

    def problem_with(self, answer: Answer) -> str | None:
        """Why `answer` does not fit."""
        return None if isinstance(answer.value, bool) else "answer with true or false"

    def value_of(self, text: str) -> Any:
        """`allow`, `yes` and `true` are a yes; `deny`, `no` and `false` are a no."""
        return _WORDS.get(text.strip().lower(), text)

    @property
    def values(self) -> tuple[str, ...]:
        """The two words."""
        return ("deny", "allow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve(YesNo):
    """May this be done? The answer is `True` or `False`."""

    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What is to be done, for people who want to see it: a tool and its redacted arguments, a failure."""

    type: ClassVar[str] = "approve"

    def fields(self) -> dict[str, Any]:
        """The details."""
        return {"details": redact_value(dict(self.details))} if self.details else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm(YesNo):
    """Is this meant? The answer is `True` or `False`."""

    type: ClassVar[str] = "confirm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Request):
    """A question with a text as the answer."""

    default: str | None = None
    """What an empty line stands for."""
    multiline: bool = False

    type: ClassVar[str] = "ask"

    def problem_with(self, answer: Answer) -> str | None:
        """Why `answer` does not fit."""
        return _text(answer)

    def fields(self) -> dict[str, Any]:
        """The default and the form of the answer."""
        default = {} if self.default is None else {"default": redact_text(self.default)}
        return {**default, "multiline": self.multiline}


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Request):
    """A choice. The answer is the value of one option."""

    options: tuple[Option, ...]

    type: ClassVar[str] = "select"

    def problem_with(self, answer: Answer) -> str | None:
        """Why `answer` does not fit."""
        return None if answer.value in self.values else f"write one of {', '.join(self.values)}"

    @property
    def values(self) -> tuple[str, ...]:
        """The values of the options."""
        return tuple(option.value for option in self.options)

    def fields(self) -> dict[str, Any]:
        """The options."""
        return {"options": [option.to_dict() for option in self.options]}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode(YesNo):
    """Sign in elsewhere: open `url`, enter `code`. The answer is `True` once that is done; it never holds a token."""

    url: str
    code: str
    expires_at: float | None = None
    """Seconds since 1970."""

    type: ClassVar[str] = "auth.device_code"

    def fields(self) -> dict[str, Any]:
        """Where to sign in. The code is worthless without the account of the person who enters it."""
        expiry = {} if self.expires_at is None else {"expires_at": self.expires_at}
        return {"url": redact_text(self.url), "code": self.code, **expiry}


@dataclass(frozen=True, slots=True, kw_only=True)
class Password(Request):
    """A secret. It is not recorded, not shown, and masked from then on wherever it turns up."""

    type: ClassVar[str] = "auth.password"
    is_secret: ClassVar[bool] = True

    def problem_with(self, answer: Answer) -> str | None:
        """Why `answer` does not fit."""
        return _text(answer) or (None if answer.value else "the secret is empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant(YesNo):
    """May a stage call this tool once, with these arguments? The answer is `True` or `False`."""

    tool: str
    stage: str
    digest: str = ""
    """Digest of the arguments: the grant is for this call and no other."""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    type: ClassVar[str] = "grant"

    def fields(self) -> dict[str, Any]:
        """The call that the grant is for."""
        details = {"details": redact_value(dict(self.details))} if self.details else {}
        return {"tool": self.tool, "stage": self.stage, "digest": self.digest, **details}


def _text(answer: Answer) -> str | None:
    if not isinstance(answer.value, str):
        return "answer with a text"
    return None if len(answer.value) <= _LONGEST_ANSWER else f"the answer is longer than {_LONGEST_ANSWER}"
