"""Questions to people: typed requests, one queue, and answerers at a terminal, over HTTP or nowhere.

Code that needs a person asks an `InteractionQueue`:

    reply = await queue.ask(Approve(text="call `send_mail`?", details={...}, scope={"run": run}), within=60)

`reply` is an `Answer` (its `value` is a bool for `Approve`, `Confirm`, `Grant` and `DeviceCode`, a text for `Ask`, `Select` and
`Password`), a `Refusal` (closed without an answer), or a `Timeout`. Only `Answer(value=True)` is a yes. Where nobody can be asked,
`ask` raises `InteractionRequired` (`session.interaction_required`) and nothing has happened.

The oldest question is shown to every answerer; the first answer wins and the others are dismissed. `queue.answer(id, Answer(...))`
answers an open question from elsewhere; a late one is refused with `InteractionClosed` (`session.interaction_closed`). An answerer has a `name`
and `async def answer(request) -> Answer | Refusal | None`; when it fails, the question stays open for the others. `observe` receives every event
before its effect, for the audit.

Example:
    >>> import asyncio
    >>> from failwell.agents.people import Answer, Approve, InteractionQueue
    >>> class Agreeable:
    ...     name = "test"
    ...     async def answer(self, request):
    ...         return Answer(value=True, by="me")
    >>> asyncio.run(InteractionQueue(Agreeable()).ask(Approve(text="continue?"))).by
    'me'
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.agents.people.queue import Answerer as Answerer
    from failwell.agents.people.queue import AnswerInvalid as AnswerInvalid
    from failwell.agents.people.queue import InteractionClosed as InteractionClosed
    from failwell.agents.people.queue import InteractionEvent as InteractionEvent
    from failwell.agents.people.queue import InteractionQueue as InteractionQueue
    from failwell.agents.people.queue import InteractionRequired as InteractionRequired
    from failwell.agents.people.requests import Answer as Answer
    from failwell.agents.people.requests import Approve as Approve
    from failwell.agents.people.requests import Ask as Ask
    from failwell.agents.people.requests import Confirm as Confirm
    from failwell.agents.people.requests import DeviceCode as DeviceCode
    from failwell.agents.people.requests import Grant as Grant
    from failwell.agents.people.requests import Option as Option
    from failwell.agents.people.requests import Password as Password
    from failwell.agents.people.requests import Refusal as Refusal
    from failwell.agents.people.requests import Request as Request
    from failwell.agents.people.requests import Select as Select
    from failwell.agents.people.requests import Timeout as Timeout
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.agents.people.queue": (
                "AnswerInvalid Answerer InteractionClosed InteractionEvent InteractionQueue "
                "InteractionRequired"
            ),
            "failwell.agents.people.requests": (
                "Answer Approve Ask Confirm DeviceCode Grant Option Password Refusal Request Select Timeout"
            ),
        },
    )
