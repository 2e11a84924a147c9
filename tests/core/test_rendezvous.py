from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rendezvous import ranked

WEIGHTS = {"a": 70, "b": 20, "c": 10}
KEYS = [f"session-{number}" for number in range(10_000)]
weights_of_names = st.dictionaries(st.text(min_size=1, max_size=8), st.integers(0, 1000), min_size=1, max_size=6)


def test_ranked__many_keys__first_in_proportion_to_the_weights() -> None:
    shares = Counter(ranked(key, WEIGHTS)[0] for key in KEYS)

    # The keys are fixed, so the shares are the same in every run.
    assert {name: pytest.approx(weight, abs=1) for name, weight in WEIGHTS.items()} == {
        name: 100 * count / len(KEYS) for name, count in shares.items()
    }


def test_ranked__weight_0__comes_last() -> None:
    assert ranked("any", {"spare": 0, "second": 0, "main": 1}) == ["main", "spare", "second"]


@given(key=st.text(max_size=40), weights=weights_of_names)
def test_ranked__same_key__is_the_same_order_of_all_names(key: str, weights: dict[str, int]) -> None:
    assert ranked(key, weights) == ranked(key, weights)
    assert sorted(ranked(key, weights)) == sorted(weights)


@given(key=st.text(max_size=40), weights=weights_of_names, place=st.integers(0, 5))
def test_ranked__without_one_name__the_others_keep_their_order(key: str, weights: dict[str, int], place: int) -> None:
    gone = list(weights)[place % len(weights)]
    rest = {name: weight for name, weight in weights.items() if name != gone}

    assert ranked(key, rest) == [name for name in ranked(key, weights) if name != gone]
