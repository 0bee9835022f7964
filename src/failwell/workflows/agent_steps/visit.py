"""One visit of an agent node: the turn, the checks of its answer, and what all of it used."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from failwell.errors.report import Scene
from failwell.workflows.agent_steps.answers import (
    checked,
    correction,
    object_in,
    schema_violation,
    system_text,
    usage_record,
)
from failwell.workflows.agent_steps.kit import EMPTY_KIT, agent_kit
from failwell.workflows.agent_steps.run_resources import AgentRun, Asker
from failwell.workflows.agent_steps.step_log import AgentLog
from failwell.workflows.agent_steps.step_settings import AgentSettings, file_prices, tool_context
from failwell.workflows.envelope import AGENT_EVIDENCE, MARKERS, Malformed, failure_of
from failwell.workflows.failure import Failure
from failwell.workflows.machine.messages import Request
from failwell.workflows.running.executor import Success, Tools
from failwell.workflows.skills.plugins import PluginAgent

if TYPE_CHECKING:
    from failwell.agents.own_agents import AgentCall
    from failwell.agents.people import InteractionQueue
    from failwell.agents.tools.tool import Approver
    from failwell.agents.turn import Turn
    from failwell.workflows.output_schemas import OutputSchemas


class AgentStep:
    """Runs one agent node.

    Args:
        run: The models and tools of the run.
        request: The node, with its rendered texts.
        tools: What the driver passes to executors.
        scene: Where its failures happen.
        schemas: Checks declared outputs.
        approver: Asks a person whether a tool may be called.
        people: The queue of other questions to people.
    """

    def __init__(
        self,
        run: AgentRun,
        request: Request,
        tools: Tools,
        *,
        scene: Scene,
        schemas: "OutputSchemas",
        approver: "Approver | None",
        people: "Callable[[], InteractionQueue]",
    ) -> None:
        self._run = run
        self._request = request
        self._tools = tools
        self._scene = scene
        self._schemas = schemas
        self._approver = approver
        self._people = people
        self._settings = AgentSettings(request, tools.plan)
        self._log = AgentLog(tools.note, request)
        self._kit = EMPTY_KIT
        self._turn: Turn | None = None
        self._turns: list[Turn | AgentCall] = []
        """Whatever used tokens."""

    @property
    def usage(self) -> dict[str, Any] | None:
        """What was used so far, by all calls of models."""
        tokens: dict[str, int] = {}
        cost: int | None = 0
        for turn in self._turns:
            for name, count in turn.tokens.items():
                tokens[name] = tokens.get(name, 0) + count
            cost = None if cost is None or turn.cost is None else cost + turn.cost
        return usage_record(tokens, cost)

    async def run(self) -> Success | Failure:
        """The output of the node, or its failure.

        Raises:
            Exception: what a model or a tool raised.
        """
        if self._settings.own.get("agent") is not None:
            return await self._own_agent()
        self._kit = agent_kit(self._settings.own, self._tools.plan)
        for note in self._kit.notes:
            self._log.write(f"skill {note}")
        prompt: str = self._request.call["prompt"] or ""
        result = await self.answer(prompt)
        dialog: Mapping[str, Any] | None = self._settings.own.get("dialog")
        if dialog is not None and isinstance(result, Success):
            from failwell.workflows.agent_steps.dialog import conversation

            text = await conversation(self, dialog, prompt, result.output)
            if text is not None:
                prompt = f"{prompt}\n\n{text}"
                result = await self.answer(prompt)
        validator: Mapping[str, Any] | None = self._settings.own.get("validator")
        if validator is not None and isinstance(result, Success):
            from failwell.workflows.agent_steps.validator import feedback

            text = await feedback(self, validator, prompt, result.output)
            if text is not None:
                result = await self.answer(f"{prompt}\n\n{text}")
        return replace(result, usage=self.usage)

    async def answer(self, prompt: str) -> Success | Failure:
        """Run the turn. An answer that is not as the node declares it is asked for again as often as the node says."""
        turn = self._turn
        if turn is None:
            turn = self._turn = await self._open_turn()
            self._turns.append(turn)
        key = self._conversation_key
        history = [] if key is None else self._run.conversations.read(key)
        system = system_text(self._request, self._is_raw, self._kit.text)
        result = self.read(await turn.run(prompt, system=system, history=history))
        for _ in range(self._settings.corrections):
            if not isinstance(result, Failure) or result.kind != "internal.schema_violation":
                break
            self._log.write("answer: internal.schema_violation; asked again")
            result = self.read(await turn.correct(correction(result)))
        if key is not None and isinstance(result, Success):
            self._run.conversations.keep(key, turn.messages)
        return result

    async def ask_model(self, asker: Asker, prompt: str, system: str) -> str:
        """The answer of a model that is called for the node, without tools."""
        turn = await self.open_conversation(asker, most_calls=1)
        return await turn.run(prompt, system=system)

    async def open_conversation(self, asker: Asker, most_calls: int) -> "Turn":
        """A turn of a model that is called for the node, without tools. What it uses is counted."""
        from failwell.agents.tool_calls import Dispatcher
        from failwell.agents.turn import Turn

        chain = await self._run.chain(self._request, self._tools, self._settings, asker)
        context = tool_context(self._request, self._tools, self._settings)
        turn = Turn(
            chain,
            Dispatcher({}),
            context,
            most_calls=most_calls,
            max_tokens=self._settings.own.get("max_tokens"),
        )
        self._turns.append(turn)
        return turn

    @property
    def people(self) -> "InteractionQueue":
        """The queue of questions to people."""
        return self._people()

    @property
    def name(self) -> str:
        """The name of the node."""
        return self._request.node.name

    def write(self, line: str) -> None:
        """Write a line to the log of the run."""
        self._log.write(line)

    async def _call_agent(self, name: str, agent: PluginAgent, task: str) -> str:
        turn = await self.open_conversation(Asker(name=name), most_calls=1)
        return await turn.run(task, system=agent.text)

    @property
    def _conversation_key(self) -> str | None:
        """The conversation that this visit continues: one for each key and working folder."""
        key: str | None = self._settings.own.get("session_key")
        return None if key is None else f"{key}\n{self._settings.folder(self._tools.plan.folder)}"

    @property
    def _is_raw(self) -> bool:
        return self._settings.own.get("output_mode") == "raw"

    async def _open_turn(self) -> "Turn":
        from failwell.agents.turn import Turn

        request, tools, settings = self._request, self._tools, self._settings
        return Turn(
            await self._run.chain(request, tools, settings),
            await self._run.dispatcher(
                request,
                tools,
                settings,
                self._approver,
                servers=self._kit.servers,
                agents=self._kit.tools(self._call_agent),
            ),
            tool_context(request, tools, settings),
            most_calls=settings.most_calls,
            max_tokens=settings.own.get("max_tokens"),
            longest=settings.own.get("max_session_seconds"),
            observe=self._log.write_event,
        )

    async def _own_agent(self) -> Success | Failure:
        """Run somebody's agent, and check its answer as that of a turn."""
        from failwell.agents.own_agents import AgentCall, run_own_agent

        settings = self._settings
        call = AgentCall(
            self._request.call["prompt"] or "",
            most_calls=settings.most_calls,
            prices=file_prices(settings.runtime.get("cost")),
            longest=settings.own.get("max_session_seconds"),
            budget=self._run.budget(self._request, self._tools),
            observe=self._log.write_event,
            watcher=self._log.write_attempt,
        )
        self._turns.append(call)
        answer = await run_own_agent(settings.own["agent"], Path(self._tools.plan.folder), call)
        return replace(self.read(answer.text), usage=self.usage)

    def read(self, text: str) -> Success | Failure:
        """The answer as the output of the node: the declared fields, or the text under `result`."""
        request = self._request
        if self._is_raw:
            return Success(output={"result": text})
        value, reason = object_in(text)
        output = {"result": text} if value is None else {**value}
        if value is not None and any(value.get(marker) is True for marker in MARKERS):
            try:
                raised = failure_of(
                    value,
                    datetime.now(UTC),
                    kinds=self._tools.plan.kinds,
                    scene=self._scene,
                    evidence=AGENT_EVIDENCE,
                )
            except Malformed as error:
                return schema_violation(request, str(error), output, self._scene)
            return replace(raised, output=output)
        if request.node.output is None:
            return Success(output={"result": text})
        if value is None:
            return schema_violation(request, reason, output, self._scene)
        return checked(request, value, self._schemas, self._scene)
