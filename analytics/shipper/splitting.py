"""Divides the messages of a request into texts that other requests of the project may share.

Agents send their whole history with each call. The divisions depend on nothing but the messages before them, so that a
request that repeats those of another one has the same texts, whoever ships it. What comes before the first message and
after the last text stays with the request: `request` is its body without the texts, which belong behind `shared_at`
characters, and `prompt` the end of its plain text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from uuid import UUID

import msgspec

from analytics.shipper.texts import MAX_CHARACTERS, Message, line_of

# A shared text has a row, an id of 16 bytes in each request that has it, and entries in the indexes: messages of fewer
# bytes than this are joined, and what is left of them at the end is stored with each request.
_LEAST_BYTES = 2048
# An insert of shared texts has a price of its own, so that batches of small requests are to have none.
_LEAST_BODY_BYTES = 4096
_PREVIEW_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class SharedText:
    """A piece of a body and its plain text; `id` is a hash of them."""

    id: UUID
    prompt: bytes
    request: bytes


@dataclass(frozen=True, slots=True)
class Divided:
    prompt: bytes
    request: bytes
    texts: tuple[SharedText, ...]
    shared_at: int
    opening: bytes


class _Request(msgspec.Struct):
    messages: list[msgspec.Raw]


_decode_request = msgspec.json.Decoder(_Request).decode
_decode_message = msgspec.json.Decoder(Message).decode


def divided(body: bytes) -> Divided | None:
    """Returns None for a request without texts to share, and for one that is not plain JSON in UTF-8: these are stored
    whole."""
    if len(body) < _LEAST_BODY_BYTES:
        return None
    try:
        messages = [bytes(raw) for raw in _decode_request(body).messages]
        lines = [line_of(_decode_message(raw)) for raw in messages]
        return _divided(body, messages, lines)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _divided(body: bytes, messages: Sequence[bytes], lines: Sequence[str]) -> Divided | None:
    body.decode()
    prompt = "\n".join(lines)[:MAX_CHARACTERS]
    head = start = _place(body, messages[0], 0) if messages else 0
    told, texts = 0, list[SharedText]()
    for end, reached in _ends(body, start, messages, lines):
        texts.append(_text(body[start:end], prompt[told:reached].encode()))
        start, told = end, reached
    if not texts:
        return None
    rest, opening = prompt[told:].encode(), prompt[:_PREVIEW_CHARACTERS].encode()
    return Divided(rest, body[:head] + body[start:], tuple(texts), len(body[:head].decode()), opening)


def _ends(body: bytes, start: int, messages: Sequence[bytes], lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yields where each text ends, in the body and in the plain text."""
    end, reached = start, -1
    for message, line in zip(messages, lines, strict=True):
        end = _place(body, message, end) + len(message)
        reached += 1 + len(line)
        if end - start >= _LEAST_BYTES:
            yield end, reached
            start = end


def _place(body: bytes, message: bytes, after: int) -> int:
    # A search for a long text prepares it first, which takes longer than the hash.
    likely = body.find(message[:1], after)
    return likely if body.startswith(message, likely) else body.index(message, after)


def _text(request: bytes, prompt: bytes) -> SharedText:
    # The plain text follows from the piece, but for a line break before it and for where a long one is cut.
    digest = blake2b(b"%d " % len(prompt), digest_size=16)
    digest.update(request)
    return SharedText(UUID(bytes=digest.digest()), prompt, request)
