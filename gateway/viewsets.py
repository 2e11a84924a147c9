"""The endpoints of the gateway's settings, their history, the use of limits, and the response cache."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import redis
from django.conf import settings
from django.shortcuts import get_object_or_404
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.common import RangeParameters
from analytics.parameters.ranges import TimeRange, parse_range
from core.errors import ServiceUnavailableError
from core.models import ApiKey
from core.openapi import PAGE, operation
from core.views import ProjectAPIView
from core.wire.pagination import LimitOffset
from core.wire.serializers import EmptyBodySerializer
from gateway.cache.store import empty
from gateway.models import SettingsChange
from gateway.project_settings.guardrails import GuardrailSettings
from gateway.reports.caller_usage import key_usage, user_usage
from gateway.reports.dry_run import run_dry
from gateway.reports.limit_usage import usage_of
from gateway.reports.problems import find_problems
from gateway.reports.shapes import DryRunResult, Problems, Usage
from gateway.serializers import (
    DryRunSerializer,
    SettingsChangeSerializer,
    SettingsSerializer,
    UsageParameters,
    settings_body,
)
from gateway.services import current_settings, replace_settings, restore_settings

_RECENT = timedelta(days=1)


class SettingsView(ProjectAPIView):
    @operation("getSettings", "The gateway's settings", answer=SettingsSerializer)
    def get(self, request: Request) -> Response:
        """The settings; the defaults for a project that has none."""
        return Response(settings_body(current_settings(self.project_id)))

    @operation("putSettings", "Replace the settings", body=SettingsSerializer, answer=SettingsSerializer)
    def put(self, request: Request) -> Response:
        given = SettingsSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        row = replace_settings(project_id=self.project_id, values=given.validated_data, actor=self.actor)
        return Response(settings_body(row))


class SettingsHistoryView(ProjectAPIView):
    @operation("listSettingsChanges", "Who changed which setting", query=[PAGE], page=SettingsChangeSerializer)
    def get(self, request: Request) -> Response:
        """The changes of the settings, the latest first."""
        paginator = LimitOffset()
        rows = paginator.paginate_queryset(SettingsChange.objects.for_project(self.project_id), request, self)
        return paginator.get_paginated_response(SettingsChangeSerializer(rows, many=True).data)


class RestoreSettingsView(ProjectAPIView):
    @operation(
        "restoreSettings",
        "Take a change back",
        body=EmptyBodySerializer,
        answer=SettingsSerializer,
        errors=[404, 409],
    )
    def post(self, request: Request, change_id: int) -> Response:
        """Gives the fields of one change the values that they had before it."""
        EmptyBodySerializer(data=request.data).is_valid(raise_exception=True)
        row = restore_settings(project_id=self.project_id, change_id=change_id, actor=self.actor)
        return Response(settings_body(row))


class DryRunView(ProjectAPIView):
    @operation("dryRunGuardrails", "What guardrails would have refused", body=DryRunSerializer, answer=DryRunResult)
    def post(self, request: Request) -> Response:
        """Looks at a sample of the past requests with the given guardrails, or the present ones, as if they were
        enforced. Changes nothing."""
        given = DryRunSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        values = given.validated_data
        chosen = values.get("guardrails", current_settings(self.project_id).guardrails)
        result = run_dry(
            self.project_id,
            msgspec.convert(chosen, GuardrailSettings),
            days=values["days"],
            max_inputs=values["max_inputs"],
        )
        return Response(result)


class UsageView(ProjectAPIView):
    @operation("usage", "What is used of the limits", query=[UsageParameters], answer=Usage, errors=[404])
    def get(self, request: Request) -> Response:
        """The current use of the limits; also of one session's budget, of the limits of an API key and of those of an
        end user, whose `session_id`, `key_id` and `user_id` are given."""
        parameters = UsageParameters(data=request.query_params)
        parameters.is_valid(raise_exception=True)
        given = parameters.validated_data
        shown = usage_of(self.project_id, given["session_id"])
        if given["key_id"] is not None:
            key = get_object_or_404(ApiKey.objects.for_project(self.project_id), pk=given["key_id"])
            shown["key"] = key_usage(self.project_id, key)
        if given["user_id"]:
            shown["user"] = user_usage(self.project_id, given["user_id"])
        return Response(shown)


class ProblemsView(ProjectAPIView):
    @operation("listProblems", "What is wrong now", query=[RangeParameters], answer=Problems)
    def get(self, request: Request) -> Response:
        """The problems of the project at this moment, critical ones first. The range, by default the last 24 hours,
        is that of rollbacks and of alerts that were not delivered."""
        now = datetime.now(UTC)
        is_named = {"start_date", "end_date"} & request.query_params.keys()
        time_range = parse_range(request) if is_named else TimeRange(now - _RECENT, now)
        return Response(find_problems(self.project_id, time_range, now))


class CacheView(ProjectAPIView):
    @operation("emptyCache", "Forget all kept answers", status=204)
    def delete(self, request: Request) -> Response:
        """Deletes every stored answer of the project."""
        try:
            with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=5, socket_connect_timeout=1) as client:
                empty(client, str(self.project_id))
        except redis.RedisError:
            raise ServiceUnavailableError("The cache does not answer.", code="cache_unavailable") from None
        return Response(status=status.HTTP_204_NO_CONTENT)
