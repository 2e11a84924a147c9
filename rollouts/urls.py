"""Paths of this app below `/api/llm/`."""

from __future__ import annotations

from django.urls import path

from rollouts.services import complete_rollout, pause_rollout, roll_back_rollout, start_rollout
from rollouts.viewsets import ForecastView, MoveView, PromoteView, RolloutMetricsView, RolloutsView, RolloutView

_ONE = "prompts/rollouts/<uuid:rollout_id>"

urlpatterns = [
    path("prompts/rollouts", RolloutsView.as_view(), name="rollouts"),
    path("prompts/rollouts/forecast", ForecastView.as_view(), name="rollout-forecast"),
    path(_ONE, RolloutView.as_view(), name="rollout"),
    path(f"{_ONE}/start", MoveView.as_view(service=start_rollout), name="rollout-start"),
    path(f"{_ONE}/pause", MoveView.as_view(service=pause_rollout), name="rollout-pause"),
    path(f"{_ONE}/promote", PromoteView.as_view(), name="rollout-promote"),
    path(f"{_ONE}/rollback", MoveView.as_view(service=roll_back_rollout), name="rollout-rollback"),
    path(f"{_ONE}/complete", MoveView.as_view(service=complete_rollout), name="rollout-complete"),
    path(f"{_ONE}/metrics", RolloutMetricsView.as_view(), name="rollout-metrics"),
]
