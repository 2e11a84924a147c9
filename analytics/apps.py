from __future__ import annotations

from typing import Any

from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    name = "analytics"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from analytics.queries import lookup  # noqa: F401 - registers itself; needs the app's models
        from analytics.telemetry.evaluation_results import evaluation_results_stored

        evaluation_results_stored.connect(_results_stored, dispatch_uid="analytics.exported_scores")


def _results_stored(**stored: Any) -> None:
    # Every process connects signals; only web workers, which take events, load what records them.
    from analytics.serializers.exported_scores import record_exported

    record_exported(**stored)
