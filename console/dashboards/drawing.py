from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analytics.dashboards.data import ChartData, chart_data, is_over_time
from analytics.dashboards.questions import ChartQuestion
from analytics.figures.registry import FIGURES, Figure
from analytics.models import Chart, ChartKind
from analytics.parameters.ranges import TimeRange
from console.dashboards.words import UNITS, figure_label, filter_words, group_label, key_names
from core.errors import ValidationError
from core.ui import formats
from core.ui.pages import Visit
from core.ui.plots import BarItem, BarList, Plot, Series
from core.ui.plots.labels import value_label
from core.ui.plots.shapes import PlotKind
from core.ui.tables import Column, Empty, Table
from core.ui.tiles import Tile

_PLOTS: Mapping[str, PlotKind] = {ChartKind.LINE: "line", ChartKind.BARS: "bars"}


def draw(visit: Visit, chart: Chart) -> Mapping[str, Any]:
    """Returns the context of `dashboards/chart.html`. Raises the errors of the analytics store."""
    question, kind = ChartQuestion.of(chart), ChartKind(chart.kind)
    try:
        data = chart_data(visit.project.pk, kind, question, TimeRange(visit.period.start, visit.period.end))
    except ValidationError as error:
        return {"sentence": sentence_of(error)}
    drawer = _Drawer(visit, chart, question, data)
    if kind is ChartKind.NUMBER:
        return {"tiles": [drawer.tile()]}
    if kind is ChartKind.TABLE:
        return {"table": drawer.times() if is_over_time(kind, question) else drawer.keys()}
    return {"plot": drawer.ranking() if kind is ChartKind.RANKING else drawer.plot()}


def sentence_of(error: ValidationError) -> str:
    field = next(iter(error.details or {}), "")
    return f"This chart cannot be shown. {error.message.removeprefix(f'{field}: ')}"


class _Drawer:
    def __init__(self, visit: Visit, chart: Chart, question: ChartQuestion, data: ChartData) -> None:
        self._chart = chart
        self._question = question
        self._data = data
        self._figures: Sequence[Figure] = [FIGURES[name] for name in question.figures]
        self._filters = filter_words(visit.project.pk, question.filters)
        rows = data["series"] if data["series"] else data["rows"]
        self._names = key_names(visit.project.pk, question.group_by, rows) if question.group_by else {}

    @property
    def _nothing(self) -> str:
        of = f" of {', '.join(self._filters)}" if self._filters else ""
        what = "requests" if self._figures[0].source == "requests" else "scores"
        return f"No {what}{of} in this range."

    def tile(self) -> Tile:
        [figure], [row] = self._figures, self._data["rows"]
        now, before = row["values"][0], (self._data["previous"] or [None])[0]
        shown = value_label(UNITS[figure.unit], before)
        change = formats.change(now, before)
        note = f"{change}, before {shown}" if change else f"before {shown}"
        # The heading of the chart has often the same words.
        label = "" if figure.label == self._chart.title else figure.label
        return Tile(label, value_label(UNITS[figure.unit], now), note)

    def plot(self) -> Plot:
        first, group_by = self._figures[0], self._question.group_by
        is_stacked = self._chart.kind == ChartKind.BARS and group_by and first.is_sum
        has_values = any(value for one in self._data["series"] for value in one["values"])
        return Plot(
            title=self._chart.title,
            times=self._data["starts"],
            series=[
                Series(self._names[one["key"]] if group_by else figure_label(one["figure"]), one["values"])
                for one in self._data["series"]
            ]
            if has_values
            else [],
            unit=UNITS[first.unit],
            kind="stacked" if is_stacked else _PLOTS[self._chart.kind],
            caption=False,
            empty=self._nothing,
        )

    def ranking(self) -> BarList:
        return BarList(
            title=self._chart.title,
            items=[BarItem(self._names[row["key"]], row["values"][0]) for row in self._data["rows"]],
            unit=UNITS[self._figures[0].unit],
            caption=False,
            empty=self._nothing,
        )

    def keys(self) -> Table:
        columns = [Column("key", group_label(self._question.group_by), lambda row: self._names[row["key"]])]
        return self._table([*columns, *self._columns()], self._data["rows"])

    def times(self) -> Table:
        values = zip(*(one["values"] for one in self._data["series"]), strict=True)
        rows = [{"start": start, "values": found} for start, found in zip(self._data["starts"], values, strict=True)]
        columns = [Column("start", "From", lambda row: formats.moment(row["start"]))]
        return self._table([*columns, *self._columns()], list(reversed(rows)))

    def _columns(self) -> list[Column]:
        return [
            Column(figure.name, figure.label, _cell(figure, place), is_numeric=True)
            for place, figure in enumerate(self._figures)
        ]

    def _table(self, columns: Sequence[Column], rows: Sequence[Any]) -> Table:
        return Table(caption=self._chart.title, columns=columns, rows=rows, empty=Empty(self._nothing))


def _cell(figure: Figure, place: int) -> Any:
    return lambda row: value_label(UNITS[figure.unit], row["values"][place])
