"""The arithmetic of a comparison, on plain figures."""

from __future__ import annotations

import math

import hypothesis.strategies as st
from hypothesis import given

from gateway.playground.comparison import Contender, compared, tokens_per_dollar


def contender(
    model: str, *, latency_ms: float = 1.0, tokens: int = 100, cost: float | None = 0.5, succeeded: bool = True
) -> Contender:
    return Contender(model, succeeded, latency_ms, tokens, cost)


def test_compared__equals__names_the_first() -> None:
    found = compared([contender("a"), contender("b")])
    assert (found["fastest"], found["cheapest"]) == ("a", "a")


def test_compared__failure_is_faster_and_cheaper__does_not_count() -> None:
    found = compared([contender("a"), contender("b", latency_ms=0.1, cost=0.0, succeeded=False)])
    assert (found["fastest"], found["cheapest"]) == ("a", "a")
    assert found["cost_comparison"][1]["tokens_per_dollar"] is None


def test_compared__unknown_cost__is_not_the_cheapest() -> None:
    found = compared([contender("a", cost=None), contender("b", cost=3.0)])
    assert found["cheapest"] == "b"
    assert found["total_cost_usd"] == 3.0


def test_compared__nothing_known__names_nothing() -> None:
    found = compared([contender("a", cost=None, succeeded=False)])
    assert (found["fastest"], found["cheapest"], found["total_cost_usd"]) == (None, None, None)


def test_compared__free_model__is_cheapest_without_a_ratio() -> None:
    found = compared([contender("a", cost=0.0), contender("b", cost=1.0)])
    assert found["cheapest"] == "a"
    assert [costs["times_cheapest"] for costs in found["cost_comparison"]] == [None, None]
    assert [costs["tokens_per_dollar"] for costs in found["cost_comparison"]] == [None, 100.0]


def test_tokens_per_dollar__is_tokens_over_cost() -> None:
    assert tokens_per_dollar(18, 0.000078) == 230769.23
    assert tokens_per_dollar(18, None) is None


_CONTENDERS = st.lists(
    st.builds(
        Contender,
        st.text(min_size=1, max_size=3),
        st.booleans(),
        st.floats(0, 1e6),
        st.integers(0, 10**7),
        st.none() | st.decimals(0, 100, places=10).map(float),
    ),
    min_size=1,
    max_size=5,
)


@given(_CONTENDERS)
def test_compared__any_figures__named_ones_are_minimal_and_finite(contenders: list[Contender]) -> None:
    found = compared(contenders)
    good = [one for one in contenders if one.succeeded]
    costs = [one.cost_usd for one in good if one.cost_usd is not None]
    assert (found["fastest"] is None) == (not good)
    assert (found["cheapest"] is None) == (not costs)
    for one in good:
        if one.model == found["cheapest"] and one.cost_usd is not None:
            assert one.cost_usd >= min(costs)
            break
    for shown in found["cost_comparison"]:
        assert all(math.isfinite(value) for value in shown.values() if isinstance(value, int | float))
