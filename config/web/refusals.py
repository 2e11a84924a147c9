"""The responses to peers whose bytes never become a request, in the same envelope as every other failure.

ValidationError                 core: 400 invalid_request_error
├── MalformedRequestError           400 malformed_request: not HTTP, or ambiguous
├── WebSocketError                  426 websocket_unsupported
├── SlowRequestError                408 request_timeout: head or body did not arrive in time
├── UrlTooLongError                 414 url_too_long
└── HeadTooLargeError               431 head_too_large
ServiceUnavailableError         core: 503 service_unavailable_error
└── WorkerFullError                 503 too_many_connections
"""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from core.errors import ApplicationError, ServiceUnavailableError, ValidationError
from gateway.protocol.identifiers import new_request_id


class MalformedRequestError(ValidationError):
    code = "malformed_request"


class WebSocketError(ValidationError):
    status = 426
    code = "websocket_unsupported"


class SlowRequestError(ValidationError):
    status = 408
    code = "request_timeout"


class UrlTooLongError(ValidationError):
    status = 414
    code = "url_too_long"


class HeadTooLargeError(ValidationError):
    status = 431
    code = "head_too_large"


class WorkerFullError(ServiceUnavailableError):
    code = "too_many_connections"


def as_bytes(error: ApplicationError) -> bytes:
    """Returns a whole HTTP/1.1 response that closes the connection."""
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
