"""https://platform.claude.com/docs/en/build-with-claude/batch-processing"""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.anthropic.adapter import ADAPTER
from integrations.providers.anthropic.shapes import Message, usage_in
from integrations.providers.base import Credentials
from integrations.providers.common.batch_results import BatchResult, shortened
from integrations.providers.common.endpoints import Endpoint
from integrations.providers.common.failures import message_in
from integrations.providers.given import Kept, given_in_object

BATCH_PROVIDERS = ("anthropic",)
_SUCCEEDED = "succeeded"
# The statuses of https://platform.claude.com/docs/en/api/errors, by the type of the error.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class _Result(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: Any = None


class _Line(msgspec.Struct):
    custom_id: str
    result: _Result


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_message = msgspec.json.Decoder(Message).decode


def endpoint(provider: str, path: str, credentials: Credentials) -> Endpoint:
    found = ADAPTER.endpoint(credentials)
    return Endpoint(f"{found.url.removesuffix('messages')}{path}", found.headers)


def read_result(line: bytes) -> BatchResult:
    """Raises ValueError if the line has another form."""
    try:
        found = _decode_line(line)
        result = found.result
        message = _decode_message(result.message) if result.type == _SUCCEEDED else None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError("not a line of a message batch's results") from error
    if message is None:
        return _failed(found.custom_id, result)
    return BatchResult(
        found.custom_id,
        200,
        bytes(result.message),
        model=message.model,
        finish_reason=message.stop_reason or "",
        usage=usage_in(message),
        given=given_in_object(Kept.CONTAINER, message.container),
    )


def _failed(custom_id: str, result: _Result) -> BatchResult:
    error = result.error.get("error", result.error) if isinstance(result.error, dict) else None
    kind = error.get("type") if isinstance(error, dict) else None
    return BatchResult(
        custom_id,
        _STATUSES.get(str(kind), 500) if error is not None else 0,
        msgspec.json.encode(result.error if error is not None else {"type": result.type}),
        error_code=kind if isinstance(kind, str) else result.type,
        error_message=shortened(message_in(error)),
    )
