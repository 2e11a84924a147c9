"""The gateway's part of the management API, below `api/llm/`."""

from __future__ import annotations

from django.urls import path

from gateway.end_users.viewsets import EndUserLimitsView, EndUserLimitView
from gateway.model_groups.viewsets import ModelGroupsView, ModelGroupView
from gateway.playground.viewsets import CompareView, ModelsView, PlaygroundView
from gateway.trials.viewsets import (
    TrialCancellationView,
    TrialEstimateView,
    TrialInputsView,
    TrialsView,
    TrialView,
    TrialWinnerView,
)
from gateway.viewsets import (
    CacheView,
    DryRunView,
    ProblemsView,
    RestoreSettingsView,
    SettingsHistoryView,
    SettingsView,
    UsageView,
)

urlpatterns = [
    path("settings", SettingsView.as_view()),
    path("settings/history", SettingsHistoryView.as_view()),
    path("settings/history/<int:change_id>/restore", RestoreSettingsView.as_view()),
    path("end-user-limits", EndUserLimitsView.as_view()),
    path("end-user-limits/<int:limit_id>", EndUserLimitView.as_view()),
    path("model-groups", ModelGroupsView.as_view()),
    path("model-groups/<str:group_name>", ModelGroupView.as_view()),
    path("guardrails/dry-run", DryRunView.as_view()),
    path("usage", UsageView.as_view()),
    path("problems", ProblemsView.as_view()),
    path("cache", CacheView.as_view()),
    path("playground", PlaygroundView.as_view()),
    path("playground/compare", CompareView.as_view()),
    path("playground/models", ModelsView.as_view()),
    path("trials", TrialsView.as_view()),
    path("trials/estimate", TrialEstimateView.as_view()),
    path("trials/<uuid:trial_id>", TrialView.as_view()),
    path("trials/<uuid:trial_id>/inputs", TrialInputsView.as_view()),
    path("trials/<uuid:trial_id>/inputs/<int:position>/winner", TrialWinnerView.as_view()),
    path("trials/<uuid:trial_id>/cancel", TrialCancellationView.as_view()),
]
