from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gateway.cache.policy import MAX_SECONDS, NO_CACHE, CachePolicy, cache_policy


@pytest.mark.parametrize(
    ("header", "project_ttl", "policy"),
    [
        ("", 0, NO_CACHE),
        ("", 60, CachePolicy(60, 60)),
        ("max-age=30", 0, CachePolicy(30, 30)),
        ("Max-Age=30", 0, CachePolicy(30, 30)),
        ('max-age="30"', 0, CachePolicy(30, 30)),
        ("private, max-age=30", 0, CachePolicy(30, 30)),
        ("max-age=30", 60, CachePolicy(30, 60)),
        ("max-age=90", 60, CachePolicy(90, 90)),
        ("max-age=30, max-age=10", 0, CachePolicy(10, 10)),
        ("max-age=0", 60, CachePolicy(0, 60)),
        ("max-age=0", 0, NO_CACHE),
        ("no-cache", 60, CachePolicy(0, 60)),
        ("no-cache, max-age=30", 0, NO_CACHE),
        ("no-store", 60, NO_CACHE),
        ("no-store, max-age=30", 60, NO_CACHE),
        ("max-age=999999999999999999", 0, CachePolicy(MAX_SECONDS, MAX_SECONDS)),
        ("max-age=9999999999999999999", 0, NO_CACHE),
        ("max-age=-5", 0, NO_CACHE),
        ("max-age=1e3", 0, NO_CACHE),
        ("max-age=٣", 0, NO_CACHE),
        ("max-age=60,no-store", 60, NO_CACHE),
        ("max-age=60," + "x" * 200, 60, NO_CACHE),
        ("public", 0, NO_CACHE),
        ("public", 60, CachePolicy(60, 60)),
    ],
)
def test_cache_policy__header_and_project__are_combined(header: str, project_ttl: int, policy: CachePolicy) -> None:
    assert cache_policy(header, project_ttl) == policy


def test_cache_policy__for_nothing__is_one_object() -> None:
    assert all(cache_policy(header, 0) is NO_CACHE for header in ("", "no-store", "no-cache", "max-age=0", "x"))


@given(st.text(), st.integers(0, MAX_SECONDS))
def test_cache_policy__any_header__is_bounded(header: str, project_ttl: int) -> None:
    policy = cache_policy(header, project_ttl)
    assert 0 <= policy.max_age <= MAX_SECONDS
    assert 0 <= policy.ttl <= MAX_SECONDS
