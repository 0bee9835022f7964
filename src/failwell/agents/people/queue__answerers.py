"""Answerers that show nothing themselves."""

from failwell.agents.people.requests import Answer, Request


class RemoteAnswerer:
    """Waits until another process answers by id, as `failwell gates answer` does."""

    name = "remote"

    async def answer(self, request: Request) -> Answer | None:
        """Never answers itself; it is cancelled when the question ends."""
        from asyncio import get_running_loop

        del request
        return await get_running_loop().create_future()
