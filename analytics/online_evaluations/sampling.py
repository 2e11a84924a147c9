"""Which answers are due for scores and labels: hashes of ids decide, never an answer or a score. Pure.

The hash of the sample is SHA-256 of `<unit>:eval:<evaluator>:<request>`. The unit is the rollout for a matched sample,
else the evaluation. A block is a minute of record: the answers whose rows came into the request log in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import groupby
from uuid import UUID

MAX_PER_BLOCK = 1_000
"""The number of answers of a block that are due at most: those with the lowest hashes. A matched sample has so many of
each rollout."""

BASELINE = "baseline"
_BITS = 63
_NO_UUID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Answered:
    """`is_compared`: the answer's rollout counts it, in one of its arms."""

    request_id: UUID
    ts: datetime
    recorded_at: datetime
    rollout_id: UUID
    rollout_stage: int
    variant: str
    prompt_config_id: UUID
    prompt_version: int
    is_compared: bool = False


@dataclass(frozen=True, slots=True)
class Due:
    answered: Answered
    position: int


def minute_of(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def by_minute(rows: Iterable[Answered]) -> Iterator[tuple[datetime, list[Answered]]]:
    for minute, block in groupby(sorted(rows, key=_minute), key=_minute):
        yield minute, list(block)


def position_of(unit: UUID, evaluator_id: UUID, request_id: UUID) -> int:
    return _bits(f"{unit}:eval:{evaluator_id}:{request_id}")


def is_label_due(unit: UUID, evaluator_id: UUID, request_id: UUID, share: float | None) -> bool:
    """Uses another hash than the sample, so that labelled answers are a fair sample of the due ones."""
    return share is not None and _bits(f"{unit}:label:{evaluator_id}:{request_id}") < _below(share)


def sample(block: Iterable[Answered], *, evaluation_id: UUID, evaluator_id: UUID, rate: float) -> list[Due]:
    below = _below(rate)
    hashed = _hashed(block, evaluation_id, evaluator_id)
    return [one for one in hashed if one.position < below][:MAX_PER_BLOCK]


def matched_sample(block: Iterable[Answered], *, evaluator_id: UUID, rate: float) -> list[Due]:
    """Takes the share `rate` of the smaller arm, and as many answers of the other arm, by lowest hash."""
    below = _below(rate)
    by_rollout: dict[UUID, list[Answered]] = {}
    for one in block:
        if one.is_compared and one.rollout_id != _NO_UUID:
            by_rollout.setdefault(one.rollout_id, []).append(one)
    due: list[Due] = []
    for rollout_id, rows in by_rollout.items():
        hashed = _hashed(rows, rollout_id, evaluator_id)
        arms = (
            [one for one in hashed if one.answered.variant != BASELINE],
            [one for one in hashed if one.answered.variant == BASELINE],
        )
        fewer = min(arms, key=len)
        pairs = min(sum(one.position < below for one in fewer), MAX_PER_BLOCK // 2)
        due += [one for arm in arms for one in arm[:pairs]]
    return due


def _hashed(rows: Iterable[Answered], unit: UUID, evaluator_id: UUID) -> Sequence[Due]:
    found = (Due(one, position_of(unit, evaluator_id, one.request_id)) for one in rows)
    return sorted(found, key=lambda one: (one.position, one.answered.request_id))


def _minute(answered: Answered) -> datetime:
    return minute_of(answered.recorded_at)


def _bits(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8]) >> (64 - _BITS)


def _below(rate: float) -> int:
    return int(min(max(rate, 0.0), 1.0) * (1 << _BITS))
