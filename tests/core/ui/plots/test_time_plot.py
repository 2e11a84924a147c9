from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from core.ui.plots import Band, Mark, Plot, Series, Threshold, Unit, render
from core.ui.plots.scales import AREA, BOTTOM, LINES_WIDTH, TOP
from core.ui.plots.shapes import PlotKind, Value
from tests.core.ui.plots.drawing import Drawing, percent

NOW = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)
HOURS = [NOW.replace(minute=0) - timedelta(hours=23 - index) for index in range(24)]
KINDS: list[PlotKind] = ["line", "bars", "stacked"]

figures = st.floats(width=32) | st.integers(-(10**12), 10**12) | st.decimals(0, 10**6)
values = st.lists(st.none() | figures, min_size=24, max_size=24)
kinds, units = st.sampled_from(KINDS), st.sampled_from(list(Unit))


@pytest.fixture(autouse=True)
def in_utc() -> Iterator[None]:
    with timezone.override(ZoneInfo("UTC")):
        yield


def drawn(plot: Plot) -> Drawing:
    return Drawing(render(plot, now=NOW))


def rows(drawing: Drawing) -> list[dict[str, str]]:
    return [row for row in drawing.all("tr") if "data-t" in row]


@given(first=values, second=values, kind=kinds, unit=units, from_zero=st.booleans())
def test_plot__any_values__draws_within_its_edges(
    first: list[Value], second: list[Value], kind: PlotKind, unit: Unit, from_zero: bool
) -> None:
    plot = Plot(
        "Requests",
        HOURS,
        [Series("a", first), Series("b", second, kind="bad")],
        unit=unit,
        kind=kind,
        thresholds=[Threshold("limit", 10)],
        bands=[Band("a", first, second)],
        marks=[Mark("stage 2", HOURS[3]), Mark("long ago", HOURS[0] - timedelta(days=3))],
        from_zero=from_zero,
    )
    drawing = drawn(plot)
    for x, y in drawing.points():
        assert -0.01 <= x <= LINES_WIDTH + 0.01
        assert -0.01 <= y <= (TOP + AREA + BOTTOM) + 0.01
    for rect in [rect for rect in drawing.all("rect") if "x" in rect]:
        assert 0 <= percent(rect["x"]) <= percent(rect["x"]) + percent(rect["width"]) <= 100.01
        assert -0.01 <= float(rect["y"]) <= float(rect["y"]) + float(rect["height"]) <= (TOP + AREA + BOTTOM)
    for line in [line for line in drawing.all("line") if line["x1"].endswith("%")]:
        assert 0 <= percent(line["x1"]) <= 100
    assert "nan" not in render(plot, now=NOW).lower()


@pytest.mark.parametrize("kind", KINDS)
def test_plot__constant_values__has_two_ticks_or_more(kind: PlotKind) -> None:
    for value in (0, 7, Decimal("0.00042"), -3):
        labels = drawn(Plot("Cost", HOURS, [Series("cost", [value] * 24)], kind=kind)).texts_of("text")
        assert len(set(labels)) >= 2


@pytest.mark.parametrize(("times", "series"), [([], []), (HOURS, []), (HOURS, [Series("a", [None] * 24)])])
def test_plot__without_values__says_so(times: list[datetime], series: list[Series]) -> None:
    drawing = drawn(Plot("Requests", times, series))
    assert drawing.texts_of("p") == ["No data in this range."]
    assert drawing.all("svg") == []


def test_plot__gap__is_not_joined() -> None:
    drawing = drawn(Plot("Requests", HOURS, [Series("a", [1] * 5 + [None] + [2] * 18), Series("b", [None] * 24)]))
    assert [len(line["points"].split()) for line in drawing.all("polyline")] == [5, 17]


def test_plot__interval_that_goes_on__is_a_hollow_dot_and_named_in_the_table() -> None:
    drawing = drawn(Plot("Requests", HOURS, [Series("a", [5] * 24)]))
    [dot] = drawing.all("circle")
    assert dot["fill"] == "none"
    assert [text for text in drawing.texts_of("th") if "so far" in text] == ["22 Nov 12:00 so far"]
    assert "circle" not in render(Plot("Requests", HOURS, [Series("a", [5] * 24)]), now=NOW + timedelta(hours=1))


def test_plot__one_point__is_a_dot() -> None:
    drawing = drawn(Plot("Requests", HOURS[:1], [Series("a", [3])]))
    assert len(drawing.all("circle")) == 1
    assert drawing.all("polyline") == []


def test_plot__hours_that_have_not_begun__are_left_out() -> None:
    later = [NOW + timedelta(hours=index + 1) for index in range(5)]
    drawing = drawn(Plot("Requests", [*later, *HOURS], [Series("a", [0] * 5 + [1] * 24)]))
    assert len(rows(drawing)) == 24
    figure = drawing.all("figure")[0]
    assert int(figure["data-end"]) == int(NOW.timestamp())
    assert int(figure["data-start"]) == int(HOURS[0].timestamp())


def test_plot__texts_of_strangers__are_escaped() -> None:
    evil = '"><script>alert(1)</script>'
    plot = Plot(
        evil,
        HOURS,
        [Series(evil, range(24)), Series("b", range(24))],
        kind="stacked",
        thresholds=[Threshold(evil, 3)],
        marks=[Mark(evil, HOURS[4], "/x?" + evil)],
        brush="/y?" + evil,
    )
    drawing = drawn(plot)
    assert drawing.all("script") == []
    assert evil in drawing.texts_of("caption")
    names = {name for _, attributes in drawing.elements for name in attributes}
    assert [name for name in names if name.startswith("on") or name == "style"] == []


def test_plot__label__says_latest_and_highest_with_thresholds() -> None:
    cost = Series("cost", [*range(10), 99, *range(13)])
    plot = Plot("Cost", HOURS, [cost], unit=Unit.MONEY, thresholds=[Threshold("budget", 239)])
    [image] = [svg for svg in drawn(plot).all("svg") if svg.get("role") == "img"]
    assert image["aria-label"] == (
        "Cost, 21 Nov 13:00 to 22 Nov 12:00: cost latest $12.00, highest $99.00 at 21 Nov 23:00. budget: $239.00."
    )


def test_plot__several_series__differ_by_dashes_and_hatches() -> None:
    series = [Series(f"s{index}", range(24)) for index in range(6)]
    lines = drawn(Plot("Cost", HOURS, series)).all("polyline")
    assert len({line.get("stroke-dasharray", "") for line in lines}) == 6
    drawing = drawn(Plot("Cost", HOURS, series, kind="stacked"))
    assert len({pattern["id"] for pattern in drawing.all("pattern")}) == 5


def test_plot__values__are_a_table_in_the_readers_zone() -> None:
    with timezone.override(ZoneInfo("Asia/Kathmandu")):
        drawing = drawn(Plot("Latency", HOURS, [Series("p50", [840] * 23 + [None])], unit=Unit.MILLISECONDS))
    heads = drawing.texts_of("th")
    assert heads[:2] == ["From (+0545)", "p50"]
    assert heads[2] == "21 Nov 18:45"
    assert drawing.texts_of("td") == ["840 ms"] * 23 + ["\u2013"]


def test_plot__stacked_bars__stand_on_each_other() -> None:
    plot = Plot("Cost", HOURS[:2], [Series("a", [1, 2]), Series("b", [3, 2])], kind="stacked")
    bars = [rect for rect in drawn(plot).all("rect") if "x" in rect]
    bottom_of_second, top_of_first = float(bars[2]["y"]) + float(bars[2]["height"]), float(bars[0]["y"])
    assert bottom_of_second == pytest.approx(top_of_first)


def test_plot__shorter_series__ends_earlier() -> None:
    drawing = drawn(Plot("Requests", HOURS, [Series("a", [1, 2, 3])]))
    assert len(drawing.all("polyline")[0]["points"].split()) == 3
