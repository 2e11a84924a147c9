"""Keeps the totals beside the shipper's state, so that each batch counts once.

The totals are written, with the batch's token, after the store has the batch and before the state says so. If the
shipper is killed in between, it ships the batch again under the same token, and both the store and the totals count it
once.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

import msgspec

from analytics.request_log.columns import Columns
from analytics.spool.durable import replace
from analytics.totals.counting import Counting
from analytics.totals.figures import Totals

logger = logging.getLogger("analytics.totals")

NAME = "shipper.totals"

_decoder = msgspec.json.Decoder(Totals)


def read_totals(directory: Path) -> Totals | None:
    try:
        return _decoder.decode((directory / NAME).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        logger.error("totals.unreadable directory=%s error=%s", directory, type(error).__name__)
        return None


class TotalsFile:
    """The shipper's file of totals. An unreadable file is replaced by zeros: readers of counters expect restarts, and
    records must not wait for it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAME
        self._counting = Counting(read_totals(directory) or Totals(since=int(time.time())))

    @property
    def totals(self) -> Totals:
        return self._counting.totals

    def count(self, columns: Columns, token: str) -> None:
        """Counts the rows of a batch once per token. After an OSError it may be called again."""
        totals = self.totals
        if totals.token != token:
            self._counting.add(columns)
            totals.batches += 1
            totals.token = token
        self._save(msgspec.json.encode(totals))

    def _save(self, content: bytes) -> None:
        replace(self._path, content)
