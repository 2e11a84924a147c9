"""Blocks: consecutive minutes of one stage that are joined until they hold enough requests to compare the arms."""

from __future__ import annotations

from dataclasses import dataclass, field

from rollouts.evaluation.counts import ArmCounts, MinuteCounts
from rollouts.evaluation.statistics.grid import Histogram

MIN_REQUESTS = 30
"""A block closes when both arms together hold so many requests. Smaller blocks often lack an arm, and then say nothing.
"""


@dataclass(frozen=True, slots=True)
class Block:
    """The counts of both arms in a block that is still open, without `units`, `reasons` and `users`."""

    target: ArmCounts = field(default_factory=ArmCounts)
    baseline: ArmCounts = field(default_factory=ArmCounts)

    @property
    def full(self) -> bool:
        return self.target.requests + self.baseline.requests >= MIN_REQUESTS

    @property
    def empty(self) -> bool:
        return not any(arm.requests or arm.judged or arm.latency or arm.cost for arm in (self.target, self.baseline))

    def joined(self, counts: MinuteCounts) -> Block:
        """Returns the block with the counts of one more minute."""
        if self.empty:
            return Block(counts.target, counts.baseline)
        return Block(_joined(self.target, counts.target), _joined(self.baseline, counts.baseline))


EMPTY = Block()


def without_unused_counts(block: Block) -> Block:
    """Returns an open block reduced to what the factors need, which is how the state stores it."""
    return block if block is EMPTY else Block(_bare(block.target), _bare(block.baseline))


def joined_histograms(one: Histogram, other: Histogram) -> Histogram:
    if not one or not other:
        return one or other
    both = dict(one)
    for number, count in other.items():
        both[number] = both.get(number, 0) + count
    return dict(sorted(both.items()))


def _joined(one: ArmCounts, other: ArmCounts) -> ArmCounts:
    return ArmCounts(
        requests=one.requests + other.requests,
        unanswered=one.unanswered + other.unanswered,
        judged=one.judged + other.judged,
        errors=one.errors + other.errors,
        answered=one.answered + other.answered,
        contract=one.contract + other.contract,
        truncated=one.truncated + other.truncated,
        fallback=one.fallback + other.fallback,
        empty=one.empty + other.empty,
        stopped=one.stopped + other.stopped,
        latency=joined_histograms(one.latency, other.latency),
        cost=joined_histograms(one.cost, other.cost),
    )


def _bare(arm: ArmCounts) -> ArmCounts:
    return ArmCounts(
        requests=arm.requests,
        unanswered=arm.unanswered,
        judged=arm.judged,
        errors=arm.errors,
        answered=arm.answered,
        contract=arm.contract,
        truncated=arm.truncated,
        fallback=arm.fallback,
        empty=arm.empty,
        stopped=arm.stopped,
        latency=arm.latency,
        cost=arm.cost,
    )
