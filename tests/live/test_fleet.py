from __future__ import annotations

import pytest

from tests.live.fleet import former_tree, start_together
from tests.live.service import ROOT

# The number of the last ClickHouse migration before the figures of errors, and many others, were added.
_EARLY = 12


def test_hosts__started_together_on_empty_stores__all_serve_and_one_shows_the_key() -> None:
    outcome = start_together(3)

    assert outcome.is_right, outcome
    assert outcome.keys_shown == 1


@pytest.mark.night
def test_hosts__started_together_beside_a_former_one_under_load__figures_are_those_of_the_requests() -> None:
    with former_tree(ROOT, _EARLY) as former:
        outcome = start_together(2, former=former, rows=20_000)

    assert outcome.is_right, outcome
    assert outcome.answered > 20_000
    assert outcome.units > 0
