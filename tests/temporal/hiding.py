"""A payload codec for tests: nothing that is sent can be read by looking at it."""

from collections.abc import Sequence

from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec


class Hiding(PayloadCodec):
    """Turns every bit over."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": b"binary/hidden"}, data=_turned(payload.SerializeToString()))
            for payload in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload.FromString(_turned(payload.data))
            if payload.metadata.get("encoding") == b"binary/hidden"
            else payload
            for payload in payloads
        ]


def _turned(data: bytes) -> bytes:
    return bytes(byte ^ 0xFF for byte in data)
