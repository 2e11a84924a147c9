from __future__ import annotations

from http import HTTPStatus

import msgspec

from core.errors import ApplicationError, ServiceUnavailableError, ValidationError
from gateway.protocol.identifiers import new_request_id

MalformedRequestError = ValidationError.kind("malformed_request")
WebSocketError = ValidationError.kind("websocket_unsupported", status=426)
SlowRequestError = ValidationError.kind("request_timeout", status=408)
UrlTooLongError = ValidationError.kind("url_too_long", status=414)
HeadTooLargeError = ValidationError.kind("head_too_large", status=431)
WorkerFullError = ServiceUnavailableError.kind("too_many_connections")


def as_bytes(error: ApplicationError) -> bytes:
    body = msgspec.json.encode(error.envelope())
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        "x-request-id": new_request_id(),
        **error.headers,
    }
    lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
