from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rest_framework import serializers

from analytics.models import EVALUATOR_CHARACTERS, SCORE_NAME_CHARACTERS, ScoreType
from analytics.parameters.common import filter_of
from analytics.queries.groupings import GROUPINGS
from analytics.queries.scores import ScoreFilter
from core.wire.parameters import RangeParameters

_DEFAULT_RANGE = timedelta(days=30)


class ScoreRangeParameters(RangeParameters):
    """A range of time that ends now by default, and begins 30 days before its end by default."""

    def between(self) -> tuple[datetime, datetime]:
        end = self.validated_data.get("end_date") or datetime.now(UTC)
        return self.validated_data.get("start_date") or end - _DEFAULT_RANGE, end


class FeedbackMetricsParameters(ScoreRangeParameters):
    group_by = serializers.ChoiceField(choices=sorted(GROUPINGS.keys() - {"evaluator_type"}), default="none")


class BadRatingParameters(ScoreRangeParameters):
    prompt_config_id = serializers.UUIDField(required=False)


class ScoreMetricsParameters(ScoreRangeParameters):
    group_by = serializers.ChoiceField(choices=sorted(GROUPINGS), default="none")
    score_name = serializers.CharField(required=False, allow_blank=True, max_length=SCORE_NAME_CHARACTERS)
    score_type = serializers.ChoiceField(required=False, allow_blank=True, choices=ScoreType.choices)
    evaluator_type = serializers.CharField(required=False, allow_blank=True, max_length=EVALUATOR_CHARACTERS)

    def to_filter_and_grouping(self) -> tuple[ScoreFilter, str]:
        self.is_valid(raise_exception=True)
        values, (start, end) = self.validated_data, self.between()
        return filter_of(ScoreFilter, values, start=start, end=end), values["group_by"]
