"""A host's side: hands small batches over to the inserters. The records stay in the host's spool until they are stored.

A batch that may have been taken is not inserted here before the time in which an inserter may still begin to insert it
has passed, and every insert that runs then has ended: what is not in the request log by then was not stored. A process
that is stopped for longer than that, in the very moment before it sends its insert, may still store rows twice;
`analytics.reconciliation.duplicates` removes them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any
from uuid import UUID

import msgspec
from django.conf import settings

from analytics.request_log.columns import Columns, rows_of
from analytics.shipper.inserting import exchange
from analytics.shipper.inserting.exchange import Said
from analytics.shipper.splitting import Divided
from core.redis.failures import REDIS_ERRORS, reason

logger = logging.getLogger("analytics.inserters")

MAX_ROWS = 100
MAX_BYTES = 256 * 1024

_LOOK_SECONDS = 0.25
_ASK_SECONDS = 3.0
# After a Redis that did not answer, or has no room, batches are not offered for this long.
_PAUSE_SECONDS = 60.0
# The longest time from an inserter's last question to the beginning of its insert is that of a query, of a second try
# on a new connection, and this.
_MARGIN_SECONDS = 20.0

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, list[Any]]).decode
_TYPED: Mapping[str, Any] = {"project_id": list[UUID], "shared_texts": list[Divided | tuple[()]]}


def encoded(columns: Columns) -> bytes:
    return _encode(columns)


def decoded(rows: bytes) -> Columns:
    """The store's driver takes ids as text too."""
    columns: dict[str, Sequence[Any]] = dict(_decode(rows))
    return columns | {name: msgspec.convert(columns[name], kind) for name, kind in _TYPED.items() if name in columns}


class HandingOver:
    def __init__(self) -> None:
        self._decided_at = 0
        self._former = ""
        self._away_until = 0.0

    def takes(self, *, rows: int, size: int) -> bool:
        """Whether a new batch is offered: a small one while an inserter lives."""
        if rows > MAX_ROWS or size > MAX_BYTES or monotonic() < self._away_until:
            return False
        try:
            self._decided_at = exchange.inserter_lives()
        except REDIS_ERRORS:
            # The web workers say that Redis is away.
            self._away_until = monotonic() + _PAUSE_SECONDS
            return False
        return bool(self._decided_at)

    def outcome(self, columns: Columns, token: str, stop: threading.Event, *, is_new: bool) -> Said | None:
        """Offers a new batch and waits for what becomes of it; returns None if stopped. A batch that was stored is
        `STORED`, one that no inserter took `WITHDRAWN`. Of others the store may have rows, or get them yet: those that
        are `APART` once the inserts that run have ended, those that are `LOST` no more."""
        heard, ask_at = monotonic(), 0.0
        if is_new:
            try:
                exchange.offer(token, encoded(columns), decided_at=self._decided_at, former=self._former)
            except REDIS_ERRORS as error:
                logger.warning("inserters.offer_failed reason=%s", reason(error))
                self._away_until = heard + _PAUSE_SECONDS
        while True:
            try:
                said = exchange.answer(token)
                if said is None and monotonic() >= ask_at:
                    # A question that fails may be heard late, and another one would keep the batch alive.
                    heard, ask_at = monotonic(), float("inf")
                    said = exchange.ask(token)
                    if said is Said.WAITS:
                        ask_at = heard + _ASK_SECONDS
            except REDIS_ERRORS:
                said = None
            if said in (Said.STORED, Said.APART, Said.WITHDRAWN):
                self._former = token
                return said
            if monotonic() - heard > _settled_seconds():
                logger.warning("inserters.batch_lost rows=%d", rows_of(columns))
                return Said.LOST
            if stop.wait(_LOOK_SECONDS):
                return None


def _settled_seconds() -> float:
    # An offer or a question may arrive late, though not later than the batch lives without it.
    return 3 * exchange.HEARD_SECONDS + settings.CLICKHOUSE_QUERY_SECONDS + _MARGIN_SECONDS
