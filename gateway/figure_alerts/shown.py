from __future__ import annotations

from gateway.tables.figure_alert import FigureAlert


def shown_state(row: FigureAlert) -> str:
    """Returns `silenced` if the alert sends nothing now, unless it is `broken`, which is never hidden."""
    if row.is_silenced and row.state != FigureAlert.State.BROKEN:
        return "silenced"
    return row.state
