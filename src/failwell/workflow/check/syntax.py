"""Templates and conditions that cannot be parsed."""

from collections.abc import Iterator

from failwell.workflow.check.look import Look, error
from failwell.workflow.mistakes import Mistake


def syntax(look: Look) -> Iterator[Mistake]:
    """Each broken text, with the line inside it."""
    for text in look.texts:
        broken = look.syntax_mistake(text)
        if broken is not None:
            yield error(
                text.template.place,
                f"`{text.field}` cannot be read: {broken}",
                path=text.field,
                hint="look for a brace, a quote or an `end…` that is missing",
            )
