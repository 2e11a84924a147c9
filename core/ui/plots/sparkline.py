from __future__ import annotations

from django.utils.safestring import SafeString

from core.ui.plots.labels import number, value_label
from core.ui.plots.legend import colour
from core.ui.plots.markup import decimals, element
from core.ui.plots.shapes import Sparkline

_WIDTH, _HEIGHT, _MARGIN = 120, 28, 3


def render_sparkline(spark: Sparkline) -> SafeString:
    known = [(index, value) for index, one in enumerate(spark.values) if (value := number(one)) is not None]
    shared = {"class_": f"sparkline {colour(spark.kind, 0)}", "role": "img", "width": _WIDTH, "height": _HEIGHT}
    if not known:
        return element("svg", **shared, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", aria_label=f"{spark.title}: no values")
    low, high = min(0.0, *(value for _, value in known)), max(0.0, *(value for _, value in known))
    last = max(len(spark.values) - 1, 1)
    places = [
        (
            _MARGIN + (_WIDTH - 2 * _MARGIN) * index / last,
            _HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * ((value - low) / (high - low) if high > low else 0.0),
        )
        for index, value in known
    ]
    points = " ".join(f"{decimals(x)},{decimals(y)}" for x, y in places)
    line = element("polyline", points=points, fill="none", stroke="currentColor", stroke_width=1.5)
    dot = element("circle", cx=places[-1][0], cy=places[-1][1], r=2, fill="currentColor")
    label = (
        f"{spark.title}: latest {value_label(spark.unit, known[-1][1])},"
        f" highest {value_label(spark.unit, max(value for _, value in known))}"
    )
    return element("svg", line, dot, **shared, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", aria_label=label)
