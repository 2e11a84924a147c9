from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
from django.conf import settings
from django.shortcuts import get_object_or_404
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.ranges import TimeRange, parse_range
from core.api.viewsets import ProjectViewSet
from core.errors import ServiceUnavailableError
from core.models import ApiKey
from core.openapi import PAGE, operation
from core.redis.clients import shared_client
from core.redis.failures import REDIS_ERRORS
from core.teams.services import TEAMS
from core.wire.parameters import RangeParameters
from core.wire.serializers import EmptyBodySerializer
from gateway.cache.store import empty
from gateway.models import SettingsChange
from gateway.project_settings.guardrails import GuardrailSettings
from gateway.reports.caller_usage import key_usage, team_usage, user_usage
from gateway.reports.dry_run import run_dry
from gateway.reports.limit_usage import usage_of
from gateway.reports.problems import find_problems
from gateway.reports.shapes import DryRunResult, Problems, Usage
from gateway.selectors import current_settings, project_settings
from gateway.serializers import (
    DryRunSerializer,
    SettingsChangeSerializer,
    SettingsSerializer,
    UsageParameters,
    settings_body,
)
from gateway.services import replace_settings, restore_settings

_RECENT = timedelta(days=1)
_CACHE_SECONDS = 5.0


class SettingsViewSet(ProjectViewSet):
    @operation("getSettings", "The gateway's settings", answer=SettingsSerializer)
    @action(detail=False, url_path="settings")
    def current(self, request: Request) -> Response:
        """The settings; the defaults for a project that has none."""
        return Response(settings_body(current_settings(self.project_id)))

    @operation("putSettings", "Replace the settings", body=SettingsSerializer, answer=SettingsSerializer)
    @current.mapping.put
    def replace(self, request: Request) -> Response:
        given = self.valid_body(SettingsSerializer).validated_data
        row = replace_settings(project_id=self.project_id, values=given, actor=self.actor)
        return Response(settings_body(row))

    @operation("listSettingsChanges", "Who changed which setting", query=[PAGE], page=SettingsChangeSerializer)
    @action(detail=False, url_path="settings/history")
    def history(self, request: Request) -> Response:
        """The changes of the settings, the latest first."""
        return self.page(SettingsChange.objects.for_project(self.project_id), SettingsChangeSerializer)

    @operation(
        "restoreSettings",
        "Take a change back",
        body=EmptyBodySerializer,
        answer=SettingsSerializer,
        errors=[404, 409],
    )
    @action(detail=False, methods=["post"], url_path="settings/history/<int:change_id>/restore")
    def restore(self, request: Request, change_id: int) -> Response:
        """Gives the fields of one change the values that they had before it."""
        self.valid_body(EmptyBodySerializer)
        row = restore_settings(project_id=self.project_id, change_id=change_id, actor=self.actor)
        return Response(settings_body(row))

    @operation("dryRunGuardrails", "What guardrails would have refused", body=DryRunSerializer, answer=DryRunResult)
    @action(detail=False, methods=["post"], url_path="guardrails/dry-run")
    def dry_run(self, request: Request) -> Response:
        """Looks at a sample of the past requests with the given guardrails, or the present ones, as if they were
        enforced. Changes nothing."""
        given = self.valid_body(DryRunSerializer).validated_data
        chosen = given.get("guardrails", project_settings(self.project_id).guardrails)
        result = run_dry(
            self.project_id,
            msgspec.convert(chosen, GuardrailSettings),
            days=given["days"],
            max_inputs=given["max_inputs"],
        )
        return Response(result)


class UsageViewSet(ProjectViewSet):
    @operation("usage", "What is used of the limits", query=[UsageParameters], answer=Usage, errors=[404])
    def list(self, request: Request) -> Response:
        """The current use of the limits; also of one session's budget, of the limits of a team, of an API key and of
        an end user, whose `session_id`, `team_id`, `key_id` and `user_id` are given."""
        given = self.valid_query(UsageParameters).validated_data
        shown = usage_of(self.project_id, given["session_id"])
        if given["team_id"] is not None:
            shown["team"] = team_usage(self.project_id, TEAMS.get(self.project_id, given["team_id"]))
        if given["key_id"] is not None:
            key = get_object_or_404(ApiKey.objects.for_project(self.project_id), pk=given["key_id"])
            shown["key"] = key_usage(self.project_id, key)
        if given["user_id"]:
            shown["user"] = user_usage(self.project_id, given["user_id"])
        return Response(shown)


class ProblemViewSet(ProjectViewSet):
    @operation("listProblems", "What is wrong now", query=[RangeParameters], answer=Problems)
    def list(self, request: Request) -> Response:
        """The problems of the project at this moment, critical ones first. The range, by default the last 24 hours,
        is that of rollbacks and of alerts that were not delivered."""
        now = datetime.now(UTC)
        is_named = {"start_date", "end_date"} & request.query_params.keys()
        time_range = parse_range(request) if is_named else TimeRange(now - _RECENT, now)
        return Response(find_problems(self.project_id, time_range, now))


class CacheViewSet(ProjectViewSet):
    @operation("emptyCache", "Forget all kept answers", status=204)
    @action(detail=False, methods=["delete"])
    def cache(self, request: Request) -> Response:
        """Deletes every stored answer of the project."""
        try:
            empty(shared_client(settings.REDIS_URL, seconds=_CACHE_SECONDS), str(self.project_id))
        except REDIS_ERRORS:
            raise ServiceUnavailableError("The cache does not answer.", code="cache_unavailable") from None
        return Response(status=status.HTTP_204_NO_CONTENT)
