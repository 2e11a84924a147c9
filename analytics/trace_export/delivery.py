"""Posts a batch of spans to a collector over OTLP/HTTP (https://opentelemetry.io/docs/specs/otlp/#otlphttp).

A project's administrators choose the address. So connections go only to public addresses, checked on connecting, and
redirects are not followed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from urllib.parse import urlsplit

import aiohttp
from django.conf import settings
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from analytics.models.trace_destinations import ERROR_CHARACTERS
from analytics.telemetry import wire
from integrations.access.credentials import MASK
from integrations.transport.addresses import PrivateAddressError, literal_address
from integrations.transport.resolver import AiohttpResolver, Resolver, any_address, only_public
from integrations.transport.tls import client_context

BATCH_ID_HEADER = "idempotency-key"
SECONDS = 10.0

_PROTOBUF = "application/x-protobuf"
_RETRYABLE = frozenset({429, 502, 503, 504})
_ANSWER_BYTES = 64 * 1024
# Shorter parts of a header are words such as "Bearer".
_MIN_SECRET = 4
_KNOWN_WORDS = frozenset({"basic", "bearer", "token", "apikey", "true", "false"})


class Verdict(Enum):
    TAKEN = auto()
    RETRY = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Target:
    endpoint: str
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Target({self.endpoint})"


@dataclass(frozen=True, slots=True)
class Answer:
    """The collector's answer. `status` is 0 without one. `detail` says what went wrong, without secrets, also if only
    `rejected` spans were refused. `retry_after` is in seconds, None if the collector named none."""

    verdict: Verdict
    status: int = 0
    detail: str = ""
    rejected: int = 0
    retry_after: float | None = None


def open_session() -> aiohttp.ClientSession:
    """The session is for all destinations; the caller closes it. It needs a running loop."""
    connector = aiohttp.TCPConnector(
        ssl=client_context(), use_dns_cache=False, resolver=AiohttpResolver(_resolver()), limit_per_host=8
    )
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=True)


async def post(session: aiohttp.ClientSession, target: Target, body: bytes, batch_id: str) -> Answer:
    """Posts a gzipped ExportTraceServiceRequest. Every retry of a batch has the same bytes and id.

    It raises only CancelledError.
    """
    headers = {
        **target.headers,
        "content-type": _PROTOBUF,
        "content-encoding": "gzip",
        "user-agent": "prompt-gateway",
        BATCH_ID_HEADER: batch_id,
    }
    try:
        await _check_literal(target.endpoint)
        async with (
            asyncio.timeout(SECONDS),
            session.post(target.endpoint, data=body, headers=headers, allow_redirects=False) as response,
        ):
            content = await response.content.read(_ANSWER_BYTES)
            answer = _answer_of(response, content)
    except PrivateAddressError:
        return Answer(Verdict.RETRY, detail="The address is on a private network.")
    except TimeoutError:
        return Answer(Verdict.RETRY, detail=f"No answer within {SECONDS:.0f} seconds.")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        # The error's text may hold the address, which may contain a token.
        return Answer(Verdict.RETRY, detail=f"No connection ({type(error).__name__}).")
    return Answer(
        answer.verdict, answer.status, redacted(answer.detail, target.headers), answer.rejected, answer.retry_after
    )


def redacted(text: str, headers: Mapping[str, str]) -> str:
    """Returns a collector's text on one line, cut, and without any part of the headers, which it may quote."""
    for secret in sorted(_secrets(headers), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return " ".join(text.replace("\x00", " ").split())[:ERROR_CHARACTERS]


def _secrets(headers: Mapping[str, str]) -> Iterator[str]:
    for value in headers.values():
        for part in (value, *value.split()):
            if len(part) >= _MIN_SECRET and part.lower() not in _KNOWN_WORDS:
                yield part
                yield from _decoded(part)


def _decoded(part: str) -> Iterator[str]:
    try:
        text = base64.b64decode(part, validate=True).decode()
    except (binascii.Error, ValueError):
        return
    yield from (piece for piece in (text, *text.split(":")) if len(piece) >= _MIN_SECRET)


def _resolver() -> Resolver:
    return Resolver(any_address if settings.ALLOW_PRIVATE_UPSTREAMS else only_public)


async def _check_literal(endpoint: str) -> None:
    """An IP address in a URL is never resolved, so it is checked here. Raises PrivateAddressError."""
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    if literal_address(host) is not None:
        await _resolver().addresses(host, parts.port or 443)


def _answer_of(response: aiohttp.ClientResponse, content: bytes) -> Answer:
    status = response.status
    if 200 <= status < 300:
        return _taken(status, content if response.content_type == _PROTOBUF else b"")
    verdict = Verdict.RETRY if status in _RETRYABLE else Verdict.REFUSED
    said = _said(response.content_type, content)
    detail = f"The collector answered {status}: {said}" if said else f"The collector answered {status}."
    return Answer(verdict, status, detail, retry_after=_seconds(response.headers.get("retry-after", "")))


def _taken(status: int, content: bytes) -> Answer:
    try:
        partial = ExportTraceServiceResponse.FromString(content).partial_success
    except DecodeError:
        return Answer(Verdict.TAKEN, status)
    rejected = max(partial.rejected_spans, 0)
    said = partial.error_message
    # A message without a number is a warning.
    detail = f"The collector rejected {rejected} spans: {said}" if rejected else said
    return Answer(Verdict.TAKEN, status, detail, rejected)


def _said(content_type: str, content: bytes) -> str:
    if content_type == _PROTOBUF:
        try:
            content = bytes(wire.contents(memoryview(content)).get(2, [memoryview(b"")])[-1])
        except wire.BrokenMessageError:
            return ""
    return content.decode("utf-8", "replace")


def _seconds(value: str) -> float | None:
    if value.isdecimal():
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max((at - datetime.now(UTC)).total_seconds(), 0.0)
