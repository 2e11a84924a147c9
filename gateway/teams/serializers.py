from __future__ import annotations

from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.models import Team
from core.teams.serializers import TeamSerializer
from core.teams.services import teams_budget
from gateway.project_settings.settings import ProjectSettings
from gateway.reports.team_warnings import TEAM_WARNING_CODES, team_warnings
from gateway.selectors import project_settings


class TeamWarningSerializer(serializers.Serializer[Any]):
    field = serializers.CharField(help_text="The limit of the team.")
    code = serializers.ChoiceField(choices=TEAM_WARNING_CODES)
    message = serializers.CharField()


class WarnedTeamSerializer(TeamSerializer):
    warnings = serializers.SerializerMethodField(help_text="Limits that cannot take effect, and why.")

    _limits: tuple[ProjectSettings, Decimal] | None = None

    class Meta(TeamSerializer.Meta):
        fields = [*TeamSerializer.Meta.fields, "warnings"]

    @extend_schema_field(TeamWarningSerializer(many=True))
    def get_warnings(self, row: Team) -> list[dict[str, str]]:
        # A list of teams is of one project, whose settings are asked for once.
        if self._limits is None:
            self._limits = project_settings(row.project_id), teams_budget(row.project_id)
        return [warning._asdict() for warning in team_warnings(row, *self._limits)]
