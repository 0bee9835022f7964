"""Templates and conditions that cannot be parsed."""

from collections.abc import Iterator

from failwell.files.mistakes import Mistake
from failwell.workflow.check.context import Look, error
from failwell.workflow.template.errors import Sort

_HINT = "look for a brace, a quote or an `end…` that is missing"
_HINTS: dict[str, str] = {
    Sort.UNKNOWN_FILTER: "look at the word after `|`: it is no filter",
    Sort.UNKNOWN_TEST: "look at the word after `is`: it is no test",
    Sort.LENGTH: "put the text into a file of its own, and let a script read it",
}


def syntax(look: Look) -> Iterator[Mistake]:
    """Each broken text, with the line inside it."""
    for text in look.texts:
        broken = look.syntax_mistake(text)
        if broken is not None:
            yield error(
                text.template.place,
                f"`{text.field}` cannot be read: {broken}",
                path=text.field,
                hint=_HINTS.get(broken.partition(" on line")[0], _HINT),
            )
