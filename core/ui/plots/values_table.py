"""The values of a plot as a table, which is folded below it and read by its script."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from django.utils.safestring import SafeString

from core.ui.plots.labels import time_label, value_label
from core.ui.plots.markup import element, hidden
from core.ui.plots.scales import TimeScale
from core.ui.plots.shapes import Band, Plot


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
