from __future__ import annotations

from dataclasses import dataclass, field

from rollouts.evaluation.counts import ArmCounts, MinuteCounts, combined, sums_of
from rollouts.evaluation.one_user import joined_by_user
from rollouts.evaluation.statistics.grid import Histogram

MIN_REQUESTS = 30
"""A block closes when both arms together hold so many requests. Smaller blocks often lack an arm, and then say nothing.
"""


@dataclass(frozen=True, slots=True)
class Block:
    target: ArmCounts = field(default_factory=ArmCounts)
    baseline: ArmCounts = field(default_factory=ArmCounts)

    @property
    def full(self) -> bool:
        return self.target.requests + self.baseline.requests >= MIN_REQUESTS

    @property
    def empty(self) -> bool:
        return not any(any(sums_of(arm)) or arm.latency or arm.cost for arm in (self.target, self.baseline))

    def joined(self, counts: MinuteCounts) -> Block:
        if self.empty:
            return Block(counts.target, counts.baseline)
        return Block(_joined(self.target, counts.target), _joined(self.baseline, counts.baseline))


EMPTY = Block()


def without_unused_counts(block: Block) -> Block:
    return Block(_joined(EMPTY.target, block.target), _joined(EMPTY.baseline, block.baseline))


def joined_histograms(one: Histogram, other: Histogram) -> Histogram:
    if not one or not other:
        return one or other
    both = dict(one)
    for number, count in other.items():
        both[number] = both.get(number, 0) + count
    return dict(sorted(both.items()))


def _joined(one: ArmCounts, other: ArmCounts) -> ArmCounts:
    return ArmCounts(
        **combined(one, other),
        latency=joined_histograms(one.latency, other.latency),
        cost=joined_histograms(one.cost, other.cost),
        latency_read=joined_histograms(one.latency_read, other.latency_read),
        cost_read=joined_histograms(one.cost_read, other.cost_read),
        by_user=joined_by_user(one.by_user, other.by_user),
    )
