from __future__ import annotations

import logging
import os
import random
from pathlib import Path

import pytest

from tests.journeys.history import Accident, accidents, play
from tests.small_disk import small_disk

logger = logging.getLogger("tests.history")

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

SECONDS = 15.0
# This seed kills Celery and the shipper, stops the engine, hangs Redis, fills the disk, and sets the clock forward and
# back.
_FIXED = 2180
# HISTORY_SEED replays a failed history: its seed is in the failure and in the log.
DRAWN = int(os.environ.get("HISTORY_SEED") or random.SystemRandom().randrange(1 << 31))


def test_history__same_seed__same_accidents_and_a_longer_one_begins_the_same() -> None:
    short = list(accidents(11, 60))

    assert list(accidents(11, 60)) == short
    assert list(accidents(11, 120))[: len(short)] == short
    assert {accident.kind for accident in accidents(11, 600)} == {"kill", "stop", "hang", "full", "jump"}
    assert all(isinstance(accident, Accident) for accident in short)


@pytest.mark.night
@pytest.mark.parametrize("which", ["fixed", "drawn"])
def test_history__accidents_under_traffic__answered_is_rows_is_rollups_is_spend(tmp_path: Path, which: str) -> None:
    seed = _FIXED if which == "fixed" else DRAWN
    logger.warning("history seed=%d seconds=%.0f", seed, SECONDS)

    with small_disk(tmp_path / "var", 1 << 30) as disk:
        ledger = play(seed, SECONDS, disk)

    assert ledger.faults() == []
    assert len(ledger.answered) > 50
