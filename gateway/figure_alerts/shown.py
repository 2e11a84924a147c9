"""The state of an alert as the API and the pages show it."""

from __future__ import annotations

from gateway.tables.figure_alert import FigureAlert


def shown_state(row: FigureAlert) -> str:
    """Returns `silenced` for an alert that tells nobody anything now, unless it is `broken`, which is never hidden."""
    if row.is_silenced and row.state != FigureAlert.State.BROKEN:
        return "silenced"
    return row.state
