"""The server that the tests of Temporal share."""

import asyncio
from pathlib import Path

import pytest

from tests.temporal_server import TemporalServer, server

pytest.importorskip("temporalio", reason="temporalio is in requirements/sdks/newest.txt")

from temporalio.client import Client


def test_the_server_of_a_test_process_is_started_once_and_answers() -> None:
    async def namespaces() -> bool:
        client = await Client.connect(server().address)
        return await client.service_client.check_health()

    assert server() is server()
    assert asyncio.run(namespaces())


@pytest.mark.slow
def test_a_server_with_a_database_answers_at_its_address_after_it_was_killed(tmp_path: Path) -> None:
    async def healthy(address: str) -> bool:
        return await (await Client.connect(address)).service_client.check_health()

    with TemporalServer(database=tmp_path / "temporal.db") as own:
        address = own.address
        assert asyncio.run(healthy(address))
        own.kill()
        assert asyncio.run(healthy(own.start().address))

    assert own.address == address
