"""Tests the idle time of connections, which is learned from peers that close them after a certain time."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.transport.idle import IdleAges, before, keep_alive_timeout

MAX_AGE = 30.0
HOUR = 3600.0


class Peer:
    """A peer that ends a connection after `idle_timeout` idle seconds; each message takes `way` seconds."""

    def __init__(self, idle_timeout: float, way: float, ages: IdleAges) -> None:
        self.idle_timeout = idle_timeout
        self.way = way
        self.ages = ages
        self.races = 0

    def idle_for(self, seconds: float, now: float) -> None:
        """Sends a request after this idle time, over the same connection if it still exists."""
        if seconds >= self.ages.limit:
            return
        # The peer measures from the moment when it sends the answer, and its closing takes as long to arrive, so both
        # times are shifted by one way.
        if seconds >= self.idle_timeout:
            self.ages.ended(self.idle_timeout, now)
        elif seconds + 2 * self.way >= self.idle_timeout:
            self.races += 1
            self.ages.failed(seconds, now)
        else:
            self.ages.served = max(self.ages.served, seconds)


@given(
    idle_timeout=st.floats(2.0, 60.0),
    way=st.floats(0.0001, 0.2),
    seed=st.integers(),
    busy=st.floats(0.01, 30.0),
)
def test_races__with_a_peer_of_any_idle_timeout__one_at_most_before_it_is_known(
    idle_timeout: float, way: float, seed: int, busy: float
) -> None:
    ages = IdleAges(MAX_AGE)
    peer, now, draw = Peer(idle_timeout, way, ages), 0.0, random.Random(seed)
    ages.look(now)

    for _ in range(300):
        seconds = draw.expovariate(1 / busy)
        now += min(seconds, 1.0)  # The epoch of the learned limit does not end meanwhile.
        peer.idle_for(seconds, now)

    assert peer.races <= 1
    assert ages.limit > 0


def test_limit__after_a_peer_started_anew__lets_live_what_serves() -> None:
    ages = IdleAges(MAX_AGE)
    ages.look(0.0)
    ages.served = 2.0

    for age in (0.01, 0.5, 1.9):
        ages.ended(age, 1.0)

    assert ages.limit == MAX_AGE
    ages.ended(5.0, 1.0)
    assert ages.limit == 4.0


def test_limit__of_a_peer_that_ends_every_connection_at_once__is_next_to_nothing() -> None:
    ages = IdleAges(MAX_AGE)

    ages.ended(0.0002, 1.0)

    assert ages.limit == pytest.approx(0.0001)


def test_limit__peer_fails_at_work_on_young_connections__is_as_it_was() -> None:
    ages = IdleAges(MAX_AGE)

    ages.failed(0.02, 1.0)

    assert ages.limit == MAX_AGE


def test_limit__two_hosts_behind_a_name__is_the_hasty_ones() -> None:
    ages = IdleAges(MAX_AGE)
    ages.look(0.0)
    ages.served = 20.0

    ages.failed(4.9, 1.0)

    assert ages.limit == pytest.approx(3.9)


def test_limit__learned_long_ago__is_forgotten() -> None:
    ages = IdleAges(MAX_AGE)
    ages.ended(5.0, 1.0)
    assert ages.limit == 4.0

    ages.look(HOUR)

    assert ages.limit == MAX_AGE


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(b"timeout=5", 4.0), (b"timeout=1, max=100", 0.5), (b"max=3, Timeout=60", 59.0), (b"timeout=0", 0.0)],
)
def test_promise__of_the_peer__is_kept_below(header: bytes, seconds: float) -> None:
    assert keep_alive_timeout(header) == seconds


@pytest.mark.parametrize("header", [b"", b"max=5", b"timeout=", b"timeout=-1", b"timeout=soon"])
def test_promise__unreadable__is_none(header: bytes) -> None:
    assert keep_alive_timeout(header) is None


@given(st.floats(0, 1e6))
def test_age__before_another__is_below_it_and_not_negative(seconds: float) -> None:
    assert 0 <= before(seconds) <= seconds
