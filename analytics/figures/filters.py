from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError as FieldError

from analytics.figures.registry import FIGURES, Figure, FigureSource
from analytics.models import EVALUATOR_CHARACTERS, SCORE_NAME_CHARACTERS, ScoreType
from analytics.parameters.requests import RequestParameters
from analytics.queries.measures import GROUPS
from analytics.queries.score_measures import SCORE_GROUPS
from core.errors import ValidationError
from core.wire.parameters import Parameters

_NOT_FILTERS = frozenset({"start_date", "end_date"})
MAX_NAME_CHARACTERS = 100

Filters = Mapping[str, str | Sequence[str]]


class ScoreFilterParameters(Parameters):
    score_name = serializers.CharField(required=False, max_length=SCORE_NAME_CHARACTERS)
    score_type = serializers.ChoiceField(required=False, choices=ScoreType.choices)
    evaluator_type = serializers.CharField(required=False, max_length=EVALUATOR_CHARACTERS)
    provider = serializers.CharField(required=False, max_length=1024)
    model = serializers.CharField(required=False, max_length=1024)
    prompt_config_id = serializers.UUIDField(required=False)
    prompt_version = serializers.IntegerField(required=False, min_value=0, max_value=2**32 - 1)
    rollout_id = serializers.UUIDField(required=False)
    variant = serializers.CharField(required=False, max_length=1024)


_FILTERS: Mapping[FigureSource, type[Parameters]] = {
    FigureSource.REQUESTS: RequestParameters,
    FigureSource.SCORES: ScoreFilterParameters,
}
_GROUPS: Mapping[FigureSource, Sequence[str]] = {
    FigureSource.REQUESTS: list(GROUPS),
    FigureSource.SCORES: list(SCORE_GROUPS),
}


def figure_named(name: str) -> Figure:
    """Raises ValidationError if the figure does not exist."""
    figure = FIGURES.get(name)
    if figure is None:
        raise ValidationError.of_field("figure", f"There is no figure {name[:MAX_NAME_CHARACTERS]!r}.")
    return figure


def groups_of(figure: Figure) -> Sequence[str]:
    return _GROUPS[figure.source]


def filters_of(figure: Figure) -> Sequence[str]:
    return [name for name, _ in _FILTERS[figure.source]().fields.items() if name not in _NOT_FILTERS]


def values_of(filters: Filters, name: str) -> Sequence[str]:
    given = filters.get(name, ())
    return ([given] if given else []) if isinstance(given, str) else given


def parse_filters(figure: Figure, filters: Filters) -> Parameters:
    """Returns the checked filters. Raises ValidationError that names a filter that is wrong or does not exist."""
    kind = _FILTERS[figure.source]
    unknown = sorted(set(filters) - set(filters_of(figure)))
    if unknown:
        raise ValidationError.of_field(f"filters.{unknown[0][:MAX_NAME_CHARACTERS]}", "There is no such filter.")
    parameters = kind(data=dict(filters))
    try:
        parameters.is_valid(raise_exception=True)
    except FieldError as error:
        detail: Any = error.detail
        name, problems = next(iter(detail.items()))
        raise ValidationError.of_field(f"filters.{name}", " ".join(str(problem) for problem in problems)) from None
    return parameters
