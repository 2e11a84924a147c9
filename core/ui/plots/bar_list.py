from __future__ import annotations

from django.utils.safestring import SafeString

from core.ui.plots.labels import number, value_label
from core.ui.plots.legend import colour
from core.ui.plots.markup import element, linked, percent
from core.ui.plots.shapes import BarItem, BarList

_BAR_HEIGHT = 10


def render_bar_list(bars: BarList) -> SafeString:
    caption = element("caption", bars.title, class_="" if bars.caption else "sr")
    if not bars.items:
        return element(
            "figure",
            element("figcaption", bars.title, class_="" if bars.caption else "sr"),
            element("p", bars.empty, class_="muted"),
            class_="plot",
        )
    largest = max((abs(number(item.value) or 0.0) for item in bars.items), default=0.0)
    heads = (element("th", name, scope="col") for name in ("Name", "Value"))
    head = element("thead", element("tr", *heads), class_="sr")
    rows = [_row(item, bars, largest) for item in bars.items]
    return element("table", caption, head, element("tbody", *rows), class_="bar-list")


def _row(item: BarItem, bars: BarList, largest: float) -> SafeString:
    detail = element("small", " ", item.detail) if item.detail else ""
    value = abs(number(item.value) or 0.0)
    length = 100 * value / largest if largest else 0.0
    bar = element("rect", x=0, y=0, width=percent(length), height=_BAR_HEIGHT, rx=2, fill="currentColor")
    drawn = element(
        "svg", bar, width="100%", height=_BAR_HEIGHT, class_=colour(item.kind, 0), aria_hidden="true", focusable="false"
    )
    shown = element("span", value_label(bars.unit, item.value) if item.value is not None else "unknown")
    return element(
        "tr",
        element("th", linked(item.label, item.href), detail, scope="row"),
        element("td", element("div", drawn, shown, class_="bar-value")),
    )
