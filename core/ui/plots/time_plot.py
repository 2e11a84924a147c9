from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from zlib import crc32

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from core.ui.plots.areas import bars, hatches, lines, stacked_totals
from core.ui.plots.axes import marks, thresholds, time_axis, value_axis
from core.ui.plots.labels import number, time_label, value_label
from core.ui.plots.legend import legend, mark_list
from core.ui.plots.markup import element, hidden, joined
from core.ui.plots.scales import AREA, SLIM_AREA, TimeScale, time_scale, value_scale
from core.ui.plots.shapes import Band, Plot, Series, Value

_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


def values_table(plot: Plot, times: TimeScale, zone: tzinfo) -> SafeString:
    columns = [*(series.name for series in plot.series), *(f"{band.name}, interval" for band in plot.bands)]
    head = element("tr", *(element("th", name, scope="col") for name in (_time_column(times, plot, zone), *columns)))
    rows = [_row(plot, index, moment, times, zone) for index, moment in enumerate(plot.times)]
    table = element(
        "table", element("caption", plot.title), element("thead", head), element("tbody", *rows), class_="plot-table"
    )
    return element("details", element("summary", "Values", hidden(f" of {plot.title}")), table, class_="plot-values")


def _time_column(times: TimeScale, plot: Plot, zone: tzinfo) -> str:
    name = times.start.astimezone(zone).tzname()
    return f"From ({name})" if name else "From"


def _row(plot: Plot, index: int, moment: datetime, times: TimeScale, zone: tzinfo) -> SafeString:
    is_going_on = times.is_going_on and index == len(plot.times) - 1
    head = element("th", time_label(moment, times.step, zone), " so far" if is_going_on else "", scope="row")
    cells = [element("td", value_label(plot.unit, series.values[index])) for series in plot.series]
    cells += [element("td", _interval(plot, band, index)) for band in plot.bands]
    return element("tr", head, *cells, data_t=int(moment.astimezone(UTC).timestamp()))


def _interval(plot: Plot, band: Band, index: int) -> str:
    return f"{value_label(plot.unit, band.lower[index])} to {value_label(plot.unit, band.upper[index])}"


def render_plot(plot: Plot, zone: tzinfo, now: datetime) -> SafeString:
    now = now if plot.until_now else _END_OF_TIME
    plot = _until(plot, now)
    if not any(number(value) is not None for series in plot.series for value in series.values):
        return element("figure", _caption(plot), element("p", plot.empty, class_="muted"), class_="plot")
    times = time_scale(plot.times, plot.step, now)
    return element(
        "figure",
        _caption(plot),
        legend(plot),
        element("div", _drawing(plot, times, zone), class_="plot-canvas"),
        # The script writes the values under the pointer here; they are said to screen readers otherwise.
        element("output", class_="plot-readout", aria_live="off"),
        mark_list(plot, times, zone),
        values_table(plot, times, zone),
        _keep(plot),
        class_="plot plot-slim" if plot.is_slim else "plot",
        data_plot=plot.title,
        data_start=_seconds(times.start),
        data_end=_seconds(times.end),
        data_step=times.step.total_seconds(),
        data_brush=plot.brush,
    )


def _until(plot: Plot, now: datetime) -> Plot:
    kept = sorted((moment, index) for index, moment in enumerate(plot.times) if moment <= now)
    indexes = [index for _, index in kept]

    def of(values: Sequence[Value]) -> list[Value]:
        return [values[index] if index < len(values) else None for index in indexes]

    series = [Series(one.name, of(one.values), one.kind) for one in plot.series]
    bands = [Band(one.name, of(one.lower), of(one.upper)) for one in plot.bands]
    return replace(plot, times=[moment for moment, _ in kept], series=series, bands=bands)


def _caption(plot: Plot) -> SafeString:
    return element("figcaption", plot.title, class_="" if plot.caption else "sr")


def _keep(plot: Plot) -> SafeString:
    if not plot.keep:
        return joined([])
    return mark_safe(render_to_string("ui/more.html", {"label": plot.title, "keep": plot.keep}))  # noqa: S308 - a template


def _drawing(plot: Plot, times: TimeScale, zone: tzinfo) -> SafeString:
    area = SLIM_AREA if plot.is_slim else AREA
    values = value_scale(_all_values(plot), plot.unit, from_zero=plot.from_zero or plot.kind != "line", area=area)
    # The patterns of two plots of a page have different ids.
    key = f"plot-{crc32(f'{plot.title} {times.start} {len(plot.times)}'.encode()):x}"
    shapes = lines(plot, times, values) if plot.kind == "line" else bars(plot, times, values, key)
    parts = [
        hatches(plot, key),
        value_axis(values, plot.unit),
        time_axis(times, values, zone),
        shapes,
        thresholds(plot, values),
        marks(plot, times),
    ]
    return element(
        "svg",
        joined(parts),
        class_="plot-svg",
        width="100%",
        height=values.height,
        role="img",
        aria_label=_essence(plot, times, zone),
    )


def _all_values(plot: Plot) -> list[float]:
    drawn = stacked_totals(plot) if plot.kind == "stacked" else [value for one in plot.series for value in one.values]
    edges = [value for band in plot.bands for value in (*band.lower, *band.upper)]
    found = [number(value) for value in (*drawn, *edges, *(threshold.value for threshold in plot.thresholds))]
    return [value for value in found if value is not None]


def _essence(plot: Plot, times: TimeScale, zone: tzinfo) -> str:
    first, last = time_label(times.start, times.step, zone), time_label(plot.times[-1], times.step, zone)
    summaries = "; ".join(_summary(plot, series, times, zone) for series in plot.series)
    limits = "".join(f" {one.name}: {value_label(plot.unit, one.value)}." for one in plot.thresholds)
    return f"{plot.title}, {first} to {last}: {summaries}.{limits}"


def _summary(plot: Plot, series: Series, times: TimeScale, zone: tzinfo) -> str:
    known = [(value, index) for index, one in enumerate(series.values) if (value := number(one)) is not None]
    if not known:
        return f"{series.name} has no values"
    highest, where = max(known, key=lambda pair: pair[0])
    return (
        f"{series.name} latest {value_label(plot.unit, known[-1][0])}, highest {value_label(plot.unit, highest)}"
        f" at {time_label(plot.times[where], times.step, zone)}"
    )


def _seconds(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp())
