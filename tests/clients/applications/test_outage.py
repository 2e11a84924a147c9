"""Clients of applications do not notice an outage of all stores. `make outage` takes the full five minutes."""

from __future__ import annotations

from tests.clients.applications.outage import outage
from tests.night import cases
from tests.waiting import wait_until

# The worker re-reads its snapshots this often, instead of every 30 seconds.
_SHORTENED = {"SNAPSHOT_SECONDS": "0.2"}
# By the clocks of the clients the looks are more than five minutes, with steps around the 30 seconds for which a prompt
# is fresh; at night there are 31 of them. After the last step the kept prompts are older than the 330 seconds for which
# they may be shown at once.
_STEPS = [*cases([5, 10, 16] * 10, by_day=[5, 10, 16, 31, 250]), 400]


def test_stores__hung_and_then_dead_for_five_minutes__are_not_noticed(compiled: None) -> None:
    with outage(_SHORTENED) as running:
        log_before = running.service.log
        assert "database.away" not in log_before

        running.stores.freeze()
        for seconds in _STEPS:
            running.look(after=seconds)
        assert running.figures.wrong == []

        running.stores.kill_frozen()
        # From here on every one of the worker's attempts to read fails, five a second.
        wait_until(lambda: "database.away" in running.service.log, what="a re-read that failed")
        wait_until(lambda: "subscription.lost" in running.service.log, what="Redis to be missed")
        for seconds in _STEPS:
            running.look(after=seconds)

        assert running.figures.wrong == []
        assert running.figures.fetches == 2 * 5 * len(_STEPS)
        assert set(running.figures.new) == {"python", "typescript"}
