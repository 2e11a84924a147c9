"""The analytics part of the management API, below `api/llm/`, and the entrance of OTLP/HTTP, below `api/otlp/`."""

from __future__ import annotations

from django.urls import path, re_path

from analytics.telemetry import views as otlp
from analytics.viewsets.export import RequestsExportView
from analytics.viewsets.feedback import FeedbackTokenView, SessionFeedbackView
from analytics.viewsets.guardrails import GuardrailRequestsView, GuardrailsView, GuardrailUsageView
from analytics.viewsets.lookup import LookupView
from analytics.viewsets.metrics import (
    DailyCostView,
    ErrorsView,
    ModelCostView,
    ModelsView,
    OperationsView,
    OverviewView,
    PromptCacheView,
    PromptsView,
    ProviderLatencyView,
    TotalsView,
    UsageView,
    UsersView,
)
from analytics.viewsets.providers import ErrorGroupsView, FailoversView, ProviderHistoryView
from analytics.viewsets.request_figures import RequestFacetsView, RequestHistogramView
from analytics.viewsets.requests import RequestConversationView, RequestNeighboursView, RequestsView, RequestView
from analytics.viewsets.saved_views import SavedViewsView, SavedViewView
from analytics.viewsets.score_metrics import FeedbackMetricsView, ScoreMetricsView
from analytics.viewsets.scores import RequestScoresView, ScoreBatchView, ScoresView
from analytics.viewsets.search import SearchView
from analytics.viewsets.sessions import (
    SessionRequestsView,
    SessionsView,
    SessionTimelineView,
    SessionTranscriptView,
    SessionView,
)
from analytics.viewsets.spend import CostExportView, CostIntervalsView, CostView, PriceGapsView

# Ids of sessions and requests are the client's own and may hold slashes (`core.http.paths`).
urlpatterns = [
    path("sessions", SessionsView.as_view()),
    path("sessions/<slashed:session_id>/requests", SessionRequestsView.as_view()),
    path("sessions/<slashed:session_id>/transcript", SessionTranscriptView.as_view()),
    path("sessions/<slashed:session_id>/timeline", SessionTimelineView.as_view()),
    path("sessions/<slashed:session_id>/feedback", SessionFeedbackView.as_view()),
    path("sessions/<slashed:session_id>/feedback-token", FeedbackTokenView.as_view()),
    path("sessions/<slashed:session_id>", SessionView.as_view()),
    path("scores", ScoresView.as_view()),
    path("scores/batch", ScoreBatchView.as_view()),
    path("scores/request/<slashed:request_id>", RequestScoresView.as_view()),
    path("metrics/scores", ScoreMetricsView.as_view()),
    path("metrics/feedback", FeedbackMetricsView.as_view()),
    path("requests", RequestsView.as_view()),
    path("requests/facets", RequestFacetsView.as_view()),
    path("requests/histogram", RequestHistogramView.as_view()),
    path("requests/export", RequestsExportView.as_view()),
    path("requests/<uuid:request_id>/conversation", RequestConversationView.as_view()),
    path("requests/<uuid:request_id>/neighbours", RequestNeighboursView.as_view()),
    path("requests/<uuid:request_id>", RequestView.as_view()),
    path("search", SearchView.as_view()),
    path("lookup", LookupView.as_view()),
    path("views", SavedViewsView.as_view()),
    path("views/<uuid:view_id>", SavedViewView.as_view()),
    path("metrics/overview", OverviewView.as_view()),
    path("metrics/totals", TotalsView.as_view()),
    path("metrics/users", UsersView.as_view()),
    path("metrics/models", ModelsView.as_view()),
    path("metrics/operations", OperationsView.as_view()),
    path("metrics/prompts", PromptsView.as_view()),
    path("metrics/prompt-cache", PromptCacheView.as_view()),
    path("metrics/cost/daily", DailyCostView.as_view()),
    path("metrics/cost/by-model", ModelCostView.as_view()),
    path("metrics/cost", CostView.as_view()),
    path("metrics/cost/intervals", CostIntervalsView.as_view()),
    path("metrics/cost/export", CostExportView.as_view()),
    path("metrics/cost/gaps", PriceGapsView.as_view()),
    path("metrics/usage", UsageView.as_view()),
    path("metrics/errors", ErrorsView.as_view()),
    path("metrics/guardrails", GuardrailsView.as_view()),
    path("metrics/guardrails/usage", GuardrailUsageView.as_view()),
    path("guardrails/requests", GuardrailRequestsView.as_view()),
    path("metrics/errors/groups", ErrorGroupsView.as_view()),
    path("metrics/providers/history", ProviderHistoryView.as_view()),
    path("metrics/providers/failovers", FailoversView.as_view()),
    path("metrics/provider-latency", ProviderLatencyView.as_view()),
]

# Exporters add `v1/traces` to the endpoint they are configured with, and some of them a slash behind it.
otlp_urlpatterns = [
    re_path(r"^v1/traces/?$", otlp.traces),
    re_path(r"^v1/logs/?$", otlp.logs),
    re_path(r"^v1/metrics/?$", otlp.metrics),
]
