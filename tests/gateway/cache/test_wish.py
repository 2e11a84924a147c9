from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gateway.cache.wish import MAX_SECONDS, NOTHING, CacheWish, wish_of


@pytest.mark.parametrize(
    ("header", "project_ttl", "wish"),
    [
        ("", 0, NOTHING),
        ("", 60, CacheWish(60, 60)),
        ("max-age=30", 0, CacheWish(30, 30)),
        ("Max-Age=30", 0, CacheWish(30, 30)),
        ('max-age="30"', 0, CacheWish(30, 30)),
        ("private, max-age=30", 0, CacheWish(30, 30)),
        ("max-age=30", 60, CacheWish(30, 60)),
        ("max-age=90", 60, CacheWish(90, 90)),
        ("max-age=30, max-age=10", 0, CacheWish(10, 10)),
        ("max-age=0", 60, CacheWish(0, 60)),
        ("max-age=0", 0, NOTHING),
        ("no-cache", 60, CacheWish(0, 60)),
        ("no-cache, max-age=30", 0, NOTHING),
        ("no-store", 60, NOTHING),
        ("no-store, max-age=30", 60, NOTHING),
        ("max-age=999999999999999999", 0, CacheWish(MAX_SECONDS, MAX_SECONDS)),
        ("max-age=9999999999999999999", 0, NOTHING),
        ("max-age=-5", 0, NOTHING),
        ("max-age=1e3", 0, NOTHING),
        ("max-age=٣", 0, NOTHING),
        ("max-age=60,no-store", 60, NOTHING),
        ("max-age=60," + "x" * 200, 60, NOTHING),
        ("public", 0, NOTHING),
        ("public", 60, CacheWish(60, 60)),
    ],
)
def test_wish__of_a_header_and_a_project(header: str, project_ttl: int, wish: CacheWish) -> None:
    assert wish_of(header, project_ttl) == wish


def test_wish__for_nothing__is_one_object() -> None:
    assert all(wish_of(header, 0) is NOTHING for header in ("", "no-store", "no-cache", "max-age=0", "x"))


@given(st.text(), st.integers(0, MAX_SECONDS))
def test_wish__any_header__is_bounded(header: str, project_ttl: int) -> None:
    wish = wish_of(header, project_ttl)
    assert 0 <= wish.max_age <= MAX_SECONDS
    assert 0 <= wish.ttl <= MAX_SECONDS
