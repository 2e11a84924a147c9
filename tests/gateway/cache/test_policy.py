from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from gateway.cache.policy import MAX_SECONDS, NO_CACHE, CachePolicy, cache_policy
from tests.tables.cases import tabled


@tabled
def test_cache_policy__header_and_project__are_combined(header: str, project_ttl: int, policy: CachePolicy) -> None:
    assert cache_policy(header, project_ttl) == policy


def test_cache_policy__for_nothing__is_one_object() -> None:
    assert all(cache_policy(header, 0) is NO_CACHE for header in ("", "no-store", "no-cache", "max-age=0", "x"))


@given(st.text(), st.integers(0, MAX_SECONDS))
def test_cache_policy__any_header__is_bounded(header: str, project_ttl: int) -> None:
    policy = cache_policy(header, project_ttl)
    assert 0 <= policy.max_age <= MAX_SECONDS
    assert 0 <= policy.ttl <= MAX_SECONDS
