from __future__ import annotations

import msgspec

from integrations.providers.given import NOTHING_GIVEN, Given
from integrations.providers.usage import Usage

_MAX_MESSAGE_CHARACTERS = 2000


class BatchResult(msgspec.Struct, frozen=True):
    """The answer to one request of a batch, from any vendor.

    `status` is the HTTP status that the request would have had alone, 0 if the vendor never ran it. `answer` is the
    JSON of the answer or error. `usage` is None if the vendor counted nothing; `error_code` is empty for an answer.
    `given` is what the answer gives out of what the provider keeps.
    """

    custom_id: str
    status: int
    answer: bytes = b""
    model: str = ""
    finish_reason: str = ""
    usage: Usage | None = None
    error_code: str = ""
    error_message: str = ""
    given: tuple[Given, ...] = NOTHING_GIVEN


def shortened(message: object) -> str:
    return message[:_MAX_MESSAGE_CHARACTERS] if isinstance(message, str) else ""
