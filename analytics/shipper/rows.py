"""Makes a row of the table `ingest` from a spooled record.

Every value is limited to its column's range, so that one odd record cannot make the store refuse a batch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from operator import attrgetter
from typing import Any
from uuid import UUID

import msgspec

from analytics.request_log.columns import (
    DEFAULTS,
    FLAGS,
    IDS,
    INGESTED,
    MONEY,
    NO_ID,
    NO_MONEY,
    NUMBERS,
    TEXTS,
)
from analytics.request_log.record import TELEMETRY, RequestRecord
from analytics.shipper.streamed import assembled
from analytics.shipper.texts import completion_text, prompt_text
from analytics.spool.reader import Frame
from integrations.providers.native import native_adapter

logger = logging.getLogger("analytics.shipper")

_PLACES = Decimal("0.0000000001")
_MAX_MONEY = Decimal(99_999_999)
_LATEST = int(datetime(2049, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
# A getter of many fields takes a fifth of the time that as many calls of `getattr` take.
_ids_of, _texts_of, _numbers_of = attrgetter(*IDS), attrgetter(*TEXTS), attrgetter(*NUMBERS)
_flags_of, _money_of = attrgetter(*FLAGS), attrgetter(*MONEY)
_FITS_ALL = min(NUMBERS.values())


def to_row(frame: Frame, *, with_spans: bool = True) -> tuple[Any, ...]:
    """Returns values in the order of `INGESTED`, `ts` in Unix microseconds, costs as decimal text, and the two bodies
    as bytes in UTF-8. `with_spans` marks a request whose spans are derived when they are read.

    Raises ValueError for a frame of another version or without a UUID."""
    try:
        record = frame.record()
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    texts = _texts(frame, record)
    return (
        _shared_id(record.project_id),
        UUID(record.request_id),
        min(max(record.ts, 0), _LATEST),
        record.outcome.value,
        *[_shared_id(text) if text else NO_ID for text in _ids_of(record)],
        *_texts_of(record),
        *_numbers(record),
        *_flags_of(record),
        *[_money(text) if text else NO_MONEY for text in _money_of(record)],
        _attempts(record),
        record.attributes,
        # The application has sent the span of its own call.
        with_spans and record.source != TELEMETRY,
        *texts,
    )


def without_defaults(rows: Sequence[Sequence[Any]]) -> dict[str, tuple[Any, ...]]:
    """Returns the values by column, without the columns in which all rows have the default of the table.

    Half of the columns are such in most batches, and the driver and the store take as long for their values as for any
    others. The columns depend on the rows alone, so that a batch which is sent again is the same.
    """
    by_column = dict(zip(INGESTED, zip(*rows, strict=True), strict=True))
    return {name: values for name, values in by_column.items() if not _has_default(values, DEFAULTS.get(name))}


def _has_default(values: Sequence[Any], default: object) -> bool:
    return default is not None and values[0] == default and values.count(default) == len(values)


def _numbers(record: RequestRecord) -> Sequence[int]:
    numbers = _numbers_of(record)
    # Nearly all records have numbers that fit any of the columns, which takes a third of the time to see.
    if min(numbers) >= 0 and max(numbers) <= _FITS_ALL:
        return numbers
    return [min(max(value, 0), maximum) for value, maximum in zip(numbers, NUMBERS.values(), strict=True)]


def _texts(frame: Frame, record: RequestRecord) -> tuple[str, str, bytes, bytes]:
    """Returns prompt and completion as plain text, request and response as JSON."""
    try:
        response = chat_response(frame, record)
        prompt, completion = prompt_text(frame.request), completion_text(response)
    except Exception as error:
        # Bodies of clients and providers have no bounds, and one odd body must neither cost the record nor hold up
        # those that come after it. The bodies are kept. The message of the error may quote them, so it stays out of the
        # log.
        logger.error("record.text_failed request_id=%s error=%s", record.request_id, type(error).__name__)
        response, prompt, completion = frame.response, "", ""
    return prompt, completion, _utf8(frame.request), _utf8(response)


def _utf8(body: bytes) -> bytes:
    """Returns the body, with what is no UTF-8 in it replaced.

    The store's driver takes bytes as they are, so that a body becomes no text which has to be encoded again."""
    if body.isascii():
        return body
    try:
        body.decode()
    except UnicodeDecodeError:
        return body.decode("utf-8", "replace").encode()
    return body


def chat_response(frame: Frame, record: RequestRecord) -> bytes:
    """Returns the whole response of a record as a chat completion, or in the form of its operation where that has
    none. It may raise anything for an odd body."""
    response = _as_chat(frame.response, record) if record.is_native else frame.response
    return assembled(response) if record.is_stream else response


def _as_chat(response: bytes, record: RequestRecord) -> bytes:
    """Returns a response in the client's own protocol as a chat completion, in whose form all responses are read."""
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


def _attempts(record: RequestRecord) -> str:
    return msgspec.json.encode(record.attempts).decode() if record.attempts else ""
