"""How asking a person fails."""

from collections.abc import Mapping
from typing import Any

from failwell.errors.fault import Fault


class InteractionRequired(Fault, kind="session.interaction_required"):
    """A person must answer, and nobody can be asked here."""

    question: Mapping[str, Any]
    """The request as JSON, redacted."""

    def summary(self) -> str:
        """What was asked."""
        return f"a person must answer, and nobody can be asked here: {self.question.get('text', '')}"


class InteractionClosed(Fault, kind="session.interaction_closed"):
    """The question was answered, timed out or was withdrawn before this answer came."""

    question: str
    """The id of the question."""
    reason: str

    def summary(self) -> str:
        """Which question, and why it takes no answer."""
        return f"the question `{self.question}` takes no answer: {self.reason}"


class AnswerInvalid(Fault, kind="validation.input_invalid"):
    """The answer does not fit the question, which stays open."""

    question: str
    problem: str

    def summary(self) -> str:
        """What the answer must be."""
        return f"this does not answer `{self.question}`: {self.problem}"
