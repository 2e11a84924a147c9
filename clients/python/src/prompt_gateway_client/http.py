"""One call of the service: what is sent, and the answer or the error that comes back."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Protocol
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from prompt_gateway_client.errors import PromptGatewayError, UnavailableError

_MAX_ANSWER_BYTES = 16 << 20
_NO_CONTENT, _NOT_MODIFIED = 204, 304
_TRY_LATER = (408, 425, 429)


class SupportsRead(Protocol):
    """What is sent piece by piece."""

    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True)
class Answer:
    """A success. `body` is empty for 204 and 304; the names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]


def _opener() -> OpenerDirector:
    """Returns an opener that speaks HTTP and follows no redirect: the key would go to the other address."""
    opener = OpenerDirector()
    for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler(), HTTPDefaultErrorHandler(), HTTPErrorProcessor()):
        opener.add_handler(handler)
    return opener


class Http:
    """Sends calls to the service at `base_url`, each within about `timeout` seconds."""

    def __init__(self, base_url: str, api_key: str, project_id: str, timeout: float) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError("base_url has to begin with http:// or https://")
        self._base_url = base_url.rstrip("/") + "/api/llm/"
        self._headers = {"Authorization": f"Bearer {api_key}", "X-Project-Id": project_id, "Accept": "application/json"}
        self._timeout = timeout
        self._opener = _opener()

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Returns the answer. Raises PromptGatewayError for a refusal, UnavailableError for no usable answer."""
        sent, data = {**(headers or {})}, None
        if body is not None:
            data, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        return self._send(method, path, query, data, sent)

    def upload(
        self, path: str, file: SupportsRead, *, size: int, media_type: str, query: Mapping[str, str] | None = None
    ) -> Answer:
        """Posts a file of `size` bytes, which is read as it is sent; raises as `send` does."""
        sent = {"Content-Type": media_type, "Content-Length": str(size)}
        return self._send("POST", path, query, file, sent)

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | SupportsRead | None,
        headers: Mapping[str, str],
    ) -> Answer:
        url = self._base_url + path + (f"?{urlencode(query)}" if query else "")
        sent = {**self._headers, **headers}
        request = Request(url, data, sent, method=method)  # noqa: S310  # the constructor checks the scheme
        try:
            status, found, raw = self._exchange(request)
        except (OSError, HTTPException) as error:
            raise UnavailableError(f"Prompt Gateway gave no answer: {error}") from error
        return _decoded(status, found, raw)

    def _exchange(self, request: Request) -> tuple[int, Mapping[str, str], bytes]:
        deadline = time.monotonic() + self._timeout
        try:
            response = self._opener.open(request, timeout=self._timeout)
        except HTTPError as error:
            response = error
        with response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            raw = bytearray()
            # Each read has the time limit of the socket, so that a slow trickle needs one of its own.
            while chunk := response.read1(65536):
                raw += chunk
                if time.monotonic() > deadline or len(raw) > _MAX_ANSWER_BYTES:
                    raise TimeoutError("the answer takes too long")
            return response.status, headers, bytes(raw)


def _decoded(status: int, headers: Mapping[str, str], raw: bytes) -> Answer:
    if status in (_NO_CONTENT, _NOT_MODIFIED):
        return Answer(status, headers, {})
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    if 200 <= status < 300 and isinstance(body, dict):
        return Answer(status, headers, body)
    envelope = body.get("error") if isinstance(body, dict) else None
    error = envelope if isinstance(envelope, dict) else {}
    message, code = str(error.get("message", f"unexpected answer with status {status}")), str(error.get("code", ""))
    if 400 <= status < 500 and status not in _TRY_LATER and code:
        raise PromptGatewayError(message, status=status, code=code)
    raise UnavailableError(message, status=status, code=code)
