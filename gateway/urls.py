"""The gateway's part of the management API, below `api/llm/`."""

from __future__ import annotations

from django.urls import path

from gateway.playground.views import CompareView, ModelsView, PlaygroundView
from gateway.views import CacheView, DryRunView, RestoreSettingsView, SettingsHistoryView, SettingsView, UsageView

urlpatterns = [
    path("settings", SettingsView.as_view()),
    path("settings/history", SettingsHistoryView.as_view()),
    path("settings/history/<int:change_id>/restore", RestoreSettingsView.as_view()),
    path("guardrails/dry-run", DryRunView.as_view()),
    path("usage", UsageView.as_view()),
    path("cache", CacheView.as_view()),
    path("playground", PlaygroundView.as_view()),
    path("playground/compare", CompareView.as_view()),
    path("playground/models", ModelsView.as_view()),
]
