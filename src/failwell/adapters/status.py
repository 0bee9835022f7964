"""What an HTTP status alone says, when nothing else is known: the last rung of the rule table."""

from failwell.adapters.classify import classify
from failwell.adapters.extract import Extract


def kind_of_status(status: int) -> str:
    """The kind for a reply of which nothing but its status is known."""
    return classify(Extract(status=status)).rule.kind
