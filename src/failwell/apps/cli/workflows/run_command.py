"""Runs a workflow from the command line to its end: signals, progress, the result, the exit code."""

import os
import signal
import sys
from argparse import Namespace
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failwell.workflow.run.driver import Driver
    from failwell.workflow.run.launch import Settings
    from failwell.workflow.run.world import Ended

Work = Callable[["Settings"], Awaitable["Ended"]]
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Conductor:
    """One command's run: who watches it, who answers for it, who stops it."""

    def __init__(self, args: Namespace) -> None:
        self.args = args
        self.run = ""
        self.was_interrupted = False
        self._driver: Driver | None = None
        self._main: Any = None
        self._loop: Any = None

    def conduct(self, work: Work) -> int:
        """Do `work` with the settings that were asked for, and say how it ended."""
        from asyncio import run

        from failwell.workflow.run.faults import WorkflowInvalid

        try:
            ended = run(self._conduct(work))
        except WorkflowInvalid as invalid:
            from failwell.apps.cli.workflows.problems import refuse

            return refuse(invalid.mistakes, self.args)
        from failwell.apps.cli.workflows.run_result import tell_end

        return tell_end(ended, self.run, self.args, was_interrupted=self.was_interrupted)

    async def _conduct(self, work: Work) -> "Ended":
        from asyncio import current_task, get_running_loop

        self._main, self._loop = current_task(), get_running_loop()
        heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        for number in heard:
            # What the caller ignores stays ignored: `nohup` means it.
            self._loop.add_signal_handler(number, self._interrupt, number)
        from failwell.apps.cli.workflows.progress import progress

        with progress(self.args) as shown:
            settings = self._settings(shown)
            try:
                return await work(settings)
            finally:
                settings.store.close()
                for number in heard:
                    self._loop.remove_signal_handler(number)

    def _settings(self, shown: Any) -> "Settings":
        from failwell.apps.cli.job_nodes import JobNodes
        from failwell.journal.folder import state_folder
        from failwell.journal.sqlite.runs import SqliteStore
        from failwell.workflow.run.launch import Settings
        from failwell.workflow.run.script import ScriptExecutor

        args = self.args
        folder = state_folder(args.store)
        return Settings(
            store=SqliteStore(folder, durability=args.durability),
            folder=folder,
            executors={"script": ScriptExecutor(), "job": JobNodes(folder)},
            environ=os.environ,
            allow_outside=args.allow_outside,
            watchers=(shown.heard,),
            notes=shown.noted,
            stays=args.wait,
            asker=self._asker(shown),
            around=self._around,
        )

    def _asker(self, shown: Any) -> Any:
        from failwell.apps.cli.workflows import terminal as gates

        if self.args.skip_gates:
            return gates.first_option
        if self.args.no_input or not gates.can_ask():
            return None
        return gates.Terminal(shown.pause, shown.go_on).ask

    @asynccontextmanager
    async def _around(self, driver: "Driver", run: str, folder: Path) -> AsyncGenerator[None]:
        """While the run goes on, others can knock at its door."""
        from failwell.workflow.run.control import listening

        self._driver, self.run = driver, run
        async with listening(driver, folder):
            yield

    def _interrupt(self, number: int) -> None:
        """The first time the run is asked to end; the second time it is ended."""
        from failwell.workflow.machine.protocol import Cancel

        name = signal.Signals(number).name
        if self.was_interrupted or self._driver is None:
            self._main.cancel()
            return
        self.was_interrupted = True
        print(f"{name}: stopping what runs; once more to stop at once", file=sys.stderr)
        self._driver.tell(Cancel(at=self._driver.now(), reason="interrupted", by=name))
