"""Makes the columns of the table `ingest` from spooled records, a whole batch at once.

Every value is limited to its column's range, so that one odd record cannot make the store refuse a batch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial
from itertools import repeat
from operator import attrgetter
from typing import Any
from uuid import UUID

import msgspec
from msgspec.structs import astuple

from analytics.request_log.columns import DEFAULTS, IDS, INGESTED, MONEY, NO_ID, NO_MONEY, NUMBERS, Columns, rows_of
from analytics.request_log.record import TELEMETRY, AttemptRecord, RequestRecord
from analytics.shipper.splitting import divided
from analytics.shipper.streamed import assembled
from analytics.shipper.texts import completion_text, prompt_text
from analytics.spool.reader import Frame
from integrations.providers.native import native_adapter

logger = logging.getLogger("analytics.shipper")

_PLACES = Decimal("0.0000000001")
_MAX_MONEY = Decimal(99_999_999)
_LATEST = int(datetime(2049, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
_FIELDS = RequestRecord.__struct_fields__
# Rows are made of few frames at once, so that what they are made of stays in the processor's cache.
_AT_ONCE = 64
_TEXTS = (
    "prompt", "completion", "request", "response", "shared", "shared_at", "shared_bytes", "opening", "shared_texts"
)  # fmt: skip
_DEFAULTS = {**DEFAULTS, "shared_texts": ()}
_NOT_SHARED: tuple[Any, ...] = ((), 0, 0, b"", ())
_encode = msgspec.json.Encoder().encode


def to_columns(frames: Sequence[Frame], *, with_spans: bool = True) -> Columns:
    """Returns the rows' columns: `ts` in Unix microseconds, costs as decimal text, texts and bodies as UTF-8 bytes.
    `with_spans` marks the requests whose spans are derived when they are read.

    A column whose values are all the table's default is left out: that is half of them in most batches, and each costs
    as much as any other. The columns depend only on the frames, so a retried batch is identical. The table has no
    column `shared_texts`: its values have the texts whose ids are in `shared`. Raises ValueError for a frame of another
    version, or with an invalid id or cost.
    """
    columns: dict[str, list[Any]] = {name: [] for name in (*INGESTED, "shared_texts")}
    for start in range(0, len(frames), _AT_ONCE):
        for name, values in _columns(frames[start : start + _AT_ONCE], with_spans).items():
            columns[name] += values
    return {
        name: values for name, values in columns.items() if values and not _has_default(values, _DEFAULTS.get(name))
    }


def joined(batches: Sequence[Columns]) -> Columns:
    """Returns the rows of several batches, in their order."""
    names = dict.fromkeys(name for one in batches for name in one)
    return {
        name: [
            value for one in batches for value in (one[name] if name in one else repeat(_DEFAULTS[name], rows_of(one)))
        ]
        for name in names
    }


def _columns(frames: Sequence[Frame], with_spans: bool) -> Columns:
    try:
        records = [frame.record() for frame in frames]
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    columns: dict[str, Sequence[Any]] = dict(zip(_FIELDS, zip(*map(astuple, records), strict=True), strict=True))
    # The application has sent the span of its own call.
    columns["spans_derived"] = [with_spans and source != TELEMETRY for source in columns["source"]]
    for name, converted in _CONVERSIONS.items():
        columns[name] = converted(columns[name])
    columns.update(zip(_TEXTS, zip(*map(_texts, frames, records), strict=True), strict=True))
    return columns


def _has_default(values: Sequence[Any], default: object) -> bool:
    return default is not None and values.count(default) == len(values)


def _ids(texts: Iterable[str]) -> list[UUID]:
    return [_shared_id(text) if text else NO_ID for text in texts]


def _projects(texts: Iterable[str]) -> list[UUID]:
    return [_shared_id(text) for text in texts]


def _requests(texts: Sequence[str]) -> Sequence[UUID]:
    try:
        # A fifth of the time of as many calls of UUID.
        return msgspec.convert(texts, list[UUID])
    except msgspec.ValidationError:
        # One of them is written in another form than the gateway writes, or is none.
        return [UUID(text) for text in texts]


def _times(values: Sequence[int]) -> Sequence[int]:
    return _within(_LATEST, values)


def _within(maximum: int, values: Sequence[int]) -> Sequence[int]:
    if min(values) >= 0 and max(values) <= maximum:
        return values
    return [min(max(value, 0), maximum) for value in values]


def _costs(texts: Iterable[str]) -> list[str]:
    return [_money(text) if text else NO_MONEY for text in texts]


def _attempts(values: Iterable[tuple[AttemptRecord, ...]]) -> list[bytes]:
    return [_encode(attempts) if attempts else b"" for attempts in values]


_CONVERSIONS: Mapping[str, Callable[[Any], Sequence[Any]]] = {
    "project_id": _projects,
    "request_id": _requests,
    "ts": _times,
    # The property `value` of an enumeration is a function of Python.
    "outcome": lambda outcomes: [*map(attrgetter("_value_"), outcomes)],
    **dict.fromkeys(IDS, _ids),
    **{name: partial(_within, maximum) for name, maximum in NUMBERS.items()},
    **dict.fromkeys(MONEY, _costs),
    "attempts": _attempts,
}


def _texts(frame: Frame, record: RequestRecord) -> tuple[Any, ...]:
    try:
        response = chat_response(frame, record)
        completion, parts = completion_text(response), divided(frame.request, record.project_id, record.session_id)
        prompt = b"" if parts else prompt_text(frame.request)
    except Exception as error:
        # Bodies of clients and providers have no bounds, and one odd body must neither cost the record nor hold up
        # those that come after it. The bodies are kept. The message of the error may quote them, so it stays out of the
        # log.
        logger.error("record.text_failed request_id=%s error=%s", record.request_id, type(error).__name__)
        response, prompt, completion, parts = frame.response, b"", b"", None
    if parts is None:
        return prompt, completion, _utf8(frame.request), _utf8(response), *_NOT_SHARED
    size = len(frame.request) - len(parts.request)
    return (
        parts.prompt, completion, parts.request, _utf8(response), parts.ids, parts.shared_at, size, parts.opening, parts
    )  # fmt: skip


def _utf8(body: bytes) -> bytes:
    if body.isascii():
        return body
    try:
        body.decode()
    except UnicodeDecodeError:
        return body.decode("utf-8", "replace").encode()
    return body


def chat_response(frame: Frame, record: RequestRecord) -> bytes:
    """Returns the response as a chat completion, or in its operation's own form if it has none.

    May raise anything for an odd body.
    """
    response = _as_chat(frame.response, record) if record.is_native else frame.response
    return assembled(response) if record.is_stream else response


def _as_chat(response: bytes, record: RequestRecord) -> bytes:
    adapter = native_adapter(record.provider, record.operation)
    return response if adapter is None else adapter.as_chat(response, stream=record.is_stream)


# Many requests have the same project, prompt and rollout.
@lru_cache(maxsize=4096)
def _shared_id(text: str) -> UUID:
    return UUID(text)


# Many requests cost the same. The store's driver takes decimal numbers as text in half the time.
@lru_cache(maxsize=4096)
def _money(text: str) -> str:
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise ValueError("a cost is not a decimal number") from error
    if not abs(value) <= _MAX_MONEY:
        raise ValueError("a cost is beyond Decimal(18, 10)")
    return str(value.quantize(_PLACES))
