"""Figures about a project."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters import RangeParameters
from analytics.queries.overview import get_overview
from analytics.serializers import overview, provider_latency
from core.views import ProjectAPIView
from integrations.health.reader import project_health
from integrations.health.window import WINDOW_SECONDS

OVERVIEW_DAYS = 30


class OverviewView(ProjectAPIView):
    def get(self, request: Request) -> Response:
        """The last 30 days of the range asked for; the answer says which range it speaks of."""
        given = RangeParameters(data=request.query_params.dict())
        given.is_valid(raise_exception=True)
        longest = timedelta(days=OVERVIEW_DAYS)
        end = given.validated_data.get("end_date") or self._default_end(given.validated_data.get("start_date"), longest)
        start = max(given.validated_data.get("start_date") or end - longest, end - longest)
        figures = overview(get_overview(self.project_id, start, end))
        return Response({"start_date": start, "end_date": end, **figures})

    def _default_end(self, start: datetime | None, longest: timedelta) -> datetime:
        now = datetime.now(UTC)
        return min(start + longest, now) if start and start < now else now


class ProviderLatencyView(ProjectAPIView):
    def get(self, request: Request) -> Response:
        """The last five minutes of every usable provider of the project, as the gateway's own choices see them."""
        providers = [provider_latency(row) for row in project_health(self.project_id)]
        return Response({"window_seconds": WINDOW_SECONDS, "generated_at": datetime.now(UTC), "providers": providers})
