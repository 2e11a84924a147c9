from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_WIDTH, _ROW = 960, 450
_PANEL_WIDTH, _PANEL_HEIGHT, _LEFT, _TOP = 370, 250, 60, 60
_PANEL_STEP = 480
_COLOURS = ("#1f6f8b", "#c1440e", "#5b8c3a", "#8a4f9e", "#b8860b", "#555555")


@dataclass(frozen=True, slots=True)
class Curve:
    """The share of `runs` in which an event had happened by x. `moments` are the x of the event, in any order."""

    label: str
    moments: Sequence[float]
    runs: int


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    x_label: str
    max_x: float
    highest: float
    curves: Sequence[Curve]
    logarithmic: bool = False
    line: float | None = None


def svg(panels: Sequence[Panel]) -> str:
    height = _ROW * ((len(panels) + 1) // 2)
    body = "\n".join(
        f'<g transform="translate({index % 2 * _PANEL_STEP} {index // 2 * _ROW})">\n{_panel(panel, _LEFT)}\n</g>'
        for index, panel in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        f' font-family="system-ui, sans-serif" font-size="12" fill="#222">\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _panel(panel: Panel, left: float) -> str:
    parts = [f'<text x="{left}" y="{_TOP - 24}" font-size="14" font-weight="600">{escape(panel.title)}</text>']
    parts += _axes(panel, left)
    if panel.line is not None:
        y = _y(panel, panel.line)
        parts.append(
            f'<path d="M{left} {y:.1f}H{left + _PANEL_WIDTH}" fill="none" stroke="#888" stroke-dasharray="4 4"/>'
        )
    for index, curve in enumerate(panel.curves):
        colour = _COLOURS[index % len(_COLOURS)]
        parts.append(f'<path d="{_path(panel, curve, left)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        row, column = divmod(index, 2)
        x, y = left + column * _PANEL_WIDTH / 2, _TOP + _PANEL_HEIGHT + 66 + 20 * row
        parts.append(f'<path d="M{x} {y - 4}h16" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 22}" y="{y}">{escape(curve.label)}</text>')
    return "\n".join(parts)


def _axes(panel: Panel, left: float) -> list[str]:
    bottom = _TOP + _PANEL_HEIGHT
    parts = [
        f'<path d="M{left} {_TOP}V{bottom}H{left + _PANEL_WIDTH}" fill="none" stroke="#222"/>',
        f'<text x="{left + _PANEL_WIDTH / 2}" y="{bottom + 40}" text-anchor="middle">{escape(panel.x_label)}</text>',
    ]
    for step in range(5):
        share = panel.highest * step / 4
        parts.append(
            f'<text x="{left - 8}" y="{_y(panel, share) + 4:.1f}" text-anchor="end">{share * 100:.0f} %</text>'
        )
    for tick in _ticks(panel):
        x = _x(panel, tick, left)
        parts.append(f'<line x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 5}" stroke="#222"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{tick:,.0f}</text>')
    return parts


def _ticks(panel: Panel) -> list[float]:
    if panel.logarithmic:
        return [10.0**power for power in range(math.floor(math.log10(panel.max_x)) + 1)]
    return [panel.max_x * step / 4 for step in range(5)]


def _path(panel: Panel, curve: Curve, left: float) -> str:
    min_x = 1.0 if panel.logarithmic else 0.0
    points = [f"M{_x(panel, min_x, left):.1f} {_y(panel, 0):.1f}"]
    for count, moment in enumerate(sorted(curve.moments), start=1):
        if moment > panel.max_x:
            break
        points.append(f"H{_x(panel, max(moment, min_x), left):.1f}V{_y(panel, count / curve.runs):.1f}")
    return "".join([*points, f"H{left + _PANEL_WIDTH}"])


def _x(panel: Panel, value: float, left: float) -> float:
    share = math.log(value) / math.log(panel.max_x) if panel.logarithmic else value / panel.max_x
    return left + share * _PANEL_WIDTH


def _y(panel: Panel, share: float) -> float:
    return _TOP + _PANEL_HEIGHT * (1 - min(share / panel.highest, 1))
