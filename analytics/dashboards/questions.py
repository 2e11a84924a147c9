from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from analytics.figures.filters import Filters, figure_named, values_of
from analytics.figures.query import FigureQuery
from analytics.models import Chart, ChartKind
from core.errors import ApplicationError, ValidationError
from core.lookup.registry import Kind, look_up
from core.roles import Right
from core.selectors import api_key_names, team_names

MAX_FIGURES = 4
_NUMBERED = {"api_key_id": (api_key_names, "API key"), "team_id": (team_names, "team")}
_OVER_TIME = (ChartKind.LINE, ChartKind.BARS)


@dataclass(frozen=True)
class ChartQuestion:
    figures: Sequence[str]
    group_by: str = ""
    tag: str = ""
    filters: Filters = field(default_factory=dict)

    @classmethod
    def of(cls, chart: Chart) -> ChartQuestion:
        return cls(chart.figures, chart.group_by, chart.tag, chart.filters)

    @property
    def query(self) -> FigureQuery:
        return FigureQuery(self.figures[0] if self.figures else "", self.group_by, self.filters, self.tag)

    def check(self, kind: ChartKind) -> None:
        """Raises ValidationError, which names the field, also if a figure, group or filter does not exist."""
        if not 1 <= len(self.figures) <= MAX_FIGURES or len(set(self.figures)) < len(self.figures):
            raise ValidationError.of_field("figures", f"Must be 1 to {MAX_FIGURES} different figures.")
        try:
            found = [figure_named(name) for name in self.figures]
        except ApplicationError as error:
            raise ValidationError.of_field("figures", error.message.removeprefix("figure: ")) from None
        if len({figure.source for figure in found}) > 1:
            raise ValidationError.of_field("figures", "Figures about requests and about scores do not go together.")
        self.query.check()
        if kind in _OVER_TIME and len({figure.unit for figure in found}) > 1:
            raise ValidationError.of_field("figures", "Figures of different units need a table, or a chart each.")
        if kind is not ChartKind.TABLE and self.group_by and len(found) > 1:
            raise ValidationError.of_field("figures", "A chart that is split shows one figure; a table shows several.")
        if kind in (ChartKind.RANKING, ChartKind.NUMBER) and len(found) > 1:
            raise ValidationError.of_field("figures", "This kind of chart shows one figure.")
        if kind is ChartKind.RANKING and not self.group_by:
            raise ValidationError.of_field("group_by", "A ranking needs what it ranks, such as model.")
        if kind is ChartKind.NUMBER and self.group_by:
            raise ValidationError.of_field("group_by", "A single figure is not split.")


def check_subjects(project_id: UUID, question: ChartQuestion) -> None:
    for name, (names_of, word) in _NUMBERED.items():
        ids = {int(value) for value in values_of(question.filters, name) if value.isdecimal()}
        if len(names_of(project_id, ids)) < len(ids):
            raise ValidationError.of_field(f"filters.{name}", f"The {word} of this chart is not there any more.")
    for prompt in values_of(question.filters, "prompt_config_id"):
        if not look_up(project_id, prompt, [Right.READ], [Kind.PROMPT]):
            raise ValidationError.of_field(
                "filters.prompt_config_id", "The prompt of this chart is not there any more."
            )
