"""Temporal with encrypted payloads: reports cross the server, and the server cannot read them.

Run it with a development server (`temporal server start-dev`) and `pip install cryptography`.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from cryptography.fernet import Fernet
from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowFailureError
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes, PayloadCodec
from temporalio.worker import Worker

from failwell import Fault
from failwell.temporal.plugin import recover, reliability


class EncryptionCodec(PayloadCodec):
    """Encrypts every payload: arguments, results, and the details of failures."""

    def __init__(self, key: bytes) -> None:
        self._fernet = Fernet(key)

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(
                metadata={"encoding": b"binary/encrypted"},
                data=self._fernet.encrypt(payload.SerializeToString()),
            )
            for payload in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload.FromString(self._fernet.decrypt(payload.data))
            if payload.metadata.get("encoding") == b"binary/encrypted"
            else payload
            for payload in payloads
        ]


@activity.defn
async def charge(card: str) -> None:
    raise Fault(kind="provider.auth", provider="acme", message=f"acme refused the key for {card}")


@workflow.defn(sandboxed=False)
class Charge:
    """Charges a card, which fails."""

    @workflow.run
    async def run(self, card: str) -> None:
        await workflow.execute_activity(charge, card, start_to_close_timeout=timedelta(seconds=20))


async def main(address: str) -> None:
    converter = replace(
        DataConverter.default,
        payload_codec=EncryptionCodec(Fernet.generate_key()),
        # Messages and stack traces are no payloads. This converter moves them into one.
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )
    client = await Client.connect(address, data_converter=converter, plugins=[reliability()])
    queue = f"encrypted-{uuid4().hex[:8]}"
    async with Worker(client, task_queue=queue, workflows=[Charge], activities=[charge]):
        handle = await client.start_workflow(Charge.run, "card 4711", id=uuid4().hex, task_queue=queue)
        try:
            await handle.result()
        except WorkflowFailureError as error:
            report = recover(error)
            print(f"the submitter reads: {report.kind}, {report.message}")
    stored = str((await handle.fetch_history()).to_json())
    print(f"the server can read the card: {'4711' in stored}")
    print(f"the server can read the message: {'refused' in stored}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "localhost:7233"))
