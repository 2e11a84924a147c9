from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ui.plots import BarItem, BarList, Interval, Span, Sparkline, Strip, Unit, Waterfall, render
from core.ui.plots.shapes import Kind, State
from tests.core.ui.plots.drawing import Drawing, percent
from tests.tables.cases import tabled

NOW = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)
EVIL = '"><img src=x onerror=alert(1)>'


def span(name: str, parent: str | None = None, start: float = 0, length: float | None = 1, kind: Kind = "") -> Span:
    begin = NOW + timedelta(seconds=start)
    return Span(name, parent, name, begin, None if length is None else begin + timedelta(seconds=length), kind=kind)


def test_bar_list__items__are_rows_with_bars_by_the_largest() -> None:
    items = [BarItem("gpt-4o", 8, "/models/gpt-4o"), BarItem("claude", 2), BarItem("free", 0), BarItem("new", None)]
    drawing = Drawing(render(BarList("Top models", items, unit=Unit.MONEY)))
    assert [percent(rect["width"]) for rect in drawing.all("rect")] == [100, 25, 0, 0]
    assert drawing.all("a") == [{"href": "/models/gpt-4o"}]
    assert drawing.texts_of("span") == ["$8.00", "$2.00", "$0", "unknown"]


def test_bar_list__empty__says_so() -> None:
    assert Drawing(render(BarList("Top models", [], empty="No requests."))).texts_of("p") == ["No requests."]


@pytest.mark.parametrize(
    "plot",
    [
        BarList(EVIL, [BarItem(EVIL, 3, EVIL, detail=EVIL)]),
        Strip(EVIL, [(NOW, "good", EVIL)]),
        Waterfall(EVIL, [Span(EVIL, None, EVIL, NOW, NOW, href=EVIL, detail=EVIL)]),
        Sparkline(EVIL, [1, 2]),
    ],
)
def test_plots__texts_of_strangers__are_escaped(plot: BarList | Strip | Waterfall | Sparkline) -> None:
    drawing = Drawing(render(plot, now=NOW))
    assert drawing.all("img") == []


def test_waterfall__tree__folds_below_the_open_levels_except_the_way_to_a_failure() -> None:
    spans = [
        span("root", length=9),
        span("calm", "root"),
        span("call", "calm"),
        span("request", "call"),
        span("broken", "root", 2),
        span("tool", "broken", 2),
        span("failure", "tool", 2, kind="bad"),
    ]
    drawing = Drawing(render(Waterfall("Trace", spans, open_depth=2)))
    opened = ["open" in details for details in drawing.all("details")]
    assert opened == [True, False, False, True, True]
    assert "failed " in drawing.texts_of("span")


ids = st.sampled_from([f"s{index}" for index in range(8)])
parents = st.none() | ids | st.just("missing")


@given(pairs=st.lists(st.tuples(ids, parents), min_size=1, max_size=8, unique_by=lambda pair: pair[0]))
def test_waterfall__any_parents__shows_each_span_once(pairs: list[tuple[str, str | None]]) -> None:
    spans = [span(name, parent, start=index) for index, (name, parent) in enumerate(pairs)]
    drawing = Drawing(render(Waterfall("Trace", spans)))
    names = [text for text in drawing.texts_of("span") if text.startswith("s")]
    assert sorted(names) == sorted(name for name, _ in pairs)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.none() | st.floats(0, 1e6)), min_size=1, max_size=10))
def test_waterfall__any_times__draws_within_its_edges(times: list[tuple[float, float | None]]) -> None:
    spans = [span(f"s{index}", None, start, length) for index, (start, length) in enumerate(times)]
    for rect in Drawing(render(Waterfall("Trace", spans))).all("rect"):
        assert 0 <= percent(rect["x"]) <= percent(rect["x"]) + percent(rect["width"]) <= 100.01


def test_strip__states__differ_by_height_and_are_named_in_the_label() -> None:
    states: list[State] = ["good", "good", "warn", "bad", "none"]
    cells = [(NOW - timedelta(hours=5 - index), state, f"{index} samples") for index, state in enumerate(states)]
    drawing = Drawing(render(Strip("openai", cells), now=NOW))
    assert len({rect["height"] for rect in drawing.all("rect")}) == 4
    [image] = drawing.all("svg")
    assert image["aria-label"] == "openai: good 2 of 5, degraded 1 of 5, bad 1 of 5, no data 1 of 5; latest no data"


def test_strip__equal_neighbours__share_a_row_of_the_table() -> None:
    cells: list[tuple[datetime, State, str]] = [(NOW - timedelta(hours=index), "good", "healthy") for index in range(5)]
    assert len(Drawing(render(Strip("openai", cells), now=NOW)).all("tr")) == 2


def test_sparkline__values__label_names_latest_and_highest() -> None:
    [image] = Drawing(render(Sparkline("Requests", [1, None, 9, 4]))).all("svg")
    assert image["aria-label"] == "Requests: latest 4, highest 9"
    assert Drawing(render(Sparkline("Requests", [None]))).all("svg")[0]["aria-label"] == "Requests: no values"


@tabled
def test_interval__against_its_limit__colour_and_words(low: float, high: float, limit: float | None, kind: str) -> None:
    drawing = Drawing(render(Interval("Difference", low, (low + high) / 2, high, lambda value: f"{value:g} ms", limit)))
    [image] = drawing.all("svg")
    assert image["class"] == f"interval plot-{kind}"
    label = f"Difference: {(low + high) / 2:g} ms, from {low:g} ms to {high:g} ms"
    assert image["aria-label"] == (label if limit is None else f"{label}; limit {limit:g} ms")


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.floats(0, 1e9), st.none() | st.floats(-1e9, 1e9))
def test_interval__any_values__drawn_within_its_edges(low: float, up: float, more: float, limit: float | None) -> None:
    drawing = Drawing(render(Interval("Difference", low, low + up, low + up + more, str, limit)))
    for line in drawing.all("line"):
        assert 0 <= percent(line["x1"]) <= percent(line["x2"]) <= 100


def test_waterfall__linked_spans__no_link_within_a_summary() -> None:
    spans = [
        Span("root", None, "root", NOW, NOW, href="/root"),
        Span("leaf", "root", "leaf", NOW, NOW, href="/leaf"),
    ]
    markup = str(render(Waterfall("Trace", spans)))

    assert all("<a" not in part.partition("</summary>")[0] for part in markup.split("<summary>")[1:])
    assert [link["href"] for link in Drawing(markup).all("a")] == ["/root", "/leaf"]
