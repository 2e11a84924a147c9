"""Keeps the totals beside the shipper's state, so that each batch counts once.

The totals are written, with the batch's token, after the store has the batch and before the state says so. A shipper
that was killed in between ships the batch again under the same token, the store takes it once, and so do the totals.
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
    """Returns the totals of a spool's directory; None when there are none yet or the file cannot be read."""
    try:
        return _decoder.decode((directory / NAME).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        logger.error("totals.unreadable directory=%s error=%s", directory, type(error).__name__)
        return None


class TotalsFile:
    """The shipper's file of totals. A file that cannot be read is started anew: readers of counters expect them to
    start at zero now and then, and records need not wait for it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAME
        self._counting = Counting(read_totals(directory) or Totals(since=int(time.time())))

    @property
    def totals(self) -> Totals:
        return self._counting.totals

    def count(self, columns: Columns, token: str) -> None:
        """Counts the rows of a batch unless it was counted before. Raises OSError; then it may be called again."""
        totals = self.totals
        if totals.token != token:
            self._counting.add(columns)
            totals.batches += 1
            totals.token = token
        self._save(msgspec.json.encode(totals))

    def _save(self, content: bytes) -> None:
        """Saves the totals, and returns when they would survive a loss of power; a reader sees the old ones or the new
        ones."""
        replace(self._path, content)
