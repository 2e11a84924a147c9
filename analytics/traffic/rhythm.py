from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, pairwise

HOUR = timedelta(hours=1)

# The shares of a working day by hour (UTC): high in the office hours of Europe and America, low at night.
_BY_HOUR = (3, 2, 2, 2, 2, 3, 5, 8, 11, 13, 14, 13, 12, 14, 15, 15, 14, 12, 10, 8, 7, 6, 5, 4)
_BY_WEEKDAY = (1.0, 1.06, 1.08, 1.04, 0.92, 0.42, 0.38)
_GROWTH = 2.2  # The last day has this many times the requests of the first.
_NOISE = 0.12

# A block of an insert is one part for every partition and table that it touches. Its size is large, so that there are
# few parts, and small enough for the memory of an embedded engine. Texts make a row twenty times as heavy, or more.
MIN_SLICE = 20_000
MAX_SLICE = 100_000
MAX_TEXT_SLICE = 20_000


@dataclass(frozen=True, slots=True)
class Slice:
    """Sessions with `requests` requests that begin between the first and last of `borders`, written as one block.

    `cumulative` are the shares of them that have begun at `borders`, rising from 0 to 1.
    """

    number: int
    requests: int
    borders: Sequence[datetime]
    cumulative: Sequence[float]
    with_texts: bool


def hourly_weights(start: datetime, end: datetime, seed: int) -> list[tuple[datetime, float]]:
    chance = random.Random(f"rhythm {seed}")  # noqa: S311 - a simulation
    weights = []
    moment = start
    while moment < end:
        following = min(moment.replace(minute=0, second=0, microsecond=0) + HOUR, end)
        progress = (moment - start) / (end - start)
        weight = _BY_HOUR[moment.hour] * _BY_WEEKDAY[moment.weekday()] * (1 + (_GROWTH - 1) * progress)
        weights.append((moment, weight * chance.uniform(1 - _NOISE, 1 + _NOISE) * ((following - moment) / HOUR)))
        moment = following
    return weights


def slices(
    requests: int,
    start: datetime,
    end: datetime,
    *,
    texts_from: datetime,
    seed: int,
    largest_with_texts: int = MAX_TEXT_SLICE,
) -> list[Slice]:
    hours = hourly_weights(start, end, seed)
    total = sum(weight for _, weight in hours)
    pieces = list(_pieces(hours, end, math.ceil(max(w for _, w in hours) * requests / total / largest_with_texts)))
    groups = list(_groups(pieces, requests / total, texts_from, largest_with_texts))
    counts = _rounded([requests * sum(weight for _, weight in group) / total for group in groups], requests)
    found = []
    for number, (group, count, following) in enumerate(zip(groups, counts, [*groups[1:], None], strict=True), 1):
        until = following[0][0] if following else end
        found.append(_slice(number, count, group, until, with_texts=group[0][0] >= texts_from))
    return [one for one in found if one.requests]


def _pieces(hours: Sequence[tuple[datetime, float]], end: datetime, parts: int) -> Iterator[tuple[datetime, float]]:
    for (moment, weight), (following, _) in pairwise([*hours, (end, 0.0)]):
        for part in range(parts):
            yield moment + (following - moment) * part / parts, weight / parts


def _groups(
    pieces: Sequence[tuple[datetime, float]], per_weight: float, texts_from: datetime, largest_with_texts: int
) -> Iterator[list[tuple[datetime, float]]]:
    """A slice is several whole days while these are small, else parts of a day."""
    group: list[tuple[datetime, float]] = []
    filled = 0.0
    for moment, weight in pieces:
        with_texts = moment >= texts_from
        largest = largest_with_texts if with_texts else MAX_SLICE
        full = filled + weight * per_weight > largest
        turned = bool(group) and with_texts and group[-1][0] < texts_from
        midnight = moment.hour == moment.minute == 0 and filled >= MIN_SLICE
        if group and (full or turned or midnight):
            yield group
            group, filled = [], 0.0
        group.append((moment, weight))
        filled += weight * per_weight
    yield group


def _slice(
    number: int, count: int, group: Sequence[tuple[datetime, float]], until: datetime, *, with_texts: bool
) -> Slice:
    total = sum(weight for _, weight in group)
    borders = [moment for moment, _ in group] + [until]
    cumulative = [0.0, *accumulate(weight / total for _, weight in group)]
    cumulative[-1] = 1.0
    return Slice(number, count, borders, cumulative, with_texts)


def _rounded(shares: Sequence[float], total: int) -> list[int]:
    ends = [round(share) for share in accumulate(shares)]
    ends[-1] = total
    return [after - before for before, after in pairwise([0, *ends])]
