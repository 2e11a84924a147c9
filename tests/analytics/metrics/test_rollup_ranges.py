from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from analytics.queries.rollup_ranges import TICK, split

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

moments = st.builds(
    lambda day, unit, near: _EPOCH + day * _DAY + unit + near * TICK,
    st.integers(20_000, 20_004),
    st.sampled_from([timedelta(0), _HOUR, 5 * _HOUR, 5 * _HOUR + 7 * _MINUTE, timedelta(seconds=86_399)]),
    st.integers(-2, 2),
)


@given(moments, moments, st.sampled_from([[], [_DAY], [_DAY, _HOUR], [_HOUR], [_MINUTE], [_DAY, _HOUR, _MINUTE]]))
def test_split__any_range__whole_units_and_rest_are_the_range(
    one: datetime, other: datetime, units: list[timedelta]
) -> None:
    start, stop = sorted((one, other))

    pieces, rest = split(start, stop, units)

    spans = sorted([*rest, *(span for piece in pieces for span in piece)])
    assert all(begin < until for begin, until in spans)
    assert sum((until - begin for begin, until in spans), timedelta(0)) == stop - start
    assert all(until <= begin for (_, until), (begin, _) in pairwise(spans))
    assert not spans or (spans[0][0], spans[-1][1]) == (start, stop)
    for unit, piece in zip(units, pieces, strict=True):
        assert all((border - _EPOCH) % unit == timedelta(0) for span in piece for border in span)
        finest = unit
    # The parts that the requests answer are shorter than the finest unit at each end.
    assert not units or all(until - begin < 2 * finest for begin, until in rest)


def test_split__nothing__nothing() -> None:
    assert split(_EPOCH, _EPOCH, [_DAY]) == ([[]], [])
