"""The end of a response that a provider of the Responses API began and did not finish."""

from __future__ import annotations

from typing import Any

import msgspec

from core.errors import ApplicationError
from integrations.providers.common.sse import EventParser
from integrations.providers.common.surrogates import lenient

_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)
_encode = msgspec.json.Encoder().encode


def failed(relayed: bytes, error: ApplicationError) -> bytes:
    """Returns the event that ends the response as failed. `relayed` are the provider's events that the client has seen;
    they have the response as it began, its items that are done, and the number of the last event. Without the response
    it is an event of the error alone."""
    response: dict[str, Any] | None = None
    output: list[Any] = []
    number = -1
    parser = EventParser()
    for event in [*parser.feed(relayed), *parser.flush()]:
        fields = _decode(event.data)
        number = _number(fields, number + 1)
        if isinstance(fields.get("response"), dict):
            response = fields["response"]
        if fields.get("type") == "response.output_item.done":
            output.append(fields.get("item"))
    if response is None:
        return _event("error", number + 1, {"code": error.code, "message": error.message, "param": None})
    failure = {"code": error.code, "message": error.message}
    made = {**response, "status": "failed", "output": output, "error": failure}
    return _event("response.failed", number + 1, {"response": made})


def _number(fields: dict[str, Any], number: int) -> int:
    given = fields.get("sequence_number")
    return given if isinstance(given, int) else number


def _event(kind: str, number: int, fields: dict[str, Any]) -> bytes:
    data = _encode({"type": kind, "sequence_number": number, **fields})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)
