"""Divides the messages of a request into texts that other requests of the project may share.

Agents send their whole history with each call. The divisions depend on nothing but the messages before them, so that a
request that repeats those of another one has the same texts, whoever ships it. What comes before the first message and
after the last text stays with the request: `request` is its body without the texts, which belong behind `shared_at`
characters, and `prompt` the end of its plain text.

What the last request of a conversation was divided into is remembered by hashes: of one that repeats it, only what
follows is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple
from uuid import UUID

import msgspec

from analytics.request_log.columns import NO_ID
from analytics.shipper.texts import MAX_CHARACTERS, Message, line_of

# A shared text has a row, an id of 16 bytes in each request that has it, and entries in the indexes: messages of fewer
# bytes than this are joined, and what is left of them at the end is stored with each request.
_LEAST_BYTES = 2048
# An insert of shared texts has a price of its own, so that batches of small requests are to have none.
_LEAST_BODY_BYTES = 4096
_PREVIEW_CHARACTERS = 200
# A piece takes some 320 bytes, so that all take 80 MB at most. What is forgotten is divided again.
_MAX_CONVERSATIONS, _MAX_PIECES = 2_000, 128


@dataclass(frozen=True, slots=True)
class SharedText:
    """A piece of a body and its plain text; `id` is a hash of them."""

    id: UUID
    prompt: bytes
    request: bytes


@dataclass(frozen=True, slots=True)
class Divided:
    """`ids` are those of all texts, `latest` the last texts: those that the conversation did not have before."""

    body: bytes
    prompt: bytes
    request: bytes
    ids: tuple[UUID, ...]
    latest: tuple[SharedText, ...]
    shared_at: int
    opening: bytes

    def texts(self) -> tuple[SharedText, ...]:
        return _begun(self.body, []).latest


class _Piece(NamedTuple):
    """Where a text ends in the body and in the plain text, and Python's hash of it, whose key no client knows.

    The first piece of a body is what comes before its messages.
    """

    end: int
    reached: int
    mark: int
    id: UUID = NO_ID


@dataclass(slots=True)
class _History:
    pieces: Sequence[_Piece] = ()
    opening: bytes = b""


class _Request(msgspec.Struct):
    messages: list[msgspec.Raw]


_decode_request = msgspec.json.Decoder(_Request).decode
_decode_message = msgspec.json.Decoder(Message).decode


def divided(body: bytes, *conversation: str) -> Divided | None:
    """Returns None for a request without texts to share, and for one that is not plain JSON in UTF-8: these are stored
    whole."""
    if len(body) < _LEAST_BODY_BYTES:
        return None
    # A session may have several conversations, which begin with other models or instructions.
    history = _history(*conversation, hash(body[:_LEAST_BYTES]))
    pieces = _repeated(body, history.pieces)
    try:
        found = _continued(body, history.opening, pieces) or _begun(body, pieces)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    history.pieces, history.opening = pieces[:_MAX_PIECES], found.opening
    return found if found.ids else None


@lru_cache(maxsize=_MAX_CONVERSATIONS)
def _history(*_: str | int) -> _History:
    return _History()


def _repeated(body: bytes, known: Sequence[_Piece]) -> list[_Piece]:
    start, found = 0, list[_Piece]()
    for piece in known:
        if hash(body[start : piece.end]) != piece.mark:
            break
        found.append(piece)
        start = piece.end
    return found


def _begun(body: bytes, pieces: list[_Piece]) -> Divided:
    raws = _decode_request(body).messages
    body.decode()
    start = _place(body, bytes(raws[0]), 0) if raws else 0
    pieces[:] = [_Piece(start, -1, hash(body[:start]))]
    return _grown(body, None, pieces, raws)


def _continued(body: bytes, opening: bytes, pieces: list[_Piece]) -> Divided | None:
    """Returns None unless what follows the pieces is the rest of the messages and no other list of them."""
    rest = body[pieces[-1].end :] if len(pieces) > 1 else b""
    if not rest or b'"messages"' in rest:
        return None
    rest.decode()
    try:
        repeated, *raws = _decode_request(b'{"messages":[null' + rest).messages
    except msgspec.DecodeError:
        return None
    return _grown(body, opening, pieces, raws) if bytes(repeated) == b"null" else None


def _grown(body: bytes, opening: bytes | None, pieces: list[_Piece], raws: Sequence[msgspec.Raw]) -> Divided:
    """Adds the pieces of the messages that follow."""
    messages = [bytes(raw) for raw in raws]
    lines = [line_of(_decode_message(message)) for message in messages]
    start, reached = pieces[-1][:2]
    end, before, texts = start, max(reached, 0), list[SharedText]()
    # All lines but the first one of a body have a line break before them.
    plain = "".join([f"\n{line}" for line in lines])[before - reached :][: max(MAX_CHARACTERS - before, 0)]
    opening = plain[:_PREVIEW_CHARACTERS].encode() if opening is None else opening
    told = 0
    for message, line in zip(messages, lines, strict=True):
        end = _place(body, message, end) + len(message)
        reached += 1 + len(line)
        if end - start >= _LEAST_BYTES:
            texts.append(_text(body[start:end], plain[told : reached - before].encode()))
            pieces.append(_Piece(end, reached, hash(texts[-1].request), texts[-1].id))
            start, told = end, reached - before
    head = body[: pieces[0].end]
    ids = tuple([piece.id for piece in pieces[1:]])
    return Divided(body, plain[told:].encode(), head + body[start:], ids, tuple(texts), len(head.decode()), opening)


def _place(body: bytes, message: bytes, after: int) -> int:
    # A search for a long text prepares it first, which takes longer than the hash.
    likely = body.find(message[:1], after)
    return likely if body.startswith(message, likely) else body.index(message, after)


def _text(request: bytes, prompt: bytes) -> SharedText:
    # The plain text follows from the piece, but for a line break before it and for where a long one is cut.
    digest = blake2b(b"%d " % len(prompt), digest_size=16)
    digest.update(request)
    return SharedText(UUID(bytes=digest.digest()), prompt, request)
