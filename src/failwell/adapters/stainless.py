"""What clients made by the same generator have in common: openai, groq, together.

They raise subclasses for statuses and for connections. Only their readers of streams raise the root
of their API errors itself, when an event in a stream that was answered with 200 is an error.
"""

from failwell.adapters.extract import Extract


def in_stream(error: BaseException, facts: Extract) -> None:
    """Note that the reply had begun, where the class says so."""
    if type(error).__name__ == "APIError" and facts.status is None:
        facts.in_stream = True
