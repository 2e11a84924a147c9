"""Both arms together against what was usual before. No comparison of the arms shows a fault that they share, such as a
project limit that the target's tokens use up and that refuses both."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rollouts.evaluation.statistics.margin import raised
from rollouts.evaluation.statistics.strata import Answering

MIN_USUAL = 30
"""The requests from which on earlier ones say what is usual. With fewer, nothing is worse than usual."""

_PLUS, _TIMES = 0.02, 2.0
_LATEST, _FEWEST = 30, 3
_FIRST = 10
"""So many blocks of the first stage are not compared with those before them, but say what later ones are compared with.
"""


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


@dataclass(frozen=True, slots=True)
class Rise:
    """Whether both arms together became worse since the stage began or with its weight. What was as bad before says
    nothing of the target, such as a provider that became worse between the day before and the start.

    `seen` are all blocks, each weighted by the share of its requests that went well, and `before` those before the
    stage and the first ten of the rollout. `stage` compares the others of the stage with them.
    """

    seen: Answering = field(default_factory=Answering)
    before: Answering = field(default_factory=Answering)
    learns: int = _FIRST
    stage: Together = field(default_factory=Together)

    def with_block(self, requests: int, unanswered: int, usual: float | None) -> Rise:
        seen = self.seen.with_events((0, 0), (unanswered, requests))
        if self.learns:
            return Rise(seen, seen, self.learns - 1)
        before = self.before
        if usual is not None and before.requests >= MIN_USUAL:
            usual = max(usual, raised(before.events, before.requests))
        return replace(self, seen=seen, stage=self.stage.with_block(requests, unanswered, usual))

    def at_next_stage(self) -> Rise:
        return Rise(self.seen, self.seen, learns=0)
