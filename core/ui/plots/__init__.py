"""Plots as SVG in HTML, made by the server: pages describe them, `render` draws them, no script is needed.

`core/static/core/ui/plot.js` adds values under the pointer and by keys, and a brush.
"""

from core.ui.plots.render import render
from core.ui.plots.shapes import (
    Band,
    BarItem,
    BarList,
    Interval,
    Mark,
    Plot,
    Series,
    Span,
    Sparkline,
    Strip,
    Threshold,
    Unit,
    Waterfall,
)

__all__ = [
    "Band", "BarItem", "BarList", "Interval", "Mark", "Plot", "Series", "Span", "Sparkline", "Strip", "Threshold",
    "Unit", "Waterfall", "render",
]  # fmt: skip
