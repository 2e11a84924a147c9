"""What follows from a look: which entries of the history, and which of them are sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.figure_alerts.check import Transition, transition
from gateway.tables.figure_alert import FigureAlert

NOW = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
AN_HOUR_AGO, IN_AN_HOUR = NOW - HOUR, NOW + HOUR


def told(state: str, told_state: str = "", told_at: datetime | None = None, *others: Any) -> FigureAlert:
    """Returns an alert; `others` are until when it is silenced, and after how many minutes it is repeated."""
    silenced_until, repeat_minutes = (*others, None, None)[:2]
    return FigureAlert(
        state=state,
        told_state=told_state,
        told_at=told_at,
        silenced_until=silenced_until,
        repeat_minutes=repeat_minutes,
    )


FIRING = told("firing", "firing", AN_HOUR_AGO)
HUSHED = told("firing", "", None, IN_AN_HOUR)


@pytest.mark.parametrize(
    ("before", "state", "expected"),
    [
        (told("ok"), "ok", None),
        (told("no_data"), "ok", None),
        (told("ok"), "no_data", ("no_data", False)),
        (told("no_data"), "no_data", None),
        (told("ok"), "firing", ("fired", True)),
        (told("no_data"), "firing", ("fired", True)),
        # It is sent once, unless it is to be repeated.
        (FIRING, "firing", None),
        (told("firing", "firing", AN_HOUR_AGO, None, 61), "firing", None),
        (told("firing", "firing", AN_HOUR_AGO, None, 60), "firing", ("repeated", True)),
        (FIRING, "ok", ("resolved", True)),
        # Without data it is neither resolved nor sent anew when it goes on.
        (FIRING, "no_data", ("no_data", False)),
        (told("no_data", "firing", AN_HOUR_AGO), "firing", ("fired", False)),
        (told("no_data", "firing", AN_HOUR_AGO), "ok", ("resolved", True)),
        (told("ok"), "broken", ("broken", True)),
        (FIRING, "broken", ("broken", True)),
        (told("broken", "broken", AN_HOUR_AGO), "broken", None),
        (told("broken", "broken", AN_HOUR_AGO, None, 5), "broken", ("broken", True)),
        (told("broken", "broken", AN_HOUR_AGO), "ok", ("resolved", True)),
        # A silence keeps the messages back; what is owed is sent when it ends.
        (told("ok", "", None, IN_AN_HOUR), "firing", ("fired", False)),
        (HUSHED, "firing", None),
        (HUSHED, "ok", ("resolved", False)),
        (told("firing", "", None, AN_HOUR_AGO), "firing", ("fired", True)),
        (told("firing", "firing", AN_HOUR_AGO, IN_AN_HOUR, 5), "firing", None),
        (told("firing", "firing", AN_HOUR_AGO, IN_AN_HOUR), "ok", ("resolved", False)),
        (told("ok", "firing", AN_HOUR_AGO, AN_HOUR_AGO), "ok", ("resolved", True)),
    ],
)
def test_transition__each_case__its_entry_and_whether_it_is_sent(
    before: FigureAlert, state: str, expected: tuple[str, bool] | None
) -> None:
    found = transition(before, state, NOW)

    assert (None if found is None else (found.kind.value, found.is_sent)) == expected
    assert found is None or isinstance(found, Transition)
