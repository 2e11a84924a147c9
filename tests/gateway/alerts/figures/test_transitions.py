"""What follows from a look: which entries of the history, and which of them are sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gateway.figure_alerts.check import Told, Transition, transition

NOW = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
AN_HOUR_AGO, IN_AN_HOUR = NOW - HOUR, NOW + HOUR
FIRING = Told("firing", "firing", AN_HOUR_AGO)
HUSHED = Told("firing", "", None, IN_AN_HOUR)


@pytest.mark.parametrize(
    ("before", "state", "expected"),
    [
        (Told("ok"), "ok", None),
        (Told("no_data"), "ok", None),
        (Told("ok"), "no_data", ("no_data", False)),
        (Told("no_data"), "no_data", None),
        (Told("ok"), "firing", ("fired", True)),
        (Told("no_data"), "firing", ("fired", True)),
        # It is sent once, unless it is to be repeated.
        (FIRING, "firing", None),
        (Told("firing", "firing", AN_HOUR_AGO, None, 61), "firing", None),
        (Told("firing", "firing", AN_HOUR_AGO, None, 60), "firing", ("repeated", True)),
        (FIRING, "ok", ("resolved", True)),
        # Without data it is neither resolved nor sent anew when it goes on.
        (FIRING, "no_data", ("no_data", False)),
        (Told("no_data", "firing", AN_HOUR_AGO), "firing", ("fired", False)),
        (Told("no_data", "firing", AN_HOUR_AGO), "ok", ("resolved", True)),
        (Told("ok"), "broken", ("broken", True)),
        (FIRING, "broken", ("broken", True)),
        (Told("broken", "broken", AN_HOUR_AGO), "broken", None),
        (Told("broken", "broken", AN_HOUR_AGO, None, 5), "broken", ("broken", True)),
        (Told("broken", "broken", AN_HOUR_AGO), "ok", ("resolved", True)),
        # A silence keeps the messages back; what is owed is sent when it ends.
        (Told("ok", "", None, IN_AN_HOUR), "firing", ("fired", False)),
        (HUSHED, "firing", None),
        (HUSHED, "ok", ("resolved", False)),
        (Told("firing", "", None, AN_HOUR_AGO), "firing", ("fired", True)),
        (Told("firing", "firing", AN_HOUR_AGO, IN_AN_HOUR, 5), "firing", None),
        (Told("firing", "firing", AN_HOUR_AGO, IN_AN_HOUR), "ok", ("resolved", False)),
        (Told("ok", "firing", AN_HOUR_AGO, AN_HOUR_AGO), "ok", ("resolved", True)),
    ],
)
def test_transition__each_case__its_entry_and_whether_it_is_sent(
    before: Told, state: str, expected: tuple[str, bool] | None
) -> None:
    found = transition(before, state, NOW)

    assert (None if found is None else (found.kind.value, found.is_sent)) == expected
    assert found is None or isinstance(found, Transition)
