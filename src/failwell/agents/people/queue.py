"""One queue of questions to people: first in, first out. Several answerers may answer; the first answer wins.

All of it runs in one event loop.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Protocol

from failwell.agents.people.requests import Answer, Refusal, Reply, Request, Timeout
from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.suppress import call_hook, catch, catch_async, record_suppressed, suppressed
from failwell.errors.fault import Fault
from failwell.errors.frozen import frozen
from failwell.errors.redact import redact_value, register_secret


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


if TYPE_CHECKING:
    from asyncio import Future, Task

_CLOSED_IDS = 1_000
"""Closed questions that are remembered, so that a late answer is told why it is late."""


class Answerer(Protocol):
    """Shows questions to somebody."""

    @property
    def name(self) -> str:
        """Who answers, for the record: `terminal`, `http`."""
        ...

    def answer(self, request: Request) -> Awaitable[Answer | Refusal | None]:
        """Show `request` and wait for the answer; `None` if none will come. Cancelled when it was answered elsewhere.

        Raises:
            InteractionRequired: nobody is here, and waiting makes no sense. The question ends with it.
            Exception: anything else is recorded; the question stays open for the other answerers.
        """
        ...


@frozen
class InteractionEvent:
    """Something that happened to a question, for the record. It holds no secret."""

    type: str
    """`raised`, `answered`, `refused`, `timed_out`, `withdrawn`, `required`, `answerer_failed` or `late`."""
    request: Mapping[str, Any]
    """The request as JSON, redacted."""
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])


class InteractionQueue:
    """Questions that wait for a person.

    Only the oldest question is shown. An answer by id (`answer`) is taken for every question that is open.

    Args:
        answerers: Who is asked. Without one, every question fails with `InteractionRequired`.
        clock: Measures time-outs.
        timeout: Seconds for which a question is shown, unless `ask` names others; `None` waits.
        observe: Called with each event before its effect. What it raises ends the question: what cannot be recorded
            is not acted upon.
        new_id: Makes the ids of questions that have none.
    """

    def __init__(
        self,
        *answerers: Answerer,
        clock: Clock = SYSTEM_CLOCK,
        timeout: float | None = None,
        observe: Callable[[InteractionEvent], object] | None = None,
        new_id: Callable[[str], str] | None = None,
    ) -> None:
        self._answerers = list(answerers)
        self._clock = clock
        self._timeout = timeout
        self.observe = observe
        """Called with each event; may be set until the first question."""
        self._new_id = new_id or _random_id
        self._open: OrderedDict[str, _Question] = OrderedDict()
        self._closed: OrderedDict[str, str] = OrderedDict()

    @property
    def pending(self) -> tuple[Request, ...]:
        """The open questions, the oldest first. The first one is shown."""
        return tuple(question.request for question in self._open.values())

    @property
    def has_answerers(self) -> bool:
        """Whether anybody can be asked."""
        return bool(self._answerers)

    def attach(self, answerer: Answerer) -> None:
        """Ask `answerer` too; it is shown the question that is open now."""
        self._answerers.append(answerer)
        first = next(iter(self._open.values()), None)
        if first is not None and first.is_shown:
            self._show_to(first, answerer)

    async def ask(self, request: Request, *, within: float | None = None) -> Reply:
        """Ask a person, and wait for the end of the question. Cancelling withdraws it.

        Args:
            request: The question.
            within: Seconds for which it is shown; then it ends with `Timeout`.

        Raises:
            InteractionRequired: nobody can be asked here.
            ValueError: a question with this id is open, or the time-out is not positive.
        """
        from asyncio import get_running_loop

        seconds = self._timeout if within is None else within
        if seconds is not None and not seconds > 0:
            raise ValueError(f"a time-out is positive, not {seconds}")
        if not request.id:
            request = replace(request, id=self._new_id(request.type))
        if request.id in self._open:
            raise ValueError(f"a question with the id `{request.id}` is open")
        self._record("raised", request)
        if not self._answerers:
            self._record("required", request)
            self._note_closed(request.id, "nobody could be asked")
            raise InteractionRequired(question=request.to_dict())
        question = _Question(request, get_running_loop().create_future(), seconds)
        self._open[request.id] = question
        self._show_first()
        try:
            return await question.future
        finally:
            if question.request.id in self._open:
                # The requester was cancelled.
                self._close(question, "it was withdrawn")
                self._record("withdrawn", request)

    def answer(self, question: str, answer: Answer | Refusal) -> None:
        """Answer an open question by its id, whichever answerers are asked.

        Raises:
            InteractionClosed: it has ended, there never was one, or the answer could not be recorded.
            AnswerInvalid: the answer does not fit; the question stays open.
        """
        entry = self._open.get(question)
        if entry is None:
            reason = self._closed.get(question, "there is no such question")
            if question in self._closed:
                self._record_late(question, answer.by, reason)
            raise InteractionClosed(question=question, reason=reason)
        if isinstance(answer, Answer):
            problem = entry.request.problem_with(answer)
            if problem is not None:
                raise AnswerInvalid(question=question, problem=problem)
        self._settle(entry, answer)
        if self._closed.get(question) == _UNRECORDED:
            raise InteractionClosed(question=question, reason=_UNRECORDED)

    def _show_first(self) -> None:
        first = next(iter(self._open.values()), None)
        if first is None or first.is_shown:
            return
        first.is_shown = True
        if first.seconds is not None:
            from asyncio import get_running_loop

            first.timer = get_running_loop().create_task(self._time_out(first, first.seconds))
        for answerer in self._answerers:
            self._show_to(first, answerer)

    def _show_to(self, question: "_Question", answerer: Answerer) -> None:
        from asyncio import get_running_loop

        task = get_running_loop().create_task(self._run(answerer, question))
        question.shown.add(task)
        task.add_done_callback(question.shown.discard)

    async def _run(self, answerer: Answerer, question: "_Question") -> None:
        """Show a question to one answerer. Whatever goes wrong there leaves the question to the others."""
        is_answered, error = await catch_async(self._answered, answerer, question)
        if is_answered or isinstance(error, InteractionClosed):
            # If another answerer was faster, `answer` has recorded it.
            return
        if isinstance(error, InteractionRequired):
            self._fail(question, error)
            return
        if error is not None:
            record_suppressed(suppressed(error, f"the answerer `{answerer.name}` failed"))
            self._record("answerer_failed", question.request, answerer=answerer.name)
        # This task is still in the set.
        if len(question.shown) <= 1 and not question.future.done():
            self._fail(question, InteractionRequired(question=question.request.to_dict()))

    async def _answered(self, answerer: Answerer, question: "_Question") -> bool:
        """Whether an answerer has answered, and not left the question to the others."""
        reply = await answerer.answer(question.request)
        if reply is None:
            return False
        self.answer(question.request.id, reply)
        return True

    async def _time_out(self, question: "_Question", seconds: float) -> None:
        await self._clock.asleep(seconds)
        self._settle(question, Timeout(seconds=seconds))

    def _settle(self, question: "_Question", reply: Reply) -> None:
        request = question.request
        if isinstance(reply, Answer) and request.is_secret:
            register_secret(reply.value)
        _, error = catch(self._record_reply, request, reply)
        if error is not None:
            # An answer that cannot be recorded is not acted upon.
            self._close(question, _UNRECORDED, error=error)
            return
        self._close(question, _REASONS[type(reply)], reply)

    def _fail(self, question: "_Question", fault: InteractionRequired) -> None:
        if not question.future.done():
            self._record("required", question.request)
            self._close(question, "nobody could be asked", error=fault)

    def _close(
        self, question: "_Question", reason: str, reply: Reply | None = None, error: Exception | None = None
    ) -> None:
        """End a question: dismiss it everywhere, wake the requester, show the next one."""
        from asyncio import current_task

        self._open.pop(question.request.id, None)
        self._note_closed(question.request.id, reason)
        here = current_task()
        for task in (*question.shown, question.timer):
            if task is not None and task is not here:
                task.cancel()
        if not question.future.done():
            if error is not None:
                question.future.set_exception(error)
            elif reply is not None:
                question.future.set_result(reply)
        self._show_first()

    def _note_closed(self, question: str, reason: str) -> None:
        self._closed[question] = reason
        while len(self._closed) > _CLOSED_IDS:
            self._closed.popitem(last=False)

    def _record_reply(self, request: Request, reply: Reply) -> None:
        if isinstance(reply, Answer):
            self._record("answered", request, by=reply.by, **_answer_facts(request, reply))
        elif isinstance(reply, Refusal):
            self._record("refused", request, by=reply.by, reason=reply.reason)
        else:
            self._record("timed_out", request, seconds=reply.seconds)

    def _record(self, name: str, request: Request, **data: Any) -> None:
        if self.observe is not None:
            self.observe(InteractionEvent(type=name, request=request.to_dict(), data=data))

    def _record_late(self, question: str, by: str, reason: str) -> None:
        """Record an answer that nobody acts upon, so that a record that fails changes nothing: the run may have ended."""
        if self.observe is None:
            return
        event = InteractionEvent(type="late", request={"id": question}, data={"by": by, "reason": reason})
        call_hook(self.observe, event, reason="a late answer could not be recorded")


_UNRECORDED = "its answer could not be recorded"
_REASONS: Mapping[type, str] = {
    Answer: "it was answered already",
    Refusal: "it was closed already",
    Timeout: "it timed out",
}


class _Question:
    """A question in the queue."""

    def __init__(self, request: Request, future: "Future[Reply]", seconds: float | None) -> None:
        self.request = request
        self.future = future
        self.seconds = seconds
        self.timer: Task[None] | None = None
        self.is_shown = False
        self.shown: set[Task[None]] = set()
        """The answerers that show it now."""


def _answer_facts(request: Request, answer: Answer) -> dict[str, Any]:
    """An answer for the record."""
    if request.is_secret:
        return {}
    facts: dict[str, Any] = {"value": redact_value(answer.value)}
    if answer.comment:
        facts["comment"] = redact_value(answer.comment)
    if answer.payload is not None:
        facts["payload"] = redact_value(answer.payload)
    return facts


def _random_id(kind: str) -> str:
    import os

    return f"{kind}-{os.urandom(6).hex()}"


class RemoteAnswerer:
    """Waits until another process answers by id, as `failwell gates answer` does."""

    name = "remote"

    async def answer(self, request: Request) -> Answer | None:
        """Never answers itself; it is cancelled when the question ends."""
        from asyncio import get_running_loop

        del request
        return await get_running_loop().create_future()
