from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.health.window import SLICE_SECONDS, WINDOW_SECONDS, Counts, Window, slice_of

NOW = 1_700_000_000.0

# The counts that each worker makes between two flushes: pairs of slice (0 is the oldest) and field.
NOTED = st.lists(st.tuples(st.integers(0, 9), st.integers(-2, 40)), max_size=12)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), NOTED), max_size=12), st.randoms(use_true_random=False))
def test_window__sums_received_in_any_order_and_twice__are_the_same_for_all(
    flushes: list[tuple[int, list[tuple[int, int]]]], chance: random.Random
) -> None:
    workers = [Window() for _ in range(3)]
    redis: dict[int, Counts] = {}
    published: list[tuple[int, Counts]] = []
    oldest = slice_of(NOW) - 9
    for worker, noted in flushes:
        for number, field in noted:
            workers[worker].note((oldest + number) * SLICE_SECONDS, [field])
        for number, counts in workers[worker].take_unsent(NOW).items():
            sums = redis.setdefault(number, {})
            for field, count in counts.items():
                sums[field] = sums.get(field, 0) + count
            published.append((number, {field: sums[field] for field in counts}))

    for window in workers:
        received = published * 2
        chance.shuffle(received)
        for number, sums in received:
            window.merge(number, sums)

    expected = Counter(field for _, noted in flushes for _, field in noted)
    assert all(window.totals(NOW) == expected for window in workers)


def test_merge__sums_beyond_what_is_known__are_news_once() -> None:
    window = Window()
    window.note(NOW, [3, 3, -1])
    window.take_unsent(NOW)

    assert window.merge(slice_of(NOW), {3: 5, -1: 1})
    assert not window.merge(slice_of(NOW), {3: 5, -1: 1})
    assert not window.merge(slice_of(NOW), {3: 4})
    assert window.totals(NOW) == {3: 5, -1: 1}


def test_note__while_earlier_counts_are_on_their_way__all_are_in_the_totals() -> None:
    window = Window()
    window.note(NOW, [3])
    sent = window.take_unsent(NOW)
    window.note(NOW, [3])
    window.merge(slice_of(NOW), {3: 1})

    assert sent == {slice_of(NOW): {3: 1}}
    assert window.totals(NOW) == {3: 2}


def test_totals__after_the_window__are_empty() -> None:
    window = Window()
    window.note(NOW, [3])

    assert window.totals(NOW + WINDOW_SECONDS - SLICE_SECONDS) == {3: 1}
    assert window.totals(NOW + WINDOW_SECONDS) == {}


def test_merge__slice_of_a_clock_that_is_ahead__is_kept() -> None:
    window = Window()
    window.merge(slice_of(NOW) + 1, {3: 2})
    window.note(NOW, [3])

    assert window.totals(NOW) == {3: 3}
    assert window.totals(NOW + SLICE_SECONDS) == {3: 3}


def test_take_unsent__older_than_the_window__is_forgotten() -> None:
    window = Window()
    window.note(NOW, [3])
    window.note(NOW + WINDOW_SECONDS, [4])

    assert window.take_unsent(NOW + WINDOW_SECONDS) == {slice_of(NOW + WINDOW_SECONDS): {4: 1}}
