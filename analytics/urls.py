"""The analytics part of the management API, below `api/llm/`, and the entrance of OTLP/HTTP, below `api/otlp/`."""

from __future__ import annotations

from django.urls import path, re_path

from analytics.telemetry import views as otlp
from analytics.viewsets.costs import CostViewSet
from analytics.viewsets.dashboards import ChartViewSet, DashboardViewSet, FigureViewSet
from analytics.viewsets.datasets import DatasetItemViewSet, DatasetViewSet
from analytics.viewsets.discussions import AssignmentViewSet, CommentViewSet
from analytics.viewsets.evaluators import EvaluatorViewSet
from analytics.viewsets.metrics import (
    ErrorMetricsViewSet,
    GuardrailFindingViewSet,
    GuardrailMetricsViewSet,
    MetricsViewSet,
    ProviderMetricsViewSet,
    ScoreMetricsViewSet,
)
from analytics.viewsets.requests import LookupViewSet, RequestViewSet, SearchViewSet
from analytics.viewsets.reviews import ReviewItemViewSet, ReviewQueueViewSet
from analytics.viewsets.saved_views import SavedViewViewSet
from analytics.viewsets.scores import FeedbackTokenViewSet, FeedbackViewSet, ScoreViewSet
from analytics.viewsets.sessions import SessionTelemetryViewSet, SessionViewSet, TraceViewSet
from analytics.viewsets.trace_destinations import TraceDestinationViewSet
from analytics.viewsets.users import EndUserViewSet
from core.api.routers import ProjectRouter

router = ProjectRouter()
# Ids of sessions and requests are the client's own and may hold slashes (`core.http.paths`): what is below a session
# comes before the session itself.
router.register("sessions/<slashed:session_id>/feedback", FeedbackViewSet, "feedback")
router.register("sessions/<slashed:session_id>/feedback-token", FeedbackTokenViewSet, "feedback-token")
router.register("sessions", SessionViewSet, "session")
router.register("users", EndUserViewSet, "user")
router.register("traces", TraceViewSet, "trace")
router.register("scores", ScoreViewSet, "score")
router.register("requests", RequestViewSet, "request")
router.register("search", SearchViewSet, "search")
router.register("lookup", LookupViewSet, "lookup")
router.register("views", SavedViewViewSet, "saved-view")
router.register("comments", CommentViewSet, "comment")
router.register("assignments", AssignmentViewSet, "assignment")
router.register("metrics", MetricsViewSet, "metrics")
router.register("metrics", ScoreMetricsViewSet, "score-metrics")
router.register("metrics/cost", CostViewSet, "cost")
router.register("metrics/errors", ErrorMetricsViewSet, "error-metrics")
router.register("metrics/providers", ProviderMetricsViewSet, "provider-metrics")
router.register("metrics/guardrails", GuardrailMetricsViewSet, "guardrail-metrics")
router.register("guardrails", GuardrailFindingViewSet, "guardrail-finding")
router.register("figures", FigureViewSet, "figure")
router.register("dashboards/<uuid:dashboard_id>/charts", ChartViewSet, "chart")
router.register("dashboards", DashboardViewSet, "dashboard")
router.register("evaluators", EvaluatorViewSet, "evaluator")
router.register("trace-destinations", TraceDestinationViewSet, "trace-destination")
quality_router = ProjectRouter()
quality_router.register("reviews/<uuid:queue_id>/items", ReviewItemViewSet, "review-item")
quality_router.register("reviews", ReviewQueueViewSet, "review-queue")
quality_router.register("datasets/<uuid:dataset_id>/items", DatasetItemViewSet, "dataset-item")
quality_router.register("datasets", DatasetViewSet, "dataset")

urlpatterns = router.urls
quality_urlpatterns = quality_router.urls

telemetry_urlpatterns = [
    path(
        "projects/<project_id>/llm/sessions/<slashed:session_id>/telemetry",
        SessionTelemetryViewSet.as_view({"get": "retrieve"}),
    )
]

# Exporters add `v1/traces` to the endpoint they are configured with, and some of them a slash behind it.
otlp_urlpatterns = [
    re_path(r"^v1/traces/?$", otlp.traces),
    re_path(r"^v1/logs/?$", otlp.logs),
    re_path(r"^v1/metrics/?$", otlp.metrics),
]
