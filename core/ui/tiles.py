from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tile:
    label: str
    value: str
    # How the figure changed, or what it is measured against.
    note: str = ""
    href: str = ""
    kind: str = "neutral"
    # The address of the form that keeps the figure as a chart of a dashboard.
    keep: str = ""
    # The address of the form that alerts on the figure.
    alert: str = ""
