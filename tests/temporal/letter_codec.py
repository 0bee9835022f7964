"""A codec that shifts every byte: enough to see whether something passed by it."""

from collections.abc import Sequence

from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

_MARK = b"binary/letters"


class LetterCodec(PayloadCodec):
    """Shifts bytes by one."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(
                metadata={"encoding": _MARK},
                data=bytes((byte + 1) % 256 for byte in payload.SerializeToString()),
            )
            for payload in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload.FromString(bytes((byte - 1) % 256 for byte in payload.data))
            if payload.metadata.get("encoding") == _MARK
            else payload
            for payload in payloads
        ]


codec = LetterCodec()
