"""Holds the session from Python, and agrees to what the agent asks.

python talk.py
"""

import asyncio
from pathlib import Path

from failwell.agents.people import Answer, InteractionQueue, Request
from failwell.sessions import open_session


class Agreeable:
    """Answers every question with yes. A real program asks a person."""

    name = "example"

    async def answer(self, request: Request) -> Answer:
        print(f"asked: {request.text.splitlines()[0]}")
        return Answer(value=True, by="example")


async def main() -> None:
    agent = Path(__file__).with_name("clerk.yaml")
    async with await open_session(agent, questions=InteractionQueue(Agreeable())) as session:
        for text in ("What about A-17?", "Yes, please."):
            result = await session.send(text)
            print(f"{result.status}: {result.text}")


if __name__ == "__main__":
    asyncio.run(main())
