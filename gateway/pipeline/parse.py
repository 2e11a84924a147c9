"""Stage 2: the request's body, read and decoded once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from core.errors import ValidationError
from gateway.errors import RequestTimeoutError, RequestTooLargeError
from gateway.protocol.headers import MAX_VARIABLE_CHARACTERS, PREFIX, RequestHeaders
from gateway.protocol.reply import Receive
from gateway.protocol.wire import ChatCompletionRequest, convert_request, decode_request


class ClientGoneError(Exception):
    pass


async def read_body(receive: Receive, headers: RequestHeaders, limit: int) -> bytes:
    if headers.content_encoding:
        refuse_compressed(headers)
    message: Any = await receive()
    body = message.get("body", b"")
    if message["type"] != "http.request" or message.get("more_body", False):
        return await _rest(receive, message, limit)
    _check_size(len(body), limit)
    return bytes(body)


def refuse_compressed(headers: RequestHeaders) -> None:
    if headers.content_encoding and headers.content_encoding.lower() != "identity":
        raise ValidationError("content-encoding: request bodies have to be sent without compression")


def late_body(seconds: float | None = None) -> RequestTimeoutError:
    seconds = settings.GATEWAY_BODY_SECONDS if seconds is None else seconds
    return RequestTimeoutError(f"The request body did not arrive within {seconds:g} seconds")


async def _rest(receive: Receive, message: Any, limit: int) -> bytes:
    parts = [message.get("body", b"")]
    size = len(parts[0])
    while message["type"] == "http.request" and message.get("more_body", False):
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        _check_size(size, limit)
    if message["type"] != "http.request":
        raise ClientGoneError
    return b"".join(parts)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise RequestTooLargeError(limit)


def parse(body: bytes, headers: RequestHeaders, fields: Mapping[str, Any] | None = None) -> ChatCompletionRequest:
    request = decode_request(body) if fields is None else convert_request(fields, body)
    if headers.force_variant and headers.force_variant not in ("target", "baseline"):
        raise ValidationError(f"{PREFIX}force-variant: expected target or baseline")
    for name, value in headers.variables.items():
        if len(value) > MAX_VARIABLE_CHARACTERS:
            raise ValidationError(
                f"{PREFIX}var-{name.replace('_', '-')}: {len(value)} characters, "
                f"at most {MAX_VARIABLE_CHARACTERS} are allowed"
            )
    return request
