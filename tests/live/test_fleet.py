from __future__ import annotations

import pytest

from tests.live.fleet import former_tree, start_together
from tests.live.service import ROOT

# The number of the last ClickHouse migration before the figures of errors, and many others, were added.
_EARLY = 12


def test_hosts__started_together_on_empty_stores__all_serve_one_shows_the_key_and_limits_hold_without_redis() -> None:
    # One request of this limit is left over when three workers share it.
    outcome = start_together(3, limit=100)

    assert outcome.is_right, outcome
    assert outcome.keys_shown == 1
    assert outcome.without_redis == "503 limits_unavailable"


@pytest.mark.night
def test_hosts__started_together_beside_a_former_one_under_load__figures_are_those_of_the_requests() -> None:
    with former_tree(ROOT, _EARLY) as former:
        outcome = start_together(2, former=former, rows=20_000)

    assert outcome.is_right, outcome
    assert outcome.answered > 20_000
    assert outcome.units > 0
