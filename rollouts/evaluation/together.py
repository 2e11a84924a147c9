"""Both arms together against the config's day before the start. No comparison of the arms shows a fault that they
share, such as a project limit that the target's tokens use up and that refuses both."""

from __future__ import annotations

from dataclasses import dataclass

MIN_USUAL = 30
"""The requests of the day before from which on it says what is usual. With fewer, nothing is worse than usual."""

_PLUS, _TIMES = 0.02, 2.0
_LATEST, _FEWEST = 30, 3


@dataclass(frozen=True, slots=True)
class Together:
    """The latest blocks of a stage, at most 30. A bit of `worse` says whether its block left more requests unanswered
    than usual; the lowest bit is the latest block. Once two thirds are worse, `owed` counts by how many blocks worse
    ones have outnumbered others since; they must be made up for.

    Whole blocks are counted rather than requests, so an outage of a quarter of an hour hardly matters when it is over:
    as a share of requests it would stand for hours. What lasted hours must be over for as long, because a limit that is
    used up by day is not mended in a quiet moment.
    """

    blocks: int = 0
    worse: int = 0
    owed: int = 0

    def with_block(self, requests: int, unanswered: int, usual: float | None) -> Together:
        if usual is None or not requests:
            return self
        worse = unanswered >= (usual + _PLUS) * requests and unanswered >= _TIMES * usual * requests
        blocks, latest = min(self.blocks + 1, _LATEST), (self.worse << 1 | worse) & ((1 << _LATEST) - 1)
        owed = self.owed and self.owed + (1 if worse else -1)
        if blocks >= _FEWEST and 3 * latest.bit_count() >= 2 * blocks:
            owed = max(owed, latest.bit_count())
        return Together(blocks, latest, owed)

    @property
    def is_worse(self) -> bool:
        return self.owed > 0
