"""A release that fails twice, once with an error that the workflow handles and once with one that it does not; and an agent.

    make demo        (or: python examples/demo.py)

It runs examples/workflows/release and support-agent with the `failwell` command itself, in a folder of its own under
the system's temporary one, and ends with what to type next. It needs no key and no server.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
RELEASE = EXAMPLES / "workflows/release/workflow.yaml"
AGENT = EXAMPLES / "workflows/support-agent/workflow.yaml"


class Demo:
    """Types commands for you, and shows them as you would type them."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "store"
        self.environment = {
            **os.environ,
            "FAILWELL_STORE": str(self.store),
            # The played steps take this long each, so that there is something to see.
            "PACE": os.environ.get("PACE", "0.25"),
        }

    @property
    def failwell(self) -> str:
        """The command as it can be typed here."""
        beside = Path(sys.executable).with_name("failwell")
        if beside.exists():
            return shlex.quote(os.path.relpath(beside) if beside.is_relative_to(Path.cwd()) else str(beside))
        return f"{shlex.quote(sys.executable)} -m failwell"

    def say(self, text: str = "") -> None:
        """Print a line before whatever the next command prints."""
        print(text, flush=True)

    def type(self, *arguments: str) -> int:
        """Run one command in full view."""
        self.say(f"\n$ failwell {shlex.join(arguments)}")
        command = [sys.executable, "-m", "failwell", *arguments]
        return subprocess.run(command, env=self.environment, check=False).returncode  # noqa: S603  (its own command)


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="failwell-demo-"))
    demo = Demo(folder)
    file = os.path.relpath(RELEASE)
    demo.say("A release: build, three tests side by side, deploy, check, sign.")
    foreseen = demo.type("run", file, "-i", "version=2.4.1")
    demo.say(f"exit code {foreseen}: the cluster was busy, so the deployment was retried; what went live was")
    demo.say("unhealthy, so it was rolled back. The file has a route for both, so nobody had to act.")

    unforeseen = demo.type("run", file, "-i", "version=2.5.0", "-i", f"work={folder}")
    demo.say(f"\nexit code {unforeseen}: no route takes `external.signing.key_missing`. The run is recorded,")
    demo.say("and its finished steps stay finished.")
    demo.type("runs", "list")

    demo.say("\nThe failure itself, as an operator sees it:")
    (errors,) = (demo.store / "runs").glob("*/errors.jsonl")
    run = errors.parent.name
    demo.type("describe", str(errors))
    answered = agent(demo)
    command = demo.failwell
    demo.say("\nWhat to type next:")
    demo.say(f"""
  export FAILWELL_STORE={shlex.quote(str(demo.store))}

  # every step, its attempts, what it failed with
  {command} runs show {run}

  # what the failure is, and why it was not retried
  {command} explain {shlex.quote(str(errors))}

  # fix the cause, then resume with `sign`; nothing is built or deployed twice
  touch {shlex.quote(str(folder / "signing.key"))}
  {command} resume {run}
""")
    return 0 if (foreseen, unforeseen, answered) == (0, 3, 0) else 1


def agent(demo: Demo) -> int:
    """An agent whose first model is down, who is denied a tool, and who asks a person."""
    from importlib.util import find_spec

    if find_spec("pydantic_ai") is None:
        demo.say("\nAgents need the extra `agents`, which is not installed: pip install 'failwell[agents]'")
        return 0
    demo.say(
        "\nAn agent with scripted models: the first one is overloaded, so the second answers. It may not run `rm`,"
    )
    demo.say("and it goes on without it. Then a person decides.")
    waiting = demo.type("run", os.path.relpath(AGENT), "--no-input", "--run-id", "support")
    demo.type("runs", "logs", "support")
    demo.say(f"\nexit code {waiting}: the run waits for an answer, in this terminal or any other.")
    demo.type("gates", "answer", "support", "approve", "refund")
    return demo.type("resume", "support")


if __name__ == "__main__":
    sys.exit(main())
